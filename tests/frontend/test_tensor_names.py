"""Which operators are methods of `Tensor`: code asks by `hasattr`."""

import pytest

import jaxgrad

FUNCTIONS_ALONE = (
    "adaptive_max_pool2d avg_pool2d binary_cross_entropy celu channel_shuffle elu gelu glu "
    "hardtanh huber_loss kl_div l1_loss leaky_relu mish mse_loss one_hot pixel_shuffle silu "
    "softplus threshold view_as_complex view_as_real is_view alias rsub slice upsample_nearest2d"
)


@pytest.mark.parametrize("name", FUNCTIONS_ALONE.split())
def test_functions_that_are_no_methods(name):
    """PyTorch has none of these on `torch.Tensor`."""
    assert not hasattr(jaxgrad.Tensor, name) and not hasattr(jaxgrad.ones(2), name)


@pytest.mark.parametrize("name", ["relu", "softmax", "lu_solve", "triangular_solve", "fill_"])
def test_methods(name):
    """PyTorch has each of these on `torch.Tensor`."""
    assert callable(getattr(jaxgrad.Tensor, name))


def test_reversed():
    """PyTorch: `reversed` flips the first dimension, and has its gradient."""
    x = jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = reversed(x)
    (y * jaxgrad.tensor([5.0, 7.0, 9.0])).sum().backward()
    assert y.tolist() == [3.0, 2.0, 1.0] and x.grad.tolist() == [9.0, 7.0, 5.0]
    scalar = jaxgrad.tensor(2.0)
    assert reversed(scalar) is scalar and jaxgrad.tensor([2.0]).__rdiv__(1).tolist() == [0.5]
