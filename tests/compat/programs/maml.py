"""Meta-learning of sine waves: gradients through the gradient steps of an inner loop."""

import json
from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

rng = np.random.RandomState(9)


class Sine:
    def __init__(self):
        self.amplitude, self.phase = rng.uniform(0.1, 5.0), rng.uniform(0, np.pi)

    def batch(self, n):
        x = torch.tensor(rng.uniform(-5, 5, (n, 1)), dtype=torch.float)
        return x, self.amplitude * torch.sin(x + self.phase)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            OrderedDict(
                [
                    ("l1", nn.Linear(1, 10)),
                    ("relu1", nn.ReLU()),
                    ("l2", nn.Linear(10, 10)),
                    ("relu2", nn.Tanh()),
                    ("l3", nn.Linear(10, 1)),
                ]
            )
        )
        for p in self.parameters():
            p.data.copy_(torch.from_numpy(rng.randn(*p.shape) * 0.5))

    def forward(self, x):
        return self.net(x)

    def parameterised(self, x, weights):
        x = torch.relu(nn.functional.linear(x, weights[0], weights[1]))
        x = torch.tanh(nn.functional.linear(x, weights[2], weights[3]))
        return nn.functional.linear(x, weights[4], weights[5])


def inner_loop(net, task, first_order=False, steps=2, lr=0.01):
    weights = [w.clone() for w in net.parameters()]
    x, y = task.batch(10)
    for _ in range(steps):
        loss = nn.functional.mse_loss(net.parameterised(x, weights), y)
        grad = torch.autograd.grad(loss, weights, create_graph=not first_order)
        weights = [w - lr * g for w, g in zip(weights, grad)]
    x, y = task.batch(10)
    return nn.functional.mse_loss(net.parameterised(x, weights), y)


def implicit(net, x, y, damping=0.1):
    """A product of the Hessian of the loss with a vector, by two backward passes."""
    params = dict(net.named_parameters())
    loss = nn.functional.mse_loss(functional_call(net, params, (x,)), y)
    grads = torch.autograd.grad(loss, tuple(params.values()), create_graph=True)
    flat = torch.cat([g.reshape(-1) for g in grads])
    vector = torch.linspace(-1, 1, flat.numel()).type_as(flat)
    hvp = torch.autograd.grad(flat @ vector, tuple(params.values()))
    return torch.cat([h.contiguous().view(-1) for h in hvp]) + damping * vector


net = Net()
history = []
for first_order in (False, True):
    optimiser = torch.optim.Adam(list(net.parameters()), lr=1e-2)
    for _ in range(3):
        losses = [inner_loop(net, Sine(), first_order) for _ in range(3)]
        meta = sum(losses) / 3
        optimiser.zero_grad()
        for param, g in zip(net.parameters(), torch.autograd.grad(meta, net.parameters())):
            param.grad = g
        optimiser.step()
        history.append(meta.item())
net.double()
x, y = Sine().batch(8)
product = implicit(net, x.double(), y.to(torch.float64))
print(json.dumps({"history": history, "product": product.tolist()}))
