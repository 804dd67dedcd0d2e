"""Batch normalization over the batches of several processes."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import communication as kinds
from ..core import world
from ..frontend.factories import full
from ..tape.communicate import among
from ..tape.tensor import Tensor, current, held, spans_processes


def takes_part(input: Tensor, group: Any) -> bool:
    """Whether an input is a part of a batch that other processes have parts of, too."""
    if group is None or group.size() == 1 or not world.is_several():
        return False
    return not spans_processes(current(input)) and not kinds.is_global(held(input))


def sync_batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: Any,
) -> Tensor:
    """Normalize each channel of (N, C, ...) by its mean and variance over the batches of all
    processes of a group, and let the running statistics follow these.

    The gradient goes through the statistics of all. Raises ValueError for one value per channel.
    """
    dims = [0, *range(2, input.ndim)]
    shape = [1, -1] + [1] * (input.ndim - 2)
    wide = input.float() if input.element_size() < 4 else input
    count = full((1,), input.numel() // input.shape[1], dtype=wide.dtype)
    # batches may differ in length
    sums = among(ops.cat([wide.sum(dims), count]), group, kinds.AllReduce)
    total = sums[-1].detach()
    mean = sums[:-1] / total
    centered = wide - mean.view(shape)
    variance = among((centered * centered).sum(dims), group, kinds.AllReduce) / total
    with no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            unbiased = variance * (total / (total - 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    output = centered * ops.rsqrt(variance + eps).view(shape)
    if weight is not None:
        output = output * weight.view(shape)
    if bias is not None:
        output = output + bias.view(shape)
    return output.to(input.dtype)
