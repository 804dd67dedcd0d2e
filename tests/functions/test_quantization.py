"""Quantized tensors: PyTorch's integers, texts and errors."""

import copy

import numpy as np
import pytest

import jaxgrad as torch

VALUES = [-1.0, 0.0, 0.26, 1.0, 2.5, 300.0, -400.0, 7.77]


@pytest.fixture
def q():
    return torch.quantize_per_tensor(torch.tensor(VALUES), 0.1, 10, torch.quint8)


@pytest.fixture
def channels():
    x = torch.tensor(VALUES).view(2, 4)
    return torch.quantize_per_channel(
        x, torch.tensor([0.1, 0.2]), torch.tensor([0, 5]), 0, torch.qint8
    )


def test_integers_of_a_tensor(q):
    assert q.int_repr().tolist() == [0, 10, 13, 20, 35, 255, 0, 88]
    assert (q.int_repr().dtype, q.dtype, q.element_size()) == (torch.uint8, torch.quint8, 1)
    expected = [-1.0, 0.0, 0.3, 1.0, 2.5, 24.5, -1.0, 7.8]
    np.testing.assert_allclose(torch.dequantize(q).numpy(), expected, 1e-6)
    assert (q.q_scale(), q.q_zero_point(), q.is_quantized) == (0.1, 10, True)
    assert q.qscheme() is torch.per_tensor_affine
    signed = torch.quantize_per_tensor(torch.tensor(VALUES), 0.1, 0, torch.qint8)
    assert signed.int_repr().tolist() == [-10, 0, 3, 10, 25, 127, -128, 78]
    # of two integers the even one, once the zero point is added
    halves = torch.tensor([0.5, 1.5, 2.5])
    assert torch.quantize_per_tensor(halves, 1.0, 0, torch.quint8).int_repr().tolist() == [0, 2, 2]
    assert torch.quantize_per_tensor(halves, 1.0, 1, torch.quint8).int_repr().tolist() == [2, 2, 4]


def test_integers_of_channels(channels):
    assert channels.int_repr().tolist() == [[-10, 0, 3, 10], [18, 127, -128, 44]]
    assert channels.q_per_channel_scales().dtype is torch.float64
    assert channels.q_per_channel_zero_points().tolist() == [0, 5]
    assert (channels.q_per_channel_axis(), channels.qscheme()) == (0, torch.per_channel_affine)
    np.testing.assert_allclose(channels.dequantize().numpy()[1], [2.6, 24.4, -26.6, 7.8], 1e-6)


def test_text(q):
    assert repr(q[0]) == (
        "tensor(-1., size=(), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10)"
    )


def test_functions_that_move_elements(q):
    for moved in (q.view(2, 4), q[2:], torch.cat([q, q]), q.clone(), copy.deepcopy(q), q.max()):
        assert (moved.dtype, moved.q_scale(), moved.q_zero_point()) == (torch.quint8, 0.1, 10)
    assert q.view(2, 4).transpose(0, 1).int_repr().tolist()[1] == [10, 255]
    assert q.relu().int_repr().tolist() == [10, 10, 13, 20, 35, 255, 10, 88]
    assert (q == q).all() and not (q < q).any()
    assert q.copy_(torch.ones(8)).int_repr().tolist() == [20] * 8


def test_parts_of_channels_keep_their_scales(channels):
    assert channels.type() == "torch.quantized.QInt8Tensor"
    integers = channels.int_repr()
    row = channels[1]
    assert (round(row.q_scale(), 6), row.q_zero_point()) == (0.2, 5)  # as PyTorch
    assert row.int_repr().tolist() == integers[1].tolist()
    columns = channels[:, ::2]
    assert columns.q_per_channel_axis() == 0 and columns.q_per_channel_zero_points()[1] == 5
    assert columns.dequantize().tolist() == channels.dequantize()[:, ::2].tolist()
    assert channels.unsqueeze(0).q_per_channel_axis() == 1
    assert [part.q_zero_point() for part in channels.unbind()] == [0, 5]
    assert channels.split(2, 1)[1].int_repr().tolist() == integers[:, 2:].tolist()
    channels[1] = 1.0
    assert channels.int_repr().tolist() == [integers[0].tolist(), [10] * 4]
    assert channels.flatten().dequantize().tolist() == channels.dequantize().flatten().tolist()
    for call in (lambda c: c.max(), lambda c: c.view(2, 2, 2).flatten(1).roll(1)):
        with pytest.raises(NotImplementedError, match="a scale for each channel"):
            call(channels)


def test_scale_of_the_range():
    q = torch.quantize_per_tensor_dynamic(torch.tensor([-1.0, 0.0, 4.1]), torch.quint8)
    assert (q.q_zero_point(), round(q.q_scale(), 6)) == (50, 0.02)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda q: torch.quantize_per_tensor(q.dequantize(), 0.1, 300, q.dtype),
            RuntimeError,
            "zero_point 300 is above upper bound",
        ),
        (
            lambda q: torch.quantize_per_tensor(torch.tensor([1]), 0.1, 3, q.dtype),
            RuntimeError,
            "Quantize only works on Float Tensor, got Long",
        ),
        (
            lambda q: torch.quantize_per_tensor(q.dequantize(), 0.1, 3, torch.int8),
            RuntimeError,
            "ScalarType Char is not supported",
        ),
        (lambda q: q + q, NotImplementedError, "from the 'QuantizedCPU' backend"),
        (lambda q: q.numpy(), TypeError, "unsupported ScalarType QUInt8"),
        (lambda q: q.requires_grad_(), RuntimeError, "can require gradients"),
        (lambda q: q.q_per_channel_axis(), RuntimeError, "kPerChannelAffine"),
    ],
)
def test_what_raises(q, call, error, words):
    with pytest.raises(error, match=words):
        call(q)


def test_dequantize_takes_lists():
    x = torch.quantize_per_tensor(torch.tensor([0.26, 1.0]), 0.5, 0, torch.qint8)
    parts = torch.dequantize([x, x])
    assert [part.tolist() for part in parts] == [[0.5, 1.0], [0.5, 1.0]]
