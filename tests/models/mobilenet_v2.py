"""MobileNet v2, narrower: inverted residuals around depthwise convolutions, linear bottlenecks.
Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

# expansion, channels (an eighth of the paper's), blocks, stride of the first
TABLE = [(1, 2, 1, 1), (6, 3, 2, 2), (6, 4, 2, 2), (6, 8, 2, 2), (6, 12, 1, 1), (6, 20, 1, 2)]
FIRST, LAST, SIZE, CLASSES = 4, 32, 32, 5


def convolution(inputs, outputs, kernel, stride=1, groups=1):
    options = {"stride": stride, "padding": kernel // 2, "groups": groups, "bias": False}
    conv = nn.Conv2d(inputs, outputs, kernel, **options)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        self.is_residual = stride == 1 and inputs == outputs
        hidden = inputs * expansion
        layers = [] if expansion == 1 else [convolution(inputs, hidden, 1)]
        layers += [
            convolution(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.is_residual else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        inputs = FIRST
        features = [convolution(3, inputs, 3, stride=2)]
        for expansion, outputs, blocks, stride in TABLE:
            for number in range(blocks):
                features.append(Inverted(inputs, outputs, 1 if number else stride, expansion))
                inputs = outputs
        features.append(convolution(inputs, LAST, 1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(LAST, CLASSES))

    def forward(self, images):
        x = F.adaptive_avg_pool2d(self.features(images), 1)
        return self.classifier(x.flatten(1))


model = MobileNetV2


def batch(numbers):
    return numbers(4, 3, SIZE, SIZE), numbers(4, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes)


def optimizer(parameters):
    return torch.optim.RMSprop(parameters, lr=1e-3, momentum=0.9, weight_decay=4e-5)


def blocks(model):
    return model.features
