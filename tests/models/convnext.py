"""A ConvNeXt: depthwise 7x7 convolutions, layer norm over channels, a scale for each layer.
Source: Liu et al., "A ConvNet for the 2020s", 2022.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

SIZE, WIDTHS, DEPTHS, CLASSES = 16, (4, 6, 8), (1, 2, 1), 3


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        x = F.layer_norm(
            x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps
        )
        return x.permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.wide, self.narrow = (
            nn.Linear(channels, 4 * channels),
            nn.Linear(4 * channels, channels),
        )
        self.scale = nn.Parameter(1e-6 * torch.ones(channels))

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(F.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [], 3
        for number, (outputs, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
            norm = [ChannelNorm(inputs, eps=1e-6)] if number else []
            layers += [*norm, nn.Conv2d(inputs, outputs, 2, stride=2)]
            layers += [] if number else [ChannelNorm(outputs, eps=1e-6)]
            layers += [Block(outputs) for _ in range(depth)]
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(inputs, eps=1e-6)
        self.head = nn.Linear(inputs, CLASSES)

    def forward(self, images):
        return self.head(self.norm(self.layers(images).mean((-2, -1))))


model = ConvNeXt


def batch(numbers):
    return numbers(3, 3, SIZE, SIZE), numbers(3, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes, label_smoothing=0.1)


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=4e-3, weight_decay=0.05, amsgrad=True)


def blocks(model):
    return model.layers
