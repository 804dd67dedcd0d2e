"""Normalization: features brought to mean 0 and variance 1, over a sample, a batch or a group."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes


def _enough(input):
    """Halves are summed and squared in float32."""
    return input.float() if input.dtype in (dtypes.float16, dtypes.bfloat16) else input


def _moments(input, dims):
    """The input less its mean, and its mean and variance over some dimensions, which are kept."""
    mean = input.mean(dims, True)
    centered = input - mean
    return centered, mean, (centered * centered).mean(dims, True)


def _over_last(name, input, normalized_shape, weight, bias=None):
    """The dimensions that make up `normalized_shape`, once all fits it."""
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


def _scaled(made, weight, bias, dtype):
    if weight is not None:
        made = made * weight
    if bias is not None:
        made = made + bias
    return made if made.dtype is dtype else made.to(dtype)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps: float = 1e-5):
    """`input` with mean 0 and variance 1 over its last dimensions, times `weight`, plus `bias`.

    normalized_shape: the extents of these dimensions, which weight and bias have too. eps: added to
    the variance. Raises RuntimeError where shapes do not fit.

    >>> F.layer_norm(jaxgrad.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    dims = _over_last("LayerNormKernelImpl", input, normalized_shape, weight, bias)
    centered, _, variance = _moments(_enough(input), dims)
    return _scaled(centered * (variance + eps).rsqrt(), weight, bias, input.dtype)


def rms_norm(input, normalized_shape, weight=None, eps: float | None = None):
    """`input` divided by the root of the mean of its squares over its last dimensions, times
    `weight`.

    eps: added to the mean, the precision of the dtype by default.

    >>> F.rms_norm(jaxgrad.tensor([1.0, 7.0]), (2,))
    tensor([0.2000, 1.4000])
    """
    dims = _over_last("RMSNorm", input, normalized_shape, weight)
    enough = _enough(input)
    eps = dtypes.finfo(enough.dtype).eps if eps is None else eps
    made = enough * ((enough * enough).mean(dims, True) + eps).rsqrt()
    return _scaled(made, weight, None, input.dtype)


def _of_channels(tensor, ndim):
    """A tensor of one number a channel, as it broadcasts."""
    return None if tensor is None else tensor.reshape(1, -1, *[1] * (ndim - 2))


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
):  # fmt: skip
    """`input` (N, C, ...) with mean 0 and variance 1 in each channel, times `weight`, plus `bias`.

    training: the mean and variance are those of the batch, and the running ones, where given, are
    led towards them by `momentum`; else they are the running ones. Raises ValueError for a batch of
    one element a channel, RuntimeError where there is no running mean.

    >>> F.batch_norm(jaxgrad.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    count = math.prod(input.shape) // input.shape[1] if input.shape[1] else 0
    if training and count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight}
    for name, tensor in (given | {"bias": bias}).items():
        if tensor is not None and tensor.numel() != input.shape[1]:
            raise RuntimeError(
                f"{name} should contain {input.shape[1]} elements not {tensor.numel()}"
            )
        if tensor is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    enough = _enough(input)
    if training:
        centered, mean, variance = _moments(enough, (0, *range(2, input.ndim)))
        _lead(running_mean, mean, momentum)
        _lead(running_var, variance * (count / max(count - 1, 1)), momentum)
    else:
        centered = enough - _of_channels(running_mean, input.ndim)
        variance = _of_channels(running_var, input.ndim)
    made = centered * (variance + eps).rsqrt()
    weight, bias = _of_channels(weight, input.ndim), _of_channels(bias, input.ndim)
    return _scaled(made, weight, bias, input.dtype)


def _lead(running, found, momentum):
    """Lead a running mean towards what was found."""
    if running is not None:
        with no_grad():
            found = found.detach().reshape(running.shape).to(running.dtype)
            running.mul_(1 - momentum).add_(found * momentum)


def group_norm(input, num_groups: int, weight=None, bias=None, eps: float = 1e-5):
    """`input` (N, C, ...) with mean 0 and variance 1 in each of `num_groups` groups of channels of
    each sample, times `weight`, plus `bias`, one of each a channel.

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
    apart = _enough(input).reshape(input.shape[0], num_groups, -1)
    centered, _, variance = _moments(apart, -1)
    made = (centered * (variance + eps).rsqrt()).reshape(input.shape)
    weight, bias = _of_channels(weight, input.ndim), _of_channels(bias, input.ndim)
    return _scaled(made, weight, bias, input.dtype)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
):  # fmt: skip
    """`batch_norm` of each sample alone; the running mean and variance are led towards the mean of
    theirs over the batch.

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
    centered, mean, variance = _moments(_enough(input), dims)
    _lead(running_mean, mean.mean(0), momentum)
    _lead(running_var, variance.mean(0) * (count / max(count - 1, 1)), momentum)
    weight, bias = _of_channels(weight, input.ndim), _of_channels(bias, input.ndim)
    return _scaled(centered * (variance + eps).rsqrt(), weight, bias, input.dtype)


def normalize(input, p: float = 2.0, dim=1, eps: float = 1e-12):
    """`input` divided by its p-norm along `dim`, or by `eps` where that is greater.

    >>> F.normalize(jaxgrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / ops.clamp_min(norm_along(input, p, dim), eps)


def norm_along(input, p, dim):
    """The p-norm along a dimension, which is kept; its gradient at 0 is 0."""
    if p == math.inf:
        return input.abs().amax(dim, True)
    if p == 2:
        squares = (input * input.conj()).real.sum(dim, True)
        is_zero = squares == 0
        return ops.where(is_zero, 0, ops.where(is_zero, 1, squares).sqrt())
    sums = (input.abs() ** p).sum(dim, True)
    is_zero = sums == 0
    return ops.where(is_zero, 0, ops.where(is_zero, 1, sums) ** (1 / p))
