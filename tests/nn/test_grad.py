"""torch.nn.grad: gradients of convolutions."""

import pytest
from helpers.as_torch import as_torch

import jaxgrad as torch


@as_torch
def test_gradients_of_convolutions(torch):
    grad = torch.nn.grad
    x, w = torch.arange(10.0).reshape(1, 2, 5), torch.arange(12.0).reshape(2, 2, 3)
    y, image, kernel = torch.ones(1, 2, 3), torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    return [
        grad.conv1d_input(x.shape, w, y),
        grad.conv1d_weight(x, w.shape, y),
        grad.conv1d_weight(x, w.shape, torch.ones(1, 2, 2), stride=2),
        grad.conv2d_input(image.shape, kernel, torch.ones(1, 1, 3, 3)),
        grad.conv2d_weight(image, kernel.shape, torch.ones(1, 1, 5, 5), padding=1),
        grad.conv3d_input((1, 1, 2, 2, 2), torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 2, 2, 2)),
    ]


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_equal_to_those_of_autograd(ndim):
    x = torch.randn(2, 4, *[5] * ndim, dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 2, *[3] * ndim, dtype=torch.float64, requires_grad=True)
    settings = {"stride": 2, "padding": 1, "groups": 2}
    y = getattr(torch.nn.functional, f"conv{ndim}d")(x, w, **settings)
    y.backward(torch.ones_like(y))
    gradient = getattr(torch.nn.grad, f"conv{ndim}d_input")
    torch.testing.assert_close(gradient(x.shape, w, torch.ones_like(y), **settings), x.grad)
    gradient = getattr(torch.nn.grad, f"conv{ndim}d_weight")
    torch.testing.assert_close(gradient(x, w.shape, torch.ones_like(y), **settings), w.grad)
