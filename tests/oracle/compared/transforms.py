"""Gradients of each example by `torch.func`, and second derivatives."""

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, vmap

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
parameters = dict(model.named_parameters())


def loss(parameters, x, y):
    return (functional_call(model, parameters, (x,)) - y).pow(2).mean()


for _ in range(3):
    x, y = torch.randn(6, 3), torch.randn(6, 1)
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    parameters = {name: p - 0.1 * gradients[name].mean(0) for name, p in parameters.items()}
    loss(parameters, x, y)
hessian(lambda w: (w**3).sum())(torch.randn(3)).diag()
