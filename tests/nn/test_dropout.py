"""Dropout: against PyTorch where nothing is random, else by means."""

import math

import pytest
from helpers.as_torch import as_torch, error
from helpers.layers import irregular

import jaxgrad
from jaxgrad import nn


@as_torch("""
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    tensor([0.0, 0.0, 0.0, 0.0])
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    ValueError('dropout probability has to be between 0 and 1, but got 1.5')
    ValueError('dropout probability has to be between 0 and 1, but got -1')
""")
def test_dropout_with_probability_0_or_1_or_in_evaluation(torch):
    nn, x = torch.nn, irregular(torch, 4)
    return [
        nn.Dropout(0.0)(x),
        nn.Dropout(1.0)(x).abs(),
        nn.Dropout(0.4).eval()(x),
        torch.nn.functional.dropout(x, 0.4, training=False),
        nn.AlphaDropout(0.4).eval()(x),
        error(torch.nn.functional.dropout, x, 1.5),
        error(nn.Dropout, -1),
    ]


@pytest.mark.parametrize("layer", [nn.Dropout(0.25), nn.Dropout2d(0.25), nn.AlphaDropout(0.25)])
def test_dropout_keeps_the_mean_and_drops_its_share(layer):
    jaxgrad.manual_seed(1)
    x = jaxgrad.ones(40, 50, 2, 2, requires_grad=True)
    output = layer(x)
    channels = output.detach().numpy().reshape(2000, -1)
    kept = channels.max()
    whole = (channels == channels[:, :1]).all(1)
    assert whole.all() == isinstance(layer, nn.Dropout2d)
    count = whole.sum() if isinstance(layer, nn.Dropout2d) else channels.size
    error = math.sqrt(0.25 * 0.75 / count)
    assert abs((channels < kept).mean() - 0.25) < 5 * error
    output.sum().backward()
    gradient = x.grad.numpy().reshape(2000, -1)
    assert ((gradient == 0) == (channels < kept)).all()
    if not isinstance(layer, nn.AlphaDropout):
        assert kept == pytest.approx(4 / 3) and gradient.max() == pytest.approx(4 / 3)
        x = jaxgrad.ones(3, 4, 2, 2)
        inside = type(layer)(0.5, inplace=True)
        assert inside(x) is x and set(x.reshape(-1).tolist()) <= {0.0, 2.0}


def test_dropout_of_tensors_without_dimensions():
    one = jaxgrad.tensor(1.0)
    values = {nn.functional.dropout(one, 0.5).item() for _ in range(40)}
    assert values == {0.0, 2.0}
    assert nn.functional.alpha_dropout(one, 0.5).shape == ()


def test_native_dropout_backward():
    grad = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    backward = jaxgrad.ops.native_dropout_backward
    result = backward(grad, jaxgrad.tensor([True, False]), 2.0)
    assert result.tolist() == [2, 0]
    assert jaxgrad.autograd.grad(result.sum(), grad)[0].tolist() == [2, 0]


def test_channels_of_tensors_of_other_ranks():
    """What PyTorch 2.13 drew: dropout3d takes an input of two dimensions as one sample."""
    functional, x = nn.functional, jaxgrad.ones(8, 2)
    kept = {
        "dropout2d": [1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1],
        "dropout3d": [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0],
    }
    for name, expected in kept.items():
        drop = getattr(functional, name)
        with pytest.warns(UserWarning, match="Received a 2-D input"):
            jaxgrad.manual_seed(1)
            assert (drop(x).flatten() > 0).int().tolist() == expected
        with (
            pytest.warns(UserWarning),
            pytest.raises(RuntimeError, match="Feature dropout requires"),
        ):
            drop(x[0, 0])
        with pytest.warns(UserWarning):
            assert drop(x[0, 0], training=False).item() == 1
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Feature dropout requires"):
        functional.dropout2d(x[0])
    assert functional.feature_alpha_dropout(x[0], 1.0, True).tolist() == [0, 0]


@pytest.mark.parametrize("layer", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_layers_that_never_write_to_their_input(layer):
    """PyTorch's layers do not pass `inplace` on."""
    x = jaxgrad.ones(4, 4)
    layer(0.5, inplace=True)(x)
    assert x.tolist() == [[1] * 4] * 4
