"""Activation layers against PyTorch."""

import pytest
from helpers.layers import in_float64, irregular, of_function, of_layer

import jaxgrad
from jaxgrad import nn


@pytest.mark.slow
@in_float64
def test_activation_layers(torch):
    nn = torch.nn
    x = torch.tensor([-5.0, -2.5, -0.5, -0.1, 0.0, 0.4, 1.5, 2.9, 25.0])
    layers = [
        nn.ReLU(),
        nn.ReLU6(),
        nn.SELU(),
        nn.SiLU(),
        nn.Mish(),
        nn.Hardswish(),
        nn.ELU(0.5),
        nn.CELU(2.0),
        nn.LeakyReLU(0.2),
        nn.Hardtanh(-0.3, 2.0),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.Softplus(2, 5),
        nn.Hardshrink(),
        nn.Softshrink(0.3),
        nn.Sigmoid(),
        nn.Tanh(),
        nn.LogSigmoid(),
        nn.Softsign(),
        nn.Tanhshrink(),
        nn.Softmax(0),
        nn.Softmin(0),
        nn.LogSoftmax(0),
        nn.Threshold(0.2, 3.0),
    ]
    results = []
    for layer in layers:
        leaf = x.detach().requires_grad_()
        output = layer(leaf)
        (output * x.cos()).sum().backward()
        results.append([output.detach(), leaf.grad])
    pairs = irregular(torch, 2, 4, 3)
    return [
        results,
        of_layer(torch, nn.PReLU(4), pairs.clone()),
        of_layer(torch, nn.PReLU(), pairs.clone()),
        of_function(torch, nn.GLU(1), pairs.clone()),
        nn.Softmax2d()(irregular(torch, 2, 1, 2)),
        nn.ReLU(inplace=True)(x.detach()),
        nn.Hardswish(inplace=True)(x.detach()),
    ]


def test_activation_layers_call_their_functions():
    x = jaxgrad.tensor([-2.0, -0.5, 0.0, 0.4, 3.0])
    layers = {"relu": nn.ReLU(), "elu": nn.ELU(), "hardtanh": nn.Hardtanh(), "silu": nn.SiLU()}
    for name, layer in layers.items():
        assert layer(x).tolist() == getattr(nn.functional, name)(x).tolist()


def test_old_names_of_the_limits_of_hardtanh():
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and ren"):
        layer = nn.Hardtanh(min_value=-2.0)
    with pytest.warns(FutureWarning, match="keyword argument `max_value` is deprecated and ren"):
        other = nn.Hardtanh(max_value=0.5)
    x = jaxgrad.tensor([-3.0, -1.5, 3.0])
    assert layer(x).tolist() == [-2, -1.5, 1] and other(x).tolist() == [-1, -1, 0.5]
    assert repr(layer) == "Hardtanh(min_val=-2.0, max_val=1.0)"


@pytest.mark.parametrize("training", (True, False))
def test_a_random_slope_in_place_under_strict_versions(training):
    with jaxgrad.autograd.graph.strict_versions():
        x = jaxgrad.tensor([-1.0, 2.0], requires_grad=True)
        nn.functional.rrelu(x + 0, 0.25, 0.25, training, inplace=True).sum().backward()
    assert x.grad.tolist() == [0.25, 1]


def test_limits_of_hardtanh():
    x = jaxgrad.tensor([0, 1, 5], dtype=jaxgrad.uint8)
    assert nn.functional.hardtanh(x, 1, 4).tolist() == [1, 1, 4]
    for function in (nn.functional.hardtanh, jaxgrad.ops.hardtanh_):
        with pytest.raises(RuntimeError, match="unsigned type with negative limits"):
            function(x, -1, 1)
    assert x.tolist() == [0, 1, 5]
    with pytest.raises(AssertionError, match="must be greater than min_val"):
        nn.Hardtanh(1, -1)
