"""A model that is compiled, and a training step that is compiled as a whole."""

import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))


def batch():
    return torch.randn(5, 4), torch.randint(3, (5,))


model = network()
optimizer, compiled = torch.optim.SGD(model.parameters(), 0.1), torch.compile(model)
for _ in range(4):
    x, y = batch()
    loss = nn.functional.cross_entropy(compiled(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

other = network()
adam = torch.optim.Adam(other.parameters(), 0.01)


@torch.compile
def step(x, y):
    loss = nn.functional.cross_entropy(other(x), y)
    adam.zero_grad()
    loss.backward()
    adam.step()
    return loss


for _ in range(4):
    step(*batch())
