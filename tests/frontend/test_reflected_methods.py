"""Operators of Python on a tensor and an array of NumPy. The dtypes are those of PyTorch, where
NumPy computes `tensor + array`.
"""

import operator

import numpy as np
import pytest

import jaxgrad as torch

INTEGERS, FLOATS = [1, 2, 3], np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize(
    ("name", "dtype", "numbers"),
    [
        ("add", torch.float64, [2.0, 4.0, 6.0]),
        ("sub", torch.float64, [0.0, 0.0, 0.0]),
        ("mul", torch.float64, [1.0, 4.0, 9.0]),
        ("truediv", torch.float64, [1.0, 1.0, 1.0]),
        ("floordiv", torch.float64, [1.0, 1.0, 1.0]),
        ("mod", torch.float64, [0.0, 0.0, 0.0]),
        ("pow", torch.float64, [1.0, 4.0, 27.0]),
        ("matmul", torch.float64, 14.0),
        ("eq", torch.bool, [True, True, True]),
    ],
)
def test_dtypes_beside_arrays(name, dtype, numbers):
    x = torch.tensor(INTEGERS, dtype=torch.int32)
    result = getattr(operator, name)(x, FLOATS)
    assert (result.dtype, result.tolist()) == (dtype, numbers)
    compiled = torch.jit(lambda x: getattr(operator, name)(x, FLOATS))(x)
    assert (compiled.dtype, compiled.tolist()) == (dtype, numbers)


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [
        (torch.tensor([1.0, 2.0]), np.array(2.0), torch.float64),  # also without dimensions
        (torch.tensor(1.0), np.array([2.0]), torch.float64),
        (torch.tensor([1], dtype=torch.uint8), np.array([2], np.int8), torch.int16),
        (torch.tensor([1], dtype=torch.int8), np.array([2.0], np.float16), torch.float16),
        (torch.tensor([1.0]), np.float64(2.0), torch.float32),  # a number
        (torch.tensor([1]), np.array([1 + 1j], np.complex64), torch.complex128),
        (torch.tensor([True]), np.array([True]), torch.uint8),
    ],
)
def test_promotion_is_that_of_numpy(left, right, dtype):
    assert (left * right).dtype is dtype
    assert (right * left).dtype is dtype  # which PyTorch refuses, but for numbers


def test_arrays_that_numpy_refuses():
    with pytest.raises(TypeError, match="bitwise_and"):
        torch.tensor(INTEGERS) & FLOATS
    with pytest.raises(TypeError, match="subtract"):
        torch.tensor([True]) - np.array([True])
    with pytest.raises(TypeError, match="add"):
        torch.tensor([1]) + np.array(["x"])


def test_writes_beside_arrays_make_a_new_tensor():
    x = y = torch.tensor([1.5, 2.0])
    y += np.array([1, 2])
    assert (y.dtype, y.tolist(), x.tolist()) == (torch.float64, [2.5, 4.0], [1.5, 2.0])
    y = x
    y @= np.array([1.0, 2.0], np.float32)
    assert (y.item(), x.tolist()) == (5.5, [1.5, 2.0])
    x += np.float64(1)  # a number
    assert x.tolist() == [2.5, 3.0]


def test_division_of_an_array():
    # PyTorch: 1 / x in float32, times the array
    result = FLOATS / torch.tensor([2, 4, 8], dtype=torch.int32)
    assert (result.dtype, result.tolist()) == (torch.float32, [0.5, 0.5, 0.375])


def test_gradients_beside_arrays():
    """By the rules of products and powers; PyTorch refuses tensors that require grad here."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * np.array([3.0, 4.0]) + np.array([2.0, 3.0]) ** x).sum().backward()
    assert x.grad.dtype is torch.float32
    expected = [3 + 2 * np.log(2), 4 + 9 * np.log(3)]
    np.testing.assert_allclose(x.grad.tolist(), expected, 1e-6)
