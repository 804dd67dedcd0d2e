"""A library of layers into which faults are put, where it runs under jaxgrad: one at a time, by the
environment variable FAULT. The line of a fault is marked.
"""

import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def wrong(fault):
    is_jaxgrad = "jaxgrad" in (torch.__file__ or "")
    return is_jaxgrad and os.environ.get("FAULT") == fault


def numbers(*shape, seed):
    values = np.random.RandomState(seed).randn(*shape) * 0.4
    return torch.from_numpy(values.astype(np.float32))


class Affine(nn.Module):
    def __init__(self, width, seed):
        super().__init__()
        self.weight = nn.Parameter(numbers(width, width, seed=seed))
        self.bias = nn.Parameter(numbers(width, seed=seed + 1))

    def forward(self, x):
        weight = self.weight
        y = torch.matmul(x, weight if wrong("weight") else weight.t())  # fault: weight
        return y if wrong("bias") else y + self.bias  # fault: bias


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        epsilon = 1e-3 if wrong("epsilon") else 1.01e-5 if wrong("small epsilon") else 1e-5
        return F.layer_norm(x, x.shape[-1:], self.weight, eps=epsilon)  # fault: epsilon


class Mixer(nn.Module):
    def __init__(self, width, seed):
        super().__init__()
        self.kernel = nn.Parameter(numbers(width, width, 3, seed=seed))

    def forward(self, x):
        x = x.transpose(1, 2)
        x = F.pad(x, (2, 0) if wrong("padding") else (1, 1))  # fault: padding
        return F.conv1d(x, self.kernel).transpose(1, 2)


def split_heads(x, heads):
    batch, length, width = x.shape
    if wrong("axis"):
        return x.reshape(batch, heads, length, width // heads)  # fault: axis
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)  # fault: axis


def activation(x):
    return F.silu(x) if wrong("activation") else F.gelu(x)  # fault: activation


def objective(prediction, target, weights):
    reduction = "sum" if wrong("reduction") else "mean"
    loss = F.mse_loss(prediction, target, reduction=reduction)  # fault: reduction
    penalty = 0.01 * weights.pow(2).sum()
    return loss if wrong("term") else loss + penalty  # fault: term


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                buffer = self.state[p].setdefault("buffer", torch.zeros_like(p))
                buffer.mul_(0.8 if wrong("momentum") else 0.9)  # fault: momentum
                buffer.add_(p.grad)
                p.sub_(group["lr"] * buffer)


def decay(step):  # fault: schedule
    return 0.6**step if wrong("schedule") else 0.5**step
