"""Complex functions on both sides of their branch cuts, which the sign of a zero tells apart."""

import cmath

import pytest

import jaxgrad as torch

PARTS = (0.0, -0.0, 0.5, -0.5, 3.0, -3.0)
POINTS = [complex(real, imag) for real in PARTS for imag in PARTS]


@pytest.mark.parametrize("name", ["sqrt", "asin", "acos", "asinh", "acosh"])
def test_signs_of_zeros_choose_the_side_of_the_cut(name):
    """Python's own functions follow C99, as PyTorch's do."""
    points = torch.tensor(POINTS, dtype=torch.complex128)
    for point, value in zip(POINTS, getattr(torch, name)(points).tolist(), strict=True):
        assert value == pytest.approx(getattr(cmath, name)(point), abs=1e-14), point


def test_power_one_half_follows_the_sign_of_zero():
    below = torch.tensor([complex(-4, -0.0), complex(-4, 0.0)])
    assert (below**0.5).tolist() == [-2j, 2j]


def test_gradient_of_sqrt_below_its_cut():
    point = torch.tensor(complex(-4, -0.0), requires_grad=True)
    (grad,) = torch.autograd.grad(point.sqrt().imag, point)
    assert grad.item() == pytest.approx(0.25)  # of -2 * sqrt(-x / 4) at x = -4


def test_gradient_of_acosh_below_its_cut():
    """-1 / sqrt(x ** 2 - 1) left of -1, on both sides; PyTorch has the opposite sign below."""
    for side in (0.0, -0.0):
        point = torch.tensor(complex(-2, side), requires_grad=True)
        (grad,) = torch.autograd.grad(point.acosh().real, point)
        assert grad.real.item() == pytest.approx(-(3**-0.5))
