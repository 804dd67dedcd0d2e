"""Pooling layers and functions as PyTorch's: options, values, gradients."""

import math

import pytest
from helpers.as_torch import as_torch, error
from helpers.layers import in_float64, irregular, of_function, ties

import jaxgrad


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


@pytest.mark.slow
@in_float64
def test_max_pooling(torch):
    """The first of equal elements gets the gradient, as in PyTorch, and the last of NaNs."""
    F, x = torch.nn.functional, ties(torch, 2, 2, 5, 6)
    lost = x.detach()
    lost[0, 0, 0, 0] = lost[0, 0, 1, 1] = math.nan
    whole = torch.arange(16).reshape(1, 4, 4)
    options = [
        (2, {}),
        (3, {"stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True}),
        ((3, 2), {"stride": (2, 1), "dilation": (1, 2)}),
    ]
    results = [
        of_function(
            torch, lambda x, s=size, o=o: F.max_pool2d(x, s, **o), x.detach(), second=size == 2
        )
        for size, o in options
    ]
    return [
        results,
        F.max_pool2d(lost, 2, return_indices=True),
        F.max_pool2d(whole, 2),
        F.max_pool1d(ties(torch, 1, 40), 18, 5, return_indices=True),
        torch.nn.MaxPool3d(2, 1)(ties(torch, 1, 2, 3, 3)),
    ]


@pytest.mark.slow
@in_float64
def test_average_pooling(torch):
    F, x = torch.nn.functional, irregular(torch, 1, 2, 5, 6)
    options = [
        {},
        {"stride": 2, "padding": 1, "ceil_mode": True},
        {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
        {"divisor_override": 5},
    ]
    means = [F.avg_pool2d(x, (3, 2), **keywords) for keywords in options]
    gradient = of_function(torch, lambda x: F.avg_pool2d(x, 2, 1, 1), x.detach())
    sizes = [1, (2, 3), (None, 4)]
    adaptive = [F.adaptive_avg_pool2d(x.detach(), size) for size in sizes]
    return [
        means,
        gradient,
        adaptive,
        of_function(torch, lambda x: F.adaptive_avg_pool1d(x, 3), irregular(torch, 2, 4)),
        F.avg_pool1d(irregular(torch, 1, 40), 18, 5, 2),
        torch.nn.AvgPool3d(2)(irregular(torch, 1, 2, 2, 4)),
    ]


def test_power_means_of_integers():
    """PyTorch's layers give these."""
    layer = jaxgrad.nn.LPPool1d(2, 2)
    assert layer(jaxgrad.arange(4).reshape(1, 4)).tolist() == [[1, pytest.approx(13**0.5)]]


@pytest.mark.parametrize("layer", ("AdaptiveMaxPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool3d"))
def test_more_bins_than_memory_has_addresses(layer):
    count = 2**62 - 1
    pool = getattr(jaxgrad.nn, layer)(count)
    x = jaxgrad.ones(2, *[2] * (int(layer[-2]) + 1))
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        pool(x)
