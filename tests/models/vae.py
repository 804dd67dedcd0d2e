"""A variational autoencoder of binary images, with given noise. Source: Kingma and Welling,
"Auto-Encoding Variational Bayes", 2013.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

PIXELS, WIDTH, LATENT = 12, 8, 2


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(PIXELS, WIDTH)
        self.mean, self.log_variance = nn.Linear(WIDTH, LATENT), nn.Linear(WIDTH, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, WIDTH), nn.Tanh(), nn.Linear(WIDTH, PIXELS))

    def forward(self, x, noise):
        hidden = self.hidden(x).tanh()
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + noise * (log_variance / 2).exp()
        return self.decoder(z).sigmoid(), mean, log_variance


model = VAE


def batch(numbers):
    return (numbers(5, PIXELS) > 0).double(), numbers(5, LATENT)


def loss(model, x, noise):
    reconstruction, mean, log_variance = model(x, noise)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    return F.binary_cross_entropy(reconstruction, x, reduction="sum") + divergence


def optimizer(parameters):
    return torch.optim.Adagrad(parameters, lr=0.02)
