"""Normalization to mean 0 and variance 1 over features, batches or groups of channels."""

from __future__ import annotations

import math

from .. import ops
from ..functions import normalization
from ..tape.torch_function import api_boundary
from . import functional


@api_boundary
def layer_norm(input, normalized_shape, weight=None, bias=None, eps: float = 1e-5):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions.

    input: (*, *normalized_shape), floating point; the result has its shape and dtype. weight, bias:
    of `normalized_shape`, or None. The variance is the biased one.
    Raises RuntimeError for shapes that do not fit, NotImplementedError for an integer dtype.
    Source: Ba et al., "Layer Normalization", 2016.

    >>> F.layer_norm(jaxgrad.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    return ops.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@api_boundary
def rms_norm(input, normalized_shape, weight=None, eps: float | None = None):
    """Return `x / sqrt(mean(x**2) + eps) * weight` over the last dimensions.

    input: (*, *normalized_shape), floating point; the result has its shape and dtype. weight: of
    `normalized_shape`, or None. eps: the machine epsilon of the dtype by default.
    Errors are those of `layer_norm`.
    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    >>> F.rms_norm(jaxgrad.tensor([1.0, 7.0]), (2,))
    tensor([0.2000, 1.4000])
    """
    return ops._fused_rms_norm(input, normalized_shape, weight, eps)[0]


@api_boundary
def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each channel.

    input: (N, C, ...), floating point; the result has its shape and dtype. weight, bias,
    running_mean, running_var: (C,) or None. training: use the mean and biased variance of the
    batch, and update `running = (1 - momentum) * running + momentum * batch` in place, with the
    unbiased variance, unless the batch is empty; otherwise use the running statistics. Raises
    ValueError for one element per channel in training, RuntimeError for other sizes or missing
    running statistics. Source: Ioffe and Szegedy, "Batch Normalization", 2015.

    >>> F.batch_norm(jaxgrad.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        _refuse_one_value(input, input.shape[0] if input.ndim else 1)
    if eps < 0 or (training and eps == 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    return normalization.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _refuse_one_value(input, count):
    """Raise if a channel or group has one element, whose variance is 0: `count` times its size."""
    if count * math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )


@api_boundary
def group_norm(input, num_groups: int, weight=None, bias=None, eps: float = 1e-5):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and group of
    channels.

    input: (N, C, ...), floating point; the result has its shape and dtype. num_groups: divides C.
    weight, bias: (C,) or None. Raises RuntimeError for shapes that do not fit.
    Source: Wu and He, "Group Normalization", 2018.

    >>> F.group_norm(jaxgrad.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.ndim >= 2:
        _refuse_one_value(input, input.shape[0] * input.shape[1] // num_groups)
    return normalization.group_norm(input, num_groups, weight, bias, eps)


@api_boundary
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and channel.

    input: (N, C, ...), floating point. use_input_stats: False uses the running statistics, as
    `batch_norm` does. Running statistics are updated with the means over the batch. Raises
    ValueError for one element per channel. Source: Ulyanov et al., "Instance Normalization", 2016.

    >>> F.instance_norm(jaxgrad.tensor([[[1.0, 3.0]], [[0.0, 8.0]]]))
    tensor([[[-1.0000,  1.0000]],
    <BLANKLINE>
            [[-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    return normalization.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps
    )


@api_boundary
def local_response_norm(input, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
    """Return `x / (k + alpha * mean of x**2 over `size` neighbouring channels) ** beta`.

    input: (N, C, L) or (N, C, H, W, ...), floating point; the result has its shape and dtype.
    Raises ValueError for fewer than three dimensions.
    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Networks", 2012.

    >>> F.local_response_norm(jaxgrad.tensor([[[3.0], [4.0]]]), 2, alpha=2.0, beta=0.5, k=0.0)
    tensor([[[1.0000],
             [0.8000]]])
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    squares, before, after = input * input, size // 2, (size - 1) // 2
    if input.ndim == 3:
        padded = functional.pad(squares.unsqueeze(1), (0, 0, before, after))
        means = functional.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        volume = squares.reshape(input.shape[0], 1, *input.shape[1:3], -1)
        padded = functional.pad(volume, (0, 0, 0, 0, before, after))
        means = functional.avg_pool3d(padded, (size, 1, 1), stride=1).reshape(input.shape)
    return input / (means * alpha + k) ** beta


@api_boundary
def normalize(input, p: float = 2.0, dim=1, eps: float = 1e-12, out=None):
    """Return `input / max(p-norm along dim, eps)`.

    input: floating-point or complex dtype; the result has its shape. out: as for `div`.

    >>> F.normalize(jaxgrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = ops.clamp_min(ops.linalg_vector_norm(input, p, dim, True), eps)
    return ops.div(input, length) if out is None else ops.div(input, length, out=out)
