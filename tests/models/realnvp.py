"""A normalizing flow of affine couplings, trained by the likelihood. Source: Dinh et al., "Density
estimation using Real NVP", 2016.
"""

import math

import jaxgrad as torch
from jaxgrad import nn

FEATURES, WIDTH, LAYERS = 4, 8, 3


class Coupling(nn.Module):
    """Scales and moves half of the features by functions of the other half."""

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.scale = nn.Sequential(
            nn.Linear(FEATURES, WIDTH), nn.LeakyReLU(), nn.Linear(WIDTH, FEATURES), nn.Tanh()
        )
        self.shift = nn.Sequential(
            nn.Linear(FEATURES, WIDTH), nn.LeakyReLU(), nn.Linear(WIDTH, FEATURES)
        )

    def forward(self, x):
        kept = x * self.mask
        scale, shift = (self.scale(kept), self.shift(kept))
        moved = (x * scale.exp() + shift) * (1 - self.mask)
        return kept + moved, (scale * (1 - self.mask)).sum(-1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        even = (torch.arange(FEATURES) % 2).double()
        self.layers = nn.ModuleList(Coupling(even if i % 2 else 1 - even) for i in range(LAYERS))

    def forward(self, x):
        volume = 0
        for layer in self.layers:
            x, part = layer(x)
            volume = volume + part
        return x, volume


model = Flow


def batch(numbers):
    return (numbers(6, FEATURES),)


def loss(model, x):
    z, volume = model(x)
    likelihood = -0.5 * (z**2 + math.log(2 * math.pi)).sum(-1) + volume
    return -likelihood.mean()


def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


def blocks(model):
    return model.layers
