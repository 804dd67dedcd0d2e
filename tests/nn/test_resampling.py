"""Layers that resample, pad and shuffle, and the warnings of functions, as PyTorch has them."""

import math

import pytest
from helpers.as_torch import as_torch, warned

import jaxgrad
from jaxgrad import nn


def image(torch, *shape):
    count = math.prod(shape)
    values = [math.sin(1.3 * i**2 + 0.7) for i in range(count)]
    return torch.tensor(values, requires_grad=True, dtype=torch.float64).view(*shape)


def seen(layer, x):
    """How a layer prints, what it returns, and its node."""
    output = layer(x)
    return repr(layer), output, output.grad_fn.name()


@pytest.mark.slow
@as_torch(precision=1e-10)
def test_resampling_layers(torch):
    nn, x = torch.nn, image(torch, 1, 4, 2, 3)
    layers = [
        nn.Upsample(scale_factor=2),
        nn.Upsample((3, 5), mode="bilinear", align_corners=True),
        nn.Upsample(scale_factor=(1.5, 2), mode="bicubic", recompute_scale_factor=True),
        nn.UpsamplingNearest2d(scale_factor=2),
        nn.UpsamplingBilinear2d(size=3),
        nn.PixelShuffle(2),
        nn.ChannelShuffle(groups=2),
    ]
    results = [seen(layer, x) for layer in layers]
    return results, seen(nn.PixelUnshuffle(1), x), layers[0].name, layers[2].scale_factor


@pytest.mark.slow
@as_torch(precision=1e-10)
def test_resampling_warns(torch):
    F = torch.nn.functional
    x, grid = image(torch, 1, 1, 2, 2), torch.zeros(1, 1, 1, 2, dtype=torch.float64)
    theta = torch.eye(2, 3, dtype=torch.float64)[None]
    return [
        warned(F.upsample, x, 3),
        warned(F.upsample_nearest, x, 3),
        warned(F.upsample_bilinear, x, 3),
        warned(F.grid_sample, x, grid),
        warned(F.affine_grid, theta, (1, 1, 2, 2)),
        warned(F.affine_grid, theta, (1, 1, 1, 2), True),
    ]


def test_area_interpolation_is_adaptive_average_pooling():
    x = jaxgrad.arange(6.0).view(1, 1, 6)
    result = jaxgrad.nn.functional.interpolate(x, 3, mode="area")
    assert result.flatten().tolist() == [0.5, 2.5, 4.5]


@pytest.mark.parametrize("scale", (1e20, -1e20, float("nan")))
def test_a_scale_that_gives_no_size(scale):
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t"):
        nn.functional.interpolate(jaxgrad.ones(1, 1, 2, 2), scale_factor=scale)


def test_numbers_of_the_modes_of_grids():
    """PyTorch's values."""
    modes = nn.functional.GRID_SAMPLE_INTERPOLATION_MODES
    paddings = nn.functional.GRID_SAMPLE_PADDING_MODES
    assert modes == {"bilinear": 0, "nearest": 1, "bicubic": 2}
    assert paddings == {"zeros": 0, "border": 1, "reflection": 2}
    image, grid = jaxgrad.tensor([[[[1.0, 3.0]]]]), jaxgrad.tensor([[[[0.0, 0.0], [0.9, 0.0]]]])
    numbers = modes["bilinear"], paddings["border"]
    result = jaxgrad._grid_sampler_2d_cpu_fallback(image, grid, *numbers, False)
    assert result.tolist() == [[[[2.0, 3.0]]]]
