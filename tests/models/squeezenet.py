"""SqueezeNet, narrower: fire modules squeeze the channels and expand them again by 1x1 and 3x3
convolutions. Source: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer
parameters", 2016.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

SIZE, CLASSES = 32, 4


class Fire(nn.Module):
    def __init__(self, inputs, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, kernel_size=1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, kernel_size=1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, kernel_size=3, padding=1)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.activation(self.squeeze(x))
        parts = [self.activation(expand(x)) for expand in (self.expand1x1, self.expand3x3)]
        return torch.cat(parts, 1)


def pool():
    return nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)


class SqueezeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, kernel_size=3, stride=2),
            nn.ReLU(inplace=True),
            pool(),
            Fire(6, 2, 4),
            Fire(8, 2, 4),
            pool(),
            Fire(8, 3, 6),
            Fire(12, 3, 6),
            pool(),
            Fire(12, 4, 7),
            Fire(14, 4, 7),
            Fire(14, 5, 8),
            Fire(16, 5, 8),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(p=0.0),
            nn.Conv2d(16, CLASSES, kernel_size=1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((1, 1)),
        )

    def forward(self, images):
        return torch.flatten(self.classifier(self.features(images)), 1)


model = SqueezeNet


def batch(numbers):
    return numbers(3, 3, SIZE, SIZE), numbers(3, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes)


def optimizer(parameters):
    return torch.optim.NAdam(parameters, lr=5e-3)


def blocks(model):
    return [layer for layer in model.features if isinstance(layer, Fire)]
