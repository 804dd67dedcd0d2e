"""Numbers, quantized tensors and weights without a pattern."""

import jaxgrad as torch


def numbers(*shape):
    """Numbers in [-1, 1]."""
    count = torch.ones(shape).numel()
    return ((torch.arange(count) * 37 % 41 - 20) / 20.0).reshape(shape)


def quantized(*shape):
    return torch.quantize_per_tensor(numbers(*shape), 0.02, 60, torch.quint8)


def weight(*shape):
    return torch.quantize_per_tensor(numbers(*shape), 0.009, 0, torch.qint8)


def weight_of_channels(*shape):
    scales = torch.arange(1, shape[0] + 1) * 0.004 + 0.004
    starts = torch.zeros(shape[0], dtype=torch.int64)
    return torch.quantize_per_channel(numbers(*shape), scales, starts, 0, torch.qint8)


def bias(count):
    return torch.arange(count) * 0.25 - 0.25


def filled(module):
    """A module whose parameters are these numbers."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(numbers(*parameter.shape))
    return module
