"""A ShuffleNet: grouped 1x1 convolutions, whose groups a shuffle of the channels mixes. Source:
Zhang et al., "ShuffleNet: An Extremely Efficient Convolutional Neural Network", 2017.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

SIZE, GROUPS, CLASSES = 32, 2, 4
STAGES = (8, 2), (16, 3)  # channels, units


class Unit(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride = stride
        middle = outputs // 2
        outputs -= inputs if stride == 2 else 0  # those are concatenated
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, middle, 1, groups=GROUPS, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(),
            nn.ChannelShuffle(GROUPS),
            nn.Conv2d(middle, middle, 3, stride, padding=1, groups=middle, bias=False),
            nn.BatchNorm2d(middle),
            nn.Conv2d(middle, outputs, 1, groups=GROUPS, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x):
        if self.stride == 1:
            return F.relu(x + self.branch(x))
        beside = F.avg_pool2d(x, 3, stride=2, padding=1)
        return F.relu(torch.cat([beside, self.branch(x)], 1))


class ShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        inputs = 4
        self.first = nn.Sequential(
            nn.Conv2d(3, inputs, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(inputs),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        units = []
        for outputs, count in STAGES:
            units.append(Unit(inputs, outputs, 2))
            units += [Unit(outputs, outputs, 1) for _ in range(count - 1)]
            inputs = outputs
        self.units = nn.Sequential(*units)
        self.last = nn.Linear(inputs, CLASSES)

    def forward(self, images):
        x = self.units(self.first(images))
        return self.last(F.adaptive_avg_pool2d(x, 1).view(len(images), -1))


model = ShuffleNet


def batch(numbers):
    return numbers(4, 3, SIZE, SIZE), numbers(4, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes)


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9, weight_decay=4e-5)


def blocks(model):
    return model.units
