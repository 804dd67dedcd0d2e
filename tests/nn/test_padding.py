"""Padding, as a function and as layers, against PyTorch."""

import math

import pytest
from helpers.as_torch import as_torch, error
from helpers.layers import in_float64, irregular, of_function


@pytest.mark.slow
@in_float64
def test_pad_in_all_modes(torch):
    F, x = torch.nn.functional, irregular(torch, 1, 2, 4, 3)
    results = [F.pad(x, (1, 2, -1, 3), value=2.5), F.pad(x, (-1, -1))]
    for mode in ("reflect", "replicate", "circular"):
        results.append(of_function(torch, lambda x, m=mode: F.pad(x, (1, 2, 3, -1), m), x.detach()))
    return [
        results,
        error(F.pad, x, (1,)),
        error(F.pad, x, (3, 0, 0, 0), "reflect", words="Padding size should be less than the"),
        error(F.pad, x, (1, 1), "bent", words="Unrecognised padding mode bent"),
    ]


def image(torch, *shape):
    count = math.prod(shape)
    values = [math.sin(1.3 * i**2 + 0.7) for i in range(count)]
    return torch.tensor(values, requires_grad=True, dtype=torch.float64).view(*shape)


def seen(layer, x):
    """How a layer prints, what it returns, and its node."""
    output = layer(x)
    return repr(layer), output, output.grad_fn.name()


@as_torch(precision=1e-10)
def test_padding_layers(torch):
    nn, x = torch.nn, image(torch, 1, 1, 3, 2, 3)
    results = []
    for dimensions in (1, 2, 3):
        line = x[(0,) * (3 - dimensions)]
        for kind in ("Reflection", "Replication", "Zero", "Constant"):
            more = (7.0,) if kind == "Constant" else ()
            layer = getattr(nn, f"{kind}Pad{dimensions}d")
            results.append(seen(layer(1, *more), line))
        circular = getattr(nn, f"CircularPad{dimensions}d")((1, 0) * dimensions)
        results.append((repr(circular), circular(line)))
    refused = error(nn.CircularPad2d(1), image(torch, 2, 3), words="expected 3D or 4D input")
    return results, refused, nn.ReflectionPad1d(1).state_dict()
