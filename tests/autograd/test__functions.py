"""Functions of the first PyTorch, and what tensors and contexts had then."""

import pytest

import jaxgrad as torch
from jaxgrad.autograd._functions import Resize, Type


def test_resize_and_type_have_gradients():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    result = Resize.apply(x, (3, 2))
    assert result.shape == (3, 2) and type(result.grad_fn).__name__ == "ResizeBackward"
    (result * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 1, 2], [3, 4, 5]]
    (gradient,) = torch.autograd.grad(Type.apply(x, torch.float64).sum(), x)
    assert gradient.dtype is torch.float32 and gradient.tolist() == [[1] * 3] * 2
    with pytest.raises(RuntimeError, match="requested resize to 4 "):
        Resize.apply(x, (4,))


def test_attributes_that_cannot_be_deleted():
    x = torch.ones(2, requires_grad=True) * 1
    for name, text in {"requires_grad": "must be a bool", "_grad_fn": "Detach tensor"}.items():
        with pytest.raises(RuntimeError, match=text):
            delattr(x, name)
    with pytest.raises(RuntimeError, match="_grad_fn can be only set to None"):
        x._grad_fn = 3
    x._grad_fn = None
    assert not x.requires_grad


def test_saved_variables_warn():
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_variables
            return 2 * x * gradient

    x = torch.tensor(3.0, requires_grad=True)
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        Product.apply(x).backward()
    assert x.grad.item() == 6
