"""DenseNet-121 on small images, whose gradients in single precision differ by percents between
right programs. Source: Huang et al., "Densely Connected Convolutional Networks", 2017.

python -m jaxgrad compare --modules --double --no-times tests/oracle/conditioning/densenet.py
"""

import torch
from torch import nn

GROWTH, BLOCKS, FACTOR = 32, (6, 12, 24, 16), 4


def convolution(channels, outputs, size):
    return nn.Conv2d(channels, outputs, size, padding=size // 2, bias=False)


class Layer(nn.Sequential):
    def __init__(self, channels):
        width = FACTOR * GROWTH
        first = nn.BatchNorm2d(channels), nn.ReLU(), convolution(channels, width, 1)
        super().__init__(*first, nn.BatchNorm2d(width), nn.ReLU(), convolution(width, GROWTH, 3))

    def forward(self, x):
        return torch.cat([x, super().forward(x)], 1)


def transition(channels):
    parts = nn.BatchNorm2d(channels), nn.ReLU(), convolution(channels, channels // 2, 1)
    return [*parts, nn.AvgPool2d(2)]


def densenet(classes=10):
    channels = 2 * GROWTH
    parts = [nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    parts.append(nn.MaxPool2d(3, 2, 1))
    for number, count in enumerate(BLOCKS):
        for _ in range(count):
            parts.append(Layer(channels))
            channels += GROWTH
        if number < len(BLOCKS) - 1:
            parts += transition(channels)
            channels //= 2
    parts += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(channels, classes))


model = densenet()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
x, y = torch.randn(2, 3, 64, 64), torch.randint(10, (2,))
nn.functional.cross_entropy(model(x), y).backward()
optimizer.step()
