"""A DenseNet: each layer sees the outputs of all before it in its block. Source: Huang et al.,
"Densely Connected Convolutional Networks", 2016.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

SIZE, GROWTH, BLOCKS, CLASSES = 16, 3, (3, 2, 2), 4


def activated(inputs, outputs, kernel):
    conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return [nn.BatchNorm2d(inputs), nn.ReLU(inplace=True), conv]


class Layer(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        bottleneck = activated(inputs, 4 * GROWTH, 1)
        self.layers = nn.Sequential(*bottleneck, *activated(4 * GROWTH, GROWTH, 3))

    def forward(self, *features):
        return self.layers(torch.cat(features, 1))


class Block(nn.ModuleList):
    def __init__(self, inputs, count):
        super().__init__(Layer(inputs + number * GROWTH) for number in range(count))

    def forward(self, x):
        features = [x]
        for layer in self:
            features.append(layer(*features))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        width = 2 * GROWTH
        layers = [nn.Conv2d(3, width, 3, padding=1, bias=False)]
        for number, count in enumerate(BLOCKS):
            if number:
                layers += [*activated(width, width // 2, 1), nn.AvgPool2d(2)]
                width //= 2
            layers.append(Block(width, count))
            width += count * GROWTH
        layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, images):
        return self.classifier(self.features(images).mean((2, 3)))


model = DenseNet


def batch(numbers):
    return numbers(3, 3, SIZE, SIZE), numbers(3, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes, label_smoothing=0.1)


def optimizer(parameters):
    options = {"momentum": 0.9, "weight_decay": 1e-4, "nesterov": True}
    return torch.optim.SGD(parameters, lr=0.02, **options)


def blocks(model):
    return [layer for block in model.features if isinstance(block, Block) for layer in block]
