"""torch.ops.quantized: integers, scale and zero point are those of PyTorch 2.13 with FBGEMM."""

import numpy as np
import pytest
from helpers.quantized import bias, numbers, quantized, weight, weight_of_channels

import jaxgrad as torch

F, Q = torch.nn.functional, torch.ops.quantized


def of_dims(name, w, b, *places):
    return getattr(Q, f"{name}_prepack")(w, b, *places, 1)


RESULTS = {
    "linear": (
        lambda: Q.linear(quantized(2, 5), Q.linear_prepack(weight(3, 5), bias(3)), 0.04, 50),
        ([[103, 29, 118], [22, 76, 33]], 0.04, 50),
    ),
    "linear, channels": (
        lambda: Q.linear(
            quantized(2, 5), Q.linear_prepack(weight_of_channels(3, 5), bias(3)), 0.04, 50
        ),
        ([[103, 29, 117], [23, 76, 33]], 0.04, 50),
    ),
    "linear_relu": (
        lambda: Q.linear_relu(quantized(2, 5), Q.linear_prepack(weight(3, 5)), 0.04, 3),
        ([[63, 3, 64], [3, 29, 3]], 0.04, 3),
    ),
    "conv2d": (
        lambda: Q.conv2d(
            quantized(1, 2, 3, 3),
            of_dims("conv2d", weight_of_channels(2, 2, 2, 2), bias(2), [1, 1], [1, 1], [1, 1]),
            0.0613,
            40,
        ),
        (
            [
                [
                    [[33, 39, 47, 40], [21, 62, 28, 29], [41, 31, 29, 31], [34, 34, 33, 44]],
                    [[24, 63, 33, 35], [53, 23, 21, 45], [38, 43, 42, 50], [43, 46, 46, 42]],
                ]
            ],
            0.0613,
            40,
        ),
    ),
    "conv1d_relu": (
        lambda: Q.conv1d_relu(
            quantized(1, 2, 5),
            of_dims("conv1d", weight(2, 2, 2), bias(2), [2], [1], [1]),
            0.05,
            10,
        ),
        ([[[10, 10, 10], [10, 18, 20]]], 0.05, 10),
    ),
    "conv_transpose2d": (
        lambda: Q.conv_transpose2d(
            quantized(1, 2, 2, 2),
            of_dims("conv_transpose2d", weight(2, 1, 2, 2), None, [2, 2], [0, 0], [0, 0], [1, 1]),
            0.05,
            40,
        ),
        (
            [[[[61, 23, 23, 54], [26, 29, 51, 47], [26, 51, 29, 47], [49, 47, 47, 46]]]],
            0.05,
            40,
        ),
    ),
    "add": (
        lambda: Q.add(quantized(4), quantized(2, 4), 0.03, 50),
        ([[0, 106, 93, 79], [25, 79, 66, 53]], 0.03, 50),
    ),
    "mul_relu": (
        lambda: Q.mul_relu(quantized(4), quantized(2, 4), 0.01, 50),
        ([[150, 121, 91, 69], [50, 53, 50, 50]], 0.01, 50),
    ),
    "add_scalar": (
        lambda: Q.add_scalar(quantized(4), 3.0),
        ([74, 142, 135, 127], 0.027058823529411767, 0),
    ),
    "mul_scalar": (lambda: Q.mul_scalar(quantized(4), -2.0), ([245, 153, 163, 173], 0.04, 195)),
    "cat": (
        lambda: Q.cat([quantized(2), quantized(3)], 0, 0.05, 10),
        ([0, 27, 0, 27, 23], 0.05, 10),
    ),
    "hardswish": (
        lambda: Q.hardswish(quantized(5), 0.01, 50),
        ([17, 104, 89, 75, 63], 0.01, 50),
    ),
    "batch_norm2d": (
        lambda: Q.batch_norm2d(
            quantized(1, 2, 1, 2),
            *(torch.tensor(row) for row in ([1.0, 2.0], [0.5, 0.0], [0.1, 0.2], [0.5, 0.3])),
            1e-5,
            0.02,
            60,
        ),
        ([[[[7, 137]], [[140, 104]]]], 0.02, 60),
    ),
    "layer_norm": (
        lambda: Q.layer_norm(quantized(2, 3), [3], torch.ones(3), torch.zeros(3), 1e-5, 0.02, 60),
        ([[0, 101, 89], [121, 60, 0]], 0.02, 60),
    ),
    "max_pool2d": (
        lambda: F.max_pool2d(quantized(1, 1, 4, 4), 2),
        ([[[[102, 92], [95, 105]]]], 0.02, 60),
    ),
    "avg_pool2d": (
        lambda: F.avg_pool2d(quantized(1, 1, 4, 4), 2),
        ([[[[62, 67], [58, 64]]]], 0.02, 60),
    ),
    "mean": (lambda: quantized(2, 4).mean(1), ([72, 57], 0.02, 60)),
    "sigmoid": (lambda: quantized(4).sigmoid(), ([69, 179, 168, 156], 0.00390625, 0)),
    "tanh": (lambda: quantized(4).tanh(), ([31, 216, 200, 181], 0.0078125, 128)),
    "relu": (lambda: F.relu(quantized(5)), ([60, 102, 92, 82, 72], 0.02, 60)),
    "hardtanh": (
        lambda: F.hardtanh(quantized(5), -0.5, 0.3),
        ([35, 75, 75, 75, 72], 0.02, 60),
    ),
    "small numbers": (
        lambda: torch.quantize_per_tensor_dynamic(numbers(4) * 1e-3, torch.quint8, False),
        ([122, 152, 149, 145], 6.0999998822808266e-05, 138),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_kernels(name):
    compute, (integers, scale, zero_point) = RESULTS[name]
    result = compute()
    assert result.int_repr().tolist() == integers
    assert result.q_scale() == pytest.approx(scale, rel=1e-12)
    assert result.q_zero_point() == zero_point


@pytest.mark.parametrize(
    ("reduce_range", "expected"),
    [
        (True, [[2.15927, -0.84653, 2.73059], [-1.07975, 1.00621, -0.66785]]),
        (False, [[2.15596, -0.84432, 2.72739], [-1.09171, 1.00919, -0.67985]]),
    ],
)
def test_products_with_dynamic_ranges(reduce_range, expected):
    packed = Q.linear_prepack(weight(3, 5), bias(3))
    result = Q.linear_dynamic(numbers(2, 5), packed, reduce_range)
    np.testing.assert_allclose(result.tolist(), expected, atol=1e-5)


def test_products_are_exact_beyond_float32():
    """The sum of 2**17 products of the greatest integers, which float32 would round."""
    count = 2**17 + 1
    x = torch.quantize_per_tensor(torch.full((1, count), 255.0), 1.0, 0, torch.quint8)
    w = torch.quantize_per_tensor(torch.full((1, count), 127.0), 1.0, 0, torch.qint8)
    scale = 127.0 * 255 * count / 200
    assert Q.linear(x, Q.linear_prepack(w), scale, 0).int_repr().tolist() == [[200]]


def test_unpacking():
    w, b = weight(3, 5), bias(3)
    unpacked = Q.linear_unpack(Q.linear_prepack(w, b))
    assert unpacked[0].equal(w) and unpacked[1].equal(b)
    with pytest.raises(RuntimeError, match="must be quantized"):
        Q.linear_prepack(torch.ones(2, 2))
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        Q.linear_dynamic(torch.ones(1, 5).double(), Q.linear_prepack(w))


def test_writes_to_quantized_tensors():
    x = quantized(3)
    x[0] = 0.5
    assert x.tolist() == pytest.approx([0.5, 0.84, 0.64], abs=1e-6)
    x.relu_()
    assert x.fill_(-0.4).int_repr().tolist() == [40, 40, 40]
    assert (
        torch._empty_affine_quantized([2], scale=0.5, zero_point=3, dtype=torch.quint8).q_scale()
        == 0.5
    )
