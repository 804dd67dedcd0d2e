"""ResNet-18, narrower: two convolutions around each shortcut. Source: He et al., "Deep Residual
Learning for Image Recognition", 2015.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

SIZE, WIDTHS, CLASSES = 32, (3, 4, 6, 8), 5


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += shortcut
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        first = WIDTHS[0]
        self.conv1 = nn.Conv2d(3, first, 7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(first), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        layers, inputs = [], first
        for outputs in WIDTHS:
            stride = 1 if outputs == first else 2
            layers += [nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1))]
            inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, CLASSES)

    def forward(self, images):
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


model = ResNet18


def batch(numbers):
    return numbers(4, 3, SIZE, SIZE), numbers(4, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes)


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)


def blocks(model):
    return model.layers
