"""Elements rounded to what integers stand for: NumPy in float64 is the oracle."""

import numpy as np
import pytest

import jaxgrad as torch

VALUES = np.array([[-3.0, -0.26, 0.3], [0.74, 1.4, 10.0]], np.float32)


def rounded(values, scale, zero_point, low, high):
    """The rounded values, and which are within the range."""
    steps = np.rint(values.astype(float) / scale) + zero_point
    return (np.clip(steps, low, high) - zero_point) * scale, (steps >= low) & (steps <= high)


def check(call, expected, inside):
    x = torch.tensor(VALUES, requires_grad=True)
    result = call(x)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-6)
    weight = torch.arange(6.0).reshape(2, 3) + 1
    (result * weight).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(inside, weight.numpy(), 0))
    tangents = torch.func.jvp(call, (torch.tensor(VALUES),), (weight,))[1]
    np.testing.assert_array_equal(tangents.numpy(), np.where(inside, weight.numpy(), 0))


@pytest.mark.parametrize("kind", [float, torch.tensor])
def test_fake_quantize_per_tensor(kind):
    zero_point = 1 if kind is float else torch.tensor([1], dtype=torch.int32)
    check(
        lambda x: torch.fake_quantize_per_tensor_affine(x, kind(0.5), zero_point, -2, 3),
        *rounded(VALUES, 0.5, 1, -2, 3),
    )


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
def test_fake_quantize_per_channel(dtype):
    scale, zero_point = np.array([0.25, 0.5, 2.0]), np.array([0, 1, -1])
    check(
        lambda x: torch.fake_quantize_per_channel_affine(
            x, torch.tensor(scale).float(), torch.tensor(zero_point, dtype=dtype), -1, -2, 3
        ),
        *rounded(VALUES, scale, zero_point, -2, 3),
    )


def test_halves_keep_their_dtype():
    x = torch.tensor([0.3, 0.8], dtype=torch.bfloat16)
    result = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -2, 2)
    assert result.dtype is torch.bfloat16 and result.tolist() == [0.5, 1.0]


def test_errors_of_fake_quantize():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"zero_point.* must be between"):
        torch.fake_quantize_per_tensor_affine(x, 0.5, 9, -2, 3)
    with pytest.raises(RuntimeError, match=r"quant_min.* should be less"):
        torch.fake_quantize_per_tensor_affine(x, 0.5, 0, 3, -3)
    with pytest.raises(RuntimeError, match="Zero-point must be Int32, Float or Half, found Long"):
        start = torch.zeros(2, dtype=torch.int64)
        torch.fake_quantize_per_channel_affine(x, torch.ones(2), start, 0, 0, 3)
    with pytest.raises(RuntimeError, match="Scale must be Float or BFloat16, found Double"):
        scale = torch.ones(2, dtype=torch.float64)
        torch.fake_quantize_per_channel_affine(x, scale, torch.zeros(2), 0, 0, 3)
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        torch.fake_quantize_per_tensor_affine(x.int(), 0.5, 0, -3, 3)
    with pytest.raises(RuntimeError, match="not consistent with input"):
        torch.fake_quantize_per_channel_affine(x, torch.ones(3), torch.zeros(3), 0, -3, 3)


def test_the_zero_point_of_a_tensor_is_an_integer():
    x, scale, start = torch.tensor([0.5, 1.5, -2.0, 9.0]), torch.tensor([1.0]), torch.tensor([3.0])
    result = torch.fake_quantize_per_tensor_affine(x, scale, start, 0, 7)
    assert result.tolist() == [0, 2, -2, 4]  # of PyTorch 2.13, whose zero points are whole
