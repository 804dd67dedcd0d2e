"""A training that is saved and goes on in other objects; a bias before a batch normalization has
gradients that are rounding.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn


def new():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    return model, torch.optim.Adam(model.parameters())


def train(model, optimizer):
    for _ in range(2):
        loss = model(torch.randn(6, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model, optimizer = new()
train(model, optimizer)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "state.pt"
    states = model.state_dict(), optimizer.state_dict(), torch.get_rng_state()
    torch.save(states, file)
    states = torch.load(file, weights_only=True)
model, optimizer = new()
model.load_state_dict(states[0])
optimizer.load_state_dict(states[1])
torch.set_rng_state(states[2])
train(model, optimizer)
model.eval()
model(torch.ones(1, 3))
