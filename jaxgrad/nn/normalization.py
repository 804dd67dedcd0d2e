"""Normalization to mean 0 and variance 1 over features, batches or groups of channels."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.tracebacks import api_boundary


def _widen(input):
    """Convert float16 and bfloat16 to float32, in which sums and squares are computed."""
    return input.float() if input.dtype in (dtypes.float16, dtypes.bfloat16) else input


def _moments(input, dims):
    """Return the centered input, its mean and its biased variance over `dims`, which are kept."""
    mean = input.mean(dims, True)
    centered = input - mean
    return centered, mean, (centered * centered).mean(dims, True)


def _normalized_dims(name, input, normalized_shape, weight, bias=None):
    """Check `normalized_shape` and return the dimensions that it covers."""
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            f"element, but got normalized_shape = {list(shape)}"
        )
    for what, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(tensor.shape)} and normalized_shape = {list(shape)}"
            )
    if tuple(input.shape[-len(shape) :]) != shape:
        expected = ", ".join(map(str, ("*", *shape)))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{expected}], but "
            f"got input of size{list(input.shape)}"
        )
    if not input._aval.differentiable:
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.scalar_type}'")
    return tuple(range(-len(shape), 0))


def _affine(result, weight, bias, dtype):
    """Return `input * weight + bias` in `dtype`."""
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result if result.dtype is dtype else result.to(dtype)


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
    dims = _normalized_dims("LayerNormKernelImpl", input, normalized_shape, weight, bias)
    centered, _, variance = _moments(_widen(input), dims)
    return _affine(centered * (variance + eps).rsqrt(), weight, bias, input.dtype)


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
    dims = _normalized_dims("RMSNorm", input, normalized_shape, weight)
    wide = _widen(input)
    eps = dtypes.finfo(wide.dtype).eps if eps is None else eps
    result = wide * ((wide * wide).mean(dims, True) + eps).rsqrt()
    return _affine(result, weight, None, input.dtype)


def _per_channel(tensor, ndim):
    """Reshape a tensor (C,) to broadcast against (N, C, ...)."""
    return None if tensor is None else tensor.reshape(1, -1, *[1] * (ndim - 2))


@api_boundary
def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
):  # fmt: skip
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each channel.

    input: (N, C, ...), floating point; the result has its shape and dtype. weight, bias,
    running_mean, running_var: (C,) or None. training: use the mean and biased variance of the
    batch, and update `running = (1 - momentum) * running + momentum * batch` in place, with the
    unbiased variance; otherwise use the running statistics. Raises ValueError for one element per
    channel in training, RuntimeError for other sizes or missing running statistics. Source: Ioffe
    and Szegedy, "Batch Normalization", 2015.

    >>> F.batch_norm(jaxgrad.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    count = math.prod(input.shape) // input.shape[1] if input.shape[1] else 0
    if training and count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    per_channel = {"running_mean": running_mean, "running_var": running_var, "weight": weight}
    for name, tensor in (per_channel | {"bias": bias}).items():
        if tensor is not None and tensor.numel() != input.shape[1]:
            raise RuntimeError(
                f"{name} should contain {input.shape[1]} elements not {tensor.numel()}"
            )
        if tensor is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    wide = _widen(input)
    if training:
        centered, mean, variance = _moments(wide, (0, *range(2, input.ndim)))
        _update_running(running_mean, mean, momentum)
        _update_running(running_var, variance * (count / max(count - 1, 1)), momentum)
    else:
        centered = wide - _per_channel(running_mean, input.ndim)
        variance = _per_channel(running_var, input.ndim)
    result = centered * (variance + eps).rsqrt()
    weight, bias = _per_channel(weight, input.ndim), _per_channel(bias, input.ndim)
    return _affine(result, weight, bias, input.dtype)


def _update_running(running, batch, momentum):
    """Move running statistics towards those of the batch, in place."""
    if running is not None:
        with no_grad():
            batch = batch.detach().reshape(running.shape).to(running.dtype)
            running.mul_(1 - momentum).add_(batch * momentum)


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
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    if input.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    groups = _widen(input).reshape(input.shape[0], num_groups, -1)
    centered, _, variance = _moments(groups, -1)
    result = (centered * (variance + eps).rsqrt()).reshape(input.shape)
    weight, bias = _per_channel(weight, input.ndim), _per_channel(bias, input.ndim)
    return _affine(result, weight, bias, input.dtype)


@api_boundary
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
):  # fmt: skip
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and channel.

    input: (N, C, ...), floating point. use_input_stats: False uses the running statistics, as
    `batch_norm` does. Running statistics are updated with the means over the batch. Raises
    ValueError for one element per channel. Source: Ulyanov et al., "Instance Normalization", 2016.

    >>> F.instance_norm(jaxgrad.tensor([[[1.0, 3.0]], [[0.0, 8.0]]]))
    tensor([[[-1.0000,  1.0000]],
    <BLANKLINE>
            [[-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    dims = tuple(range(2, input.ndim))
    centered, mean, variance = _moments(_widen(input), dims)
    _update_running(running_mean, mean.mean(0), momentum)
    _update_running(running_var, variance.mean(0) * (count / max(count - 1, 1)), momentum)
    weight, bias = _per_channel(weight, input.ndim), _per_channel(bias, input.ndim)
    return _affine(centered * (variance + eps).rsqrt(), weight, bias, input.dtype)


@api_boundary
def normalize(input, p: float = 2.0, dim=1, eps: float = 1e-12):
    """Return `input / max(p-norm along dim, eps)`.

    input: floating-point or complex dtype; the result has its shape.

    >>> F.normalize(jaxgrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / ops.clamp_min(vector_norm(input, p, dim), eps)


def vector_norm(input, p, dim):
    """Return the p-norm along `dim`, which is kept; its gradient at 0 is 0."""
    if p == math.inf:
        return input.abs().amax(dim, True)
    if p == 2:
        squares = (input * input.conj()).real.sum(dim, True)
        is_zero = squares == 0
        return ops.where(is_zero, 0, ops.where(is_zero, 1, squares).sqrt())
    sums = (input.abs() ** p).sum(dim, True)
    is_zero = sums == 0
    return ops.where(is_zero, 0, ops.where(is_zero, 1, sums) ** (1 / p))
