"""Fits a neural ordinary differential equation by torchdiffeq, with and without the adjoint."""

import argparse
import json

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser("ODE demo")
parser.add_argument("--method", type=str, choices=["dopri5", "adams"], default="dopri5")
parser.add_argument("--data_size", type=int, default=8)
parser.add_argument("--batch_time", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--niters", type=int, default=2)
parser.add_argument("--adjoint", action="store_true")
args = parser.parse_args()

if args.adjoint:
    from torchdiffeq import odeint_adjoint as odeint
else:
    from torchdiffeq import odeint

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
true_y0 = torch.tensor([[2.0, 0.0]], dtype=torch.float64).to(device)
t = torch.linspace(0.0, 1.0, args.data_size, dtype=torch.float64).to(device)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64).to(device)
rng = np.random.RandomState(8)


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


with torch.no_grad():
    true_y = odeint(Lambda(), true_y0, t, method="dopri5")


def get_batch():
    s = torch.from_numpy(
        rng.choice(args.data_size - args.batch_time, args.batch_size, replace=False)
    )
    batch_y0 = true_y[s]
    batch_t = t[: args.batch_time]
    batch_y = torch.stack([true_y[s + i] for i in range(args.batch_time)], dim=0)
    return batch_y0.to(device), batch_t.to(device), batch_y.to(device)


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 2))
        self.double()
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                m.weight.data.copy_(torch.from_numpy(rng.normal(0, 0.1, m.weight.shape)))
                nn.init.constant_(m.bias, val=0)
        self.calls = 0

    def forward(self, t, y):
        self.calls += 1
        return self.net(y**3)


func = ODEFunc().to(device)
optimizer = optim.RMSprop(func.parameters(), lr=1e-2)
losses = []
for _ in range(args.niters):
    optimizer.zero_grad()
    batch_y0, batch_t, batch_y = get_batch()
    pred_y = odeint(func, batch_y0, batch_t, method=args.method, rtol=1e-5, atol=1e-7).to(device)
    loss = torch.mean(torch.abs(pred_y - batch_y))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
grads = [p.grad.abs().sum().item() for p in func.parameters()]
end = true_y[-1, 0].tolist()
print(json.dumps({"losses": losses, "grads": grads, "calls": func.calls, "end": end}))
