"""Normalization of features, batches and groups of channels: what PyTorch composes of the operators
`native_layer_norm`, `_fused_rms_norm`, `native_group_norm` and `native_batch_norm`, and the names
that libraries of GPUs had for batch normalization.
"""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import _unsafe_preserve_version_counter, no_grad
from ..core import dtypes
from ..tape import mode
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .norm import norm_except_dim
from .out import takes_out


@api_boundary
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions.

    input: (*, *normalized_shape), floating point; the result has its shape and dtype. weight, bias:
    of `normalized_shape`, or None. The variance is the biased one. cudnn_enable has no effect.
    Raises RuntimeError for shapes that do not fit, NotImplementedError for another dtype.
    Source: Ba et al., "Layer Normalization", 2016.

    >>> jaxgrad.layer_norm(jaxgrad.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    return ops.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@api_boundary
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Return `x / sqrt(mean(x**2) + eps) * weight` over the last dimensions.

    input: (*, *normalized_shape), floating point; the result has its shape and dtype. weight: of
    `normalized_shape`, or None. eps: the machine epsilon of the dtype by default.
    Errors are those of `layer_norm`.
    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    >>> jaxgrad.rms_norm(jaxgrad.tensor([1.0, 7.0]), (2,))
    tensor([0.2000, 1.4000])
    """
    return ops._fused_rms_norm(input, normalized_shape, weight, eps)[0]


@api_boundary
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and group of
    channels.

    input: (N, C, ...), floating point; the result has its shape and dtype. num_groups: divides C.
    weight, bias: (C,) or None. cudnn_enabled has no effect. Raises RuntimeError for shapes that do
    not fit. Source: Wu and He, "Group Normalization", 2018.

    >>> jaxgrad.group_norm(jaxgrad.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    count, channels, *rest = input.shape
    size = math.prod(rest)
    return ops.native_group_norm(input, weight, bias, count, channels, size, num_groups, eps)[0]


@takes_out
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Return the result of batch normalization, and the mean and `1 / sqrt(variance + eps)` of the
    batch, which are empty without `training`.

    The arguments are those of `torch.nn.functional.batch_norm`. In training running statistics are
    updated in place.

    >>> x = jaxgrad.tensor([[1.0], [3.0]])
    >>> jaxgrad.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[0]
    tensor([[-1.],
            [ 1.]])
    """
    return _batch_normalized(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _has_channels_of(input, *tensors) -> bool:
    """Whether all of these tensors have an element for each channel of `input`."""
    channels = input.shape[1:2]
    return bool(channels) and all(t is None or t.shape == channels for t in tensors)


def _batch_normalized(input, weight, bias, running_mean, running_var, training, momentum, eps):
    normalize = ops._native_batch_norm_legit_functional
    result, mean, rstd, *moved = normalize(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    if training:
        # uncounted, as in PyTorch: nodes of earlier batches save the running statistics too
        written = [t for t in (running_mean, running_var) if isinstance(t, Tensor)]
        with _unsafe_preserve_version_counter(tuple(written)):
            _update(running_mean, moved[0])
            _update(running_var, moved[1])
    return result, mean, rstd


def _update(running, moved):
    """Write new running statistics; an array of JAX cannot be written to."""
    if isinstance(running, Tensor):
        scope = mode.scope.get()
        if scope is not None and scope.refuses_write(running, [moved]):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, "
                "which will be updated in place, were not batched: each example of the vmap would "
                "write its own. Map the statistics too, or leave them out by "
                "track_running_stats=False or func.replace_all_batch_norm_modules_"
            )
        with no_grad():
            running.copy_(moved)


@api_boundary
def batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True
):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each channel.

    The arguments are those of `torch.nn.functional.batch_norm`, in another order; cudnn_enabled has
    no effect. In training running statistics are updated in place.

    >>> x = jaxgrad.tensor([[1.0], [3.0]])
    >>> jaxgrad.batch_norm(x, None, None, None, None, True, 0.1, 0.0)
    tensor([[-1.],
            [ 1.]])
    """
    if not input.numel() and not _has_channels_of(input, weight, bias, running_mean, running_var):
        # as in PyTorch, which asks for no channels then
        result = input.clone()
        result = result if weight is None else result * weight[0]
        return result if bias is None else result + bias[0]
    return _batch_normalized(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


@api_boundary
def instance_norm(
    input,
    weight,
    bias,
    running_mean,
    running_var,
    use_input_stats,
    momentum,
    eps,
    cudnn_enabled=True,
):
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and channel.

    The arguments are those of `torch.nn.functional.instance_norm`, in another order; cudnn_enabled
    has no effect. Running statistics are updated in place.

    >>> x = jaxgrad.tensor([[[1.0, 3.0]], [[0.0, 8.0]]])
    >>> jaxgrad.instance_norm(x, None, None, None, None, True, 0.1, 0.0)
    tensor([[[-1.,  1.]],
    <BLANKLINE>
            [[-1.,  1.]]])
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    count, channels, *rest = input.shape
    # statistics of any dtype, as in PyTorch, which casts them
    dtype = (input if weight is None else weight).dtype
    statistics = [t if t is None else t.to(dtype) for t in (running_mean, running_var)]
    # a channel of each sample is a channel of one batch
    per_channel = weight, bias, *statistics
    weight, bias, *repeated = (t if t is None else t.repeat(count) for t in per_channel)
    result = batch_norm(
        input.contiguous().reshape(1, count * channels, *rest),
        weight,
        bias,
        *repeated,
        use_input_stats,
        momentum,
        eps,
    )
    if use_input_stats and count:
        for running, moved in zip((running_mean, running_var), repeated, strict=True):
            if running is not None:
                _update(running, moved.reshape(count, channels).mean(0))
    return result.view(input.shape)


@api_boundary
def _weight_norm(v, g, dim=0):
    """Return the weight `v * g / norm`, with the norms of `v` over all dimensions but `dim`; -1 is
    the norm of all of `v`.

    >>> jaxgrad._weight_norm(jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[10.0]]))
    tensor([[6., 8.]])
    """
    if dim in (0, v.ndim - 1):
        return ops._weight_norm_interface(v, g, dim)[0]
    return v * (g / norm_except_dim(v, 2, dim))


# of libraries


def _weight_norm_cuda_interface(v, g, dim):
    """Return `_weight_norm` and the norms.

    >>> weight = jaxgrad.tensor([[3.0, 4.0]]), jaxgrad.tensor([[10.0]])
    >>> jaxgrad.ops._weight_norm_cuda_interface(*weight, 0)[0]
    tensor([[6., 8.]])
    """
    return ops._weight_norm_interface(v, g, dim)


def cudnn_batch_norm(
    input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
):
    """Return what `native_batch_norm` returns; `exponential_average_factor` is its momentum.

    >>> x, one = jaxgrad.tensor([[1.0], [3.0]]), jaxgrad.ones(1)
    >>> jaxgrad.ops.cudnn_batch_norm(x, one, one, None, None, True, 0.1, 0.0)[0]
    tensor([[0.],
            [2.]])
    """
    factor = exponential_average_factor
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, training, factor, epsilon
    )


def cudnn_batch_norm_backward(
    input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon
):
    """Return the gradients of input, weight and bias in `cudnn_batch_norm` in training; `save_var`
    is its third result.

    >>> x, one = jaxgrad.tensor([[1.0], [3.0]]), jaxgrad.ones(1)
    >>> backward = jaxgrad.ops.cudnn_batch_norm_backward
    >>> backward(x, jaxgrad.tensor([[1.0], [0.0]]), one, None, None, 2 * one, one, 0.0)[1:]
    (tensor([-1.]), tensor([1.]))
    """
    return ops.native_batch_norm_backward(
        grad_output,
        input,
        weight,
        running_mean,
        running_var,
        save_mean,
        save_var,
        True,
        epsilon,
        [True] * 3,
    )


miopen_batch_norm, miopen_batch_norm_backward = cudnn_batch_norm, cudnn_batch_norm_backward


@takes_out
def _native_batch_norm_legit(input, weight, bias, *arguments, **named):
    """Return what `native_batch_norm` returns: `_native_batch_norm_legit(input, weight, bias,
    running_mean, running_var, training, momentum, eps)`, or without running statistics
    `(input, weight, bias, training, momentum, eps)`.
    """
    statistics = (None, None) if len(arguments) + len(named) == 3 else ()
    return _batch_normalized(input, weight, bias, *statistics, *arguments, **named)


@api_boundary
def _native_batch_norm_legit_no_training(
    input, weight, bias, running_mean, running_var, momentum, eps
):
    """Return what `native_batch_norm` returns without `training`."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """Return what `native_batch_norm` returns in training, and an empty tensor in the place of what
    libraries of GPUs save.
    """
    results = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results, input.new_empty(0, dtype=dtypes.uint8)


def _batch_norm_no_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """Return what `_batch_norm_with_update` returns, without training."""
    results = native_batch_norm(
        input, weight, bias, running_mean, running_var, False, momentum, eps
    )
    return *results, input.new_empty(0, dtype=dtypes.uint8)
