"""Eight layers. Each makes a change of its input four times as large."""

import numpy as np
import torch
from torch import nn


def numbers(*shape, seed):
    return torch.from_numpy(np.random.RandomState(seed).randn(*shape).astype(np.float32))


class Wave(nn.Module):
    def __init__(self, width, seed):
        super().__init__()
        self.weight = nn.Parameter(numbers(width, width, seed=seed) / width**0.5)

    def forward(self, x):
        return torch.cos(4 * x @ self.weight)


model = nn.Sequential(*(Wave(16, seed) for seed in range(8)))
loss = model(numbers(8, 16, seed=100)).sum()
loss.backward()
