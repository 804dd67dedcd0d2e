"""Pooling layers and functions as PyTorch's: options, values, gradients."""

import math

import pytest
from helpers.as_torch import as_torch, error


def numbers(torch, *shape):
    values = [math.sin(1.3 * i**2 + 0.7) for i in range(math.prod(shape))]
    return torch.tensor(values).reshape(shape)


@as_torch
def test_reprs_and_options_of_pooling_layers(torch):
    nn = torch.nn
    layers = [
        nn.MaxPool2d(2, ceil_mode=True),
        nn.AvgPool1d(2),
        nn.AvgPool3d((2, 1, 1), padding=1),
        nn.AdaptiveAvgPool3d((None, 2, 1)),
        nn.AdaptiveMaxPool2d(2, True),
        nn.LPPool1d(2, 3),
        nn.LPPool2d(1.5, (3, 2), ceil_mode=True),
        nn.MaxUnpool1d(2),
        nn.MaxUnpool3d((2, 1, 2), 3),
        nn.FractionalMaxPool2d(2, output_ratio=0.5),
    ]
    fractional = nn.FractionalMaxPool3d(2, 2, _random_samples=torch.ones(1, 1, 3))
    return [
        [repr(layer) for layer in layers],
        [layers[-1].kernel_size, layers[-1].output_size, layers[-1].output_ratio],
        [*fractional.state_dict()],
        error(nn.FractionalMaxPool2d, 2, words="requires specifying either an output size"),
        error(nn.FractionalMaxPool2d, 2, 2, 0.5, words="only one of output_size and output_ratio"),
        error(nn.FractionalMaxPool3d, 2, None, 1.5, words="output_ratio must be between 0 and 1"),
    ]


@pytest.mark.slow
@as_torch(precision=1e-6)
def test_values_of_pooling_layers(torch):
    nn, line, image = torch.nn, numbers(torch, 1, 2, 7), numbers(torch, 1, 1, 5, 6)
    volume = numbers(torch, 1, 1, 4, 3, 4)
    samples = torch.tensor([[[0.3, 0.8]]])
    pooled, indices = nn.MaxPool2d(2, return_indices=True)(image)
    return [
        nn.AdaptiveMaxPool1d(3, return_indices=True)(line),
        nn.AdaptiveMaxPool3d((2, None, 3))(volume),
        nn.AdaptiveAvgPool3d(2)(volume),
        nn.LPPool2d(2, 2, 1)(image),
        nn.LPPool3d(2.0, 2)(volume),
        nn.FractionalMaxPool2d(2, (3, 4), return_indices=True, _random_samples=samples)(image),
        nn.MaxUnpool2d(2)(pooled, indices, output_size=image.size()),
        nn.functional.max_pool3d_with_indices(volume, 2, 1),
    ]


@pytest.mark.slow
@as_torch(precision=1e-6)
def test_max_unpooling_inverts_max_pooling(torch):
    x = numbers(torch, 1, 4, 4).detach().requires_grad_()
    F = torch.nn.functional
    restored = F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
    (restored**2).sum().backward()
    return [restored, x.grad]
