"""The blocks of EfficientNet-B0, narrower: inverted residuals whose channels a small network
weighs. Source: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural
Networks", 2019.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

# expansion, channels, kernel, stride: the seven stages, two of them with a second, residual block
TABLE = [
    (1, 4, 3, 1),
    (6, 6, 3, 2),
    (6, 6, 3, 1),
    (6, 8, 5, 2),
    (6, 8, 5, 1),
    (6, 10, 3, 2),
    (6, 12, 5, 1),
    (6, 14, 5, 2),
    (6, 16, 3, 1),
]
SIZE, CLASSES = 32, 4


def convolution(inputs, outputs, kernel, stride=1, groups=1, activation=nn.SiLU):
    options = {"stride": stride, "padding": kernel // 2, "groups": groups, "bias": False}
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, **options),
        nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01),
        activation(),
    )


class SqueezeExcitation(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        scale = self.fc1(F.adaptive_avg_pool2d(x, 1))
        return x * torch.sigmoid(self.fc2(F.silu(scale, inplace=True)))


class MBConv(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride, expansion):
        super().__init__()
        self.is_residual = stride == 1 and inputs == outputs
        hidden = inputs * expansion
        self.block = nn.Sequential(
            nn.Identity() if expansion == 1 else convolution(inputs, hidden, 1),
            convolution(hidden, hidden, kernel, stride, groups=hidden),
            SqueezeExcitation(hidden, max(1, inputs // 4)),
            convolution(hidden, outputs, 1, activation=nn.Identity),
        )

    def forward(self, x):
        return x + self.block(x) if self.is_residual else self.block(x)


class EfficientNet(nn.Module):
    def __init__(self):
        super().__init__()
        inputs = 6
        features = [convolution(3, inputs, 3, stride=2)]
        for expansion, outputs, kernel, stride in TABLE:
            features.append(MBConv(inputs, outputs, kernel, stride, expansion))
            inputs = outputs
        self.features = nn.Sequential(*features, convolution(inputs, 24, 1))
        self.classifier = nn.Linear(24, CLASSES)

    def forward(self, images):
        return self.classifier(F.adaptive_avg_pool2d(self.features(images), 1).squeeze((2, 3)))


model = EfficientNet


def batch(numbers):
    return numbers(4, 3, SIZE, SIZE), numbers(4, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes)


def optimizer(parameters):
    options = {"alpha": 0.9, "momentum": 0.9, "eps": 1e-3, "weight_decay": 1e-5}
    return torch.optim.RMSprop(parameters, lr=0.01, **options)


def blocks(model):
    return model.features
