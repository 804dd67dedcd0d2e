"""A convolutional generative adversarial network: a generator of transposed convolutions against a
discriminator of strided ones, both trained in one step. Source: Radford et al., "Unsupervised
Representation Learning with Deep Convolutional Generative Adversarial Networks", 2015; the
game is the minimax of Goodfellow et al., 2014.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

LATENT, WIDTH, SIZE = 4, 3, 16


class Opposed(torch.autograd.Function):
    """The identity, with the gradient's sign turned: what is behind it maximizes the loss."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


def up(inputs, outputs, **options):
    conv = nn.ConvTranspose2d(inputs, outputs, 4, bias=False, **options)
    return [conv, nn.BatchNorm2d(outputs), nn.ReLU(True)]


def down(inputs, outputs):
    conv = nn.Conv2d(inputs, outputs, 4, stride=2, padding=1, bias=False)
    return [conv, nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, inplace=True)]


class DCGAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(
            *up(LATENT, 2 * WIDTH),
            *up(2 * WIDTH, WIDTH, stride=2, padding=1),
            nn.ConvTranspose2d(WIDTH, 3, 4, stride=2, padding=1, bias=False),
            nn.Tanh(),
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(3, WIDTH, 4, stride=2, padding=1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            *down(WIDTH, 2 * WIDTH),
            nn.Conv2d(2 * WIDTH, 1, 4, bias=False),
            nn.Flatten(0),
        )


model = DCGAN


def batch(numbers):
    return numbers(4, 3, SIZE, SIZE), numbers(4, LATENT, 1, 1)


def loss(model, images, noise):
    samples = Opposed.apply(model.generator(noise))
    real, fake = model.discriminator(images), model.discriminator(samples)
    return F.binary_cross_entropy_with_logits(
        real, torch.ones_like(real)
    ) + F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))


def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=2e-3, betas=(0.5, 0.999))
