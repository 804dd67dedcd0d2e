"""Numbers in the place of an operator's first tensor."""

from itertools import product

import pytest

import jaxgrad as torch

NAMES = "add", "mul", "div", "true_divide", "sub", "subtract"
CALLS = [*product(NAMES, (2, 2.5, 2j)), *product(NAMES[:4], [True])]  # no difference of a bool


@pytest.mark.parametrize(("name", "number"), CALLS)
def test_numbers_before_a_tensor(name, number):
    """As a tensor of the number, in the dtype of PyTorch's promotion of numbers."""
    x = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
    function = getattr(torch, name)
    first, result = function(number, x), function(number, x)
    is_complex = isinstance(number, complex)
    dtype = torch.complex128 if is_complex else torch.float64
    full = torch.tensor(number, dtype=dtype).expand(2)
    expected = function(full, x)
    assert result.dtype is expected.dtype
    assert first.tolist() == result.tolist() == expected.tolist()
    (grad,) = torch.autograd.grad(result.abs().sum(), x)
    assert grad.tolist() == torch.autograd.grad(expected.abs().sum(), x)[0].tolist()


def test_dtypes_of_numbers_before_a_tensor():
    i, h = torch.tensor([2, 3]), torch.ones(1, dtype=torch.float16)
    assert torch.mul(2.5, i).dtype is torch.float32 and torch.mul(2, i).dtype is torch.int64
    assert torch.add(1.5, h).dtype is torch.float16 and torch.div(3, i).tolist() == [1.5, 1]
    assert torch.floor_divide(7, i).tolist() == [3, 2] and (7.5 // i).tolist() == [3, 2]
    assert torch.sub(1, i, alpha=2).tolist() == [-3, -5]
    small = torch.tensor([1, 2], dtype=torch.uint8)
    assert torch.div(-3, small).tolist() == [-3, -1.5] and torch.div(300, small).tolist() == [
        300,
        150,
    ]
    for result in (torch.sub(-3, small), torch.div(-3, small, rounding_mode="floor")):
        assert result.dtype is torch.uint8
    assert torch.sub(-3, small).tolist() == [252, 251]
    assert torch.floor_divide(-3, small).tolist() == [253, 126]  # as in PyTorch, -3 is 253 there
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        torch.maximum(1, i)


def test_varying_numbers_before_a_tensor():
    shifted = torch.jit(lambda number, x: torch.sub(number, x) * torch.div(number, x))
    x = torch.tensor([1.0, 2.0])
    for number in (3.0, 4.0, 5.0, 6.0):
        assert shifted(number, x).tolist() == [(number - 1) * number, (number - 2) * number / 2]
    assert len(shifted.traces) == 2


def test_two_numbers_make_a_tensor():
    """The numbers and dtypes are those of PyTorch 2.13."""
    results = torch.div(8, 3), torch.div(8, 3, rounding_mode="trunc"), torch.add(2, 1.5)
    results += torch.mul(True, 2), torch.floor_divide(-7, 2), torch.sub(2**40, 1)
    dtypes = [torch.float32, torch.int64, torch.float32, torch.int64, torch.int64, torch.int64]
    assert [result.dtype for result in results] == dtypes
    assert [result.item() for result in results[1:]] == [2, 3.5, 2, -4, 2**40 - 1]
    assert abs(results[0].item() - 8 / 3) < 1e-6 and results[0].shape == ()


@pytest.mark.parametrize("name", ["sin", "pow", "atan2", "eq", "xlogy", "remainder", "lerp"])
def test_numbers_alone_are_refused(name):
    numbers = [1, 2, 3] if name == "lerp" else [1] if name == "sin" else [1, 2]
    with pytest.raises(
        TypeError, match="argument 'input' \\(position 1\\) must be Tensor, not int"
    ):
        getattr(torch, name)(*numbers)


def test_quotients_of_numbers_beyond_the_dtype_of_a_tensor():
    """The numbers as PyTorch 2.13 prints them: only a rounded quotient cuts 300 to 44."""
    three = torch.tensor(3, dtype=torch.uint8)
    assert torch.div(300, three).item() == torch.true_divide(300, three).item() == 100
    assert torch.div(-3, three).item() == -1
    assert torch.div(300, three, rounding_mode="floor").item() == 14
