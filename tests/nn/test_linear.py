"""Linear and bilinear layers against PyTorch."""

import pytest
from helpers.layers import in_float64, irregular, of_layer

import jaxgrad


@in_float64
def test_linear_and_bilinear(torch):
    nn = torch.nn
    return [
        of_layer(torch, nn.Linear(3, 2), irregular(torch, 2, 4, 3)),
        of_layer(torch, nn.Linear(3, 2, bias=False), irregular(torch, 3)),
        of_layer(
            torch, nn.Bilinear(3, 2, 2), irregular(torch, 4, 3), irregular(torch, 4, 2, first=9)
        ),
    ]


def test_bilinear_layers_refuse_several_dtypes_and_numbers():
    layer, x = jaxgrad.nn.Bilinear(2, 2, 1), jaxgrad.ones(1, 2)
    with pytest.raises(RuntimeError, match="All tensors must have the same dtype"):
        layer(x, x.double())
    with pytest.raises(IndexError, match="Dimension specified as -1"):
        layer(x.sum(), x.sum())
