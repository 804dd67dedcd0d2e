"""Functions of quantized tensors: integers are those of PyTorch 2.13."""

import pytest
from helpers.quantized import bias, numbers, quantized, weight

import jaxgrad as torch

qF = torch.ao.nn.quantized.functional

CALLS = [
    (lambda: qF.linear(quantized(2, 3), weight(2, 3), bias(2), 0.02, 30), [124, 20, 7, 43]),
    (lambda: qF.linear(quantized(2, 3), weight(2, 3)), [166, 50, 49, 73]),
    (lambda: qF.conv2d(quantized(1, 1, 3, 3), weight(1, 1, 2, 2), None, scale=0.03), [70, 0, 0, 0]),
    (lambda: qF.conv1d(quantized(1, 2, 4), weight(1, 2, 2), bias(1), 2, 1, scale=0.03), [0, 0, 0]),
    (lambda: qF.leaky_relu(quantized(5), 0.5, scale=0.01, zero_point=90), [40, 174, 154, 134, 114]),
    (lambda: qF.elu(quantized(5), 0.01, 100, 2.0), [0, 184, 164, 144, 124]),
    (lambda: qF.celu(quantized(5), 0.01, 100), [37, 184, 164, 144, 124]),
    (lambda: qF.hardswish(quantized(5), 0.01, 100), [67, 154, 139, 125, 113]),
    (lambda: qF.clamp(quantized(5), -0.5, 0.5), [35, 85, 85, 82, 72]),
    (lambda: qF.hardtanh(quantized(5), 0.0, 0.5), [60, 85, 85, 82, 72]),
    (lambda: qF.threshold(quantized(5), 0.1, 0.0), [60, 102, 92, 82, 72]),
    (lambda: qF.avg_pool2d(quantized(1, 1, 2, 4), 2), [62, 67]),
    (lambda: qF.max_pool2d(quantized(1, 1, 2, 4), 2), [102, 92]),
    (
        lambda: qF.upsample_nearest(quantized(1, 1, 1, 2), scale_factor=2),
        [10, 10, 102, 102, 10, 10, 102, 102],
    ),
]


@pytest.mark.parametrize(("call", "expected"), CALLS)
def test_function(call, expected):
    assert call().int_repr().flatten().tolist() == expected


def test_numbers_are_refused():
    with pytest.raises(ValueError, match=r"Input to 'quantized\.linear' must be quantized!"):
        qF.linear(numbers(2, 3), weight(2, 3))
    with pytest.raises(NotImplementedError, match="only zero-padding is supported, not reflect"):
        qF.conv1d(quantized(1, 2, 4), weight(1, 2, 2), None, padding_mode="reflect")
