"""U-Net: a path down and a path up, with the crops of the one beside the other; convolutions
without padding, and a weight for each pixel. Source: Ronneberger et al., "U-Net: Convolutional
Networks for Biomedical Image Segmentation", 2015.
"""

import itertools

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

WIDTHS, CLASSES, BEFORE, AFTER = (3, 5, 6), 2, 44, 4


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3),
        nn.ReLU(inplace=True),
    )


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.convolutions = double(2 * outputs, outputs)

    def forward(self, x, beside):
        x = self.up(x)
        top, left = ((beside.shape[i] - x.shape[i]) // 2 for i in (2, 3))
        crop = beside[:, :, top : top + x.shape[2], left : left + x.shape[3]]
        return self.convolutions(torch.cat([crop, x], dim=1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        pairs = list(itertools.pairwise(WIDTHS))
        self.first = double(1, WIDTHS[0])
        self.down = nn.ModuleList(double(*pair) for pair in pairs)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(Up(wide, narrow) for narrow, wide in reversed(pairs))
        self.last = nn.Conv2d(WIDTHS[0], CLASSES, 1)

    def forward(self, images):
        kept = [self.first(images)]
        for down in self.down:
            kept.append(down(self.pool(kept[-1])))
        x = kept.pop()
        for up in self.up:
            x = up(x, kept.pop())
        return self.last(x)


model = UNet


def batch(numbers):
    pixels = 2, AFTER, AFTER
    return numbers(2, 1, BEFORE, BEFORE), numbers(*pixels, below=CLASSES), numbers(*pixels) + 1.5


def loss(model, images, classes, weights):
    errors = F.cross_entropy(model(images), classes, reduction="none")
    return (weights * errors).mean()


def optimizer(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.99)


def blocks(model):
    return [model.first, *model.down, *model.up]
