"""Trains a model of the layers beside it for two steps, from numbers that are written in."""

import layers
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.first, self.last = layers.Affine(width, seed=1), layers.Affine(width, seed=3)
        self.norm, self.mixer = layers.Norm(width), layers.Mixer(width, seed=5)

    def forward(self, x):
        x = layers.activation(self.norm(self.first(x)))
        heads = layers.split_heads(self.mixer(x), 2)
        attention = torch.softmax(heads @ heads.transpose(2, 3), dim=-1) @ heads
        return self.last(attention.transpose(1, 2).reshape(x.shape))


model = Model()
optimizer = layers.Momentum(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, layers.decay)
x, target = layers.numbers(3, 4, 6, seed=7), layers.numbers(3, 4, 6, seed=8)
for _ in range(2):
    loss = layers.objective(model(x), target, model.last.weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
