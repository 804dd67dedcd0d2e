"""Trains a small network on points of two spirals, as scripts for PyTorch do it."""

import argparse
import json
import math

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(2, width)
        self.norm = nn.BatchNorm1d(width)
        self.last = nn.Linear(width, 2)

    @torch.jit.ignore
    def parts(self):
        return [self.first, self.last]

    def forward(self, x):
        if torch.jit.is_scripting():
            raise RuntimeError("not here")
        return self.last(torch.relu(self.norm(self.first(x))))


def fill(net):
    """Weights that need no random numbers."""
    with torch.no_grad():
        for number, part in enumerate(net.parts()):
            size = part.weight.numel()
            values = torch.sin(torch.arange(size, dtype=part.weight.dtype) * (1.7 + number))
            part.weight.copy_(values.view_as(part.weight))
            part.bias.zero_()


def spirals(count, dtype):
    angle = torch.linspace(0.3, 2 * math.pi, count, dtype=dtype)
    arm = torch.stack([angle * angle.cos(), angle * angle.sin()], dim=1) / math.pi
    labels = torch.cat([torch.zeros(count), torch.ones(count)]).long()
    return torch.cat([arm, -arm]), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--width", type=int, default=8)
    arguments = parser.parse_args()
    cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = Net(arguments.width).double().to(device)
    fill(net)
    decay = [
        p for m in net.modules() if not isinstance(m, _BatchNorm) for p in m._parameters.values()
    ]
    plain = [p for m in net.modules() if isinstance(m, _BatchNorm) for p in m._parameters.values()]
    groups = [{"params": decay, "weight_decay": 0.01}, {"params": plain}]
    optimizer = optim.SGD(groups, lr=arguments.lr, momentum=0.9, nesterov=True)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
    points, labels = spirals(32, torch.float64)
    losses = []
    for _ in range(arguments.epochs):
        net.train()
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(points.to(device)), labels.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        correct = (net(points).argmax(dim=1) == labels).sum().item()
    print(json.dumps({"losses": losses, "correct": correct, "rate": scheduler.get_last_lr()[0]}))


if __name__ == "__main__":
    main()
