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
