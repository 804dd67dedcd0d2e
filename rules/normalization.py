"""Normalization to mean 0 and variance 1 over features, batches or groups of channels.

All of them compute `x̂ = (x - mean) * rstd`, `rstd = 1 / sqrt(variance + eps)` over some dimensions,
and `x̂ * weight + bias`. With u = grad * weight and means over the same dimensions, the gradient of
x is `rstd * (u - mean(u) - x̂ * mean(u * x̂))`: the part of `rstd * u` that changes neither mean nor
variance.

Sums of half precision are computed in float32.
"""

import math
import typing

import jax
import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import shape as shapes

from jaxgrad.core import promotion
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, INTEGRAL


def _wide(tensor):
    return tensor.astype(jnp.float32) if tensor.dtype.itemsize == 2 else tensor


def _moments(x, dims, eps):
    """The mean and `1 / sqrt(variance + eps)` over `dims`, which are kept."""
    mean = jnp.mean(x, dims, keepdims=True)
    return mean, lax.rsqrt(jnp.mean(jnp.square(x - mean), dims, keepdims=True) + eps)


class _Normalized(typing.NamedTuple):
    """A tensor normalized over `dims`: x̂ and rstd."""

    hat: jax.Array
    rstd: jax.Array
    dims: tuple

    @classmethod
    def of(cls, x, dims, eps):
        mean, rstd = _moments(x, dims, eps)
        return cls((x - mean) * rstd, rstd, dims)

    @classmethod
    def saved(cls, input, mean, rstd, dims):
        """With statistics that were saved; a mean of half precision is too coarse for this."""
        x = _wide(input)
        mean = mean if mean.dtype == x.dtype else jnp.mean(x, dims, keepdims=True)
        return cls((x - mean) * rstd, _wide(rstd), dims)

    @classmethod
    def tied(cls, input, mean, rstd, dims):
        """With the values of saved statistics, which count as functions of the input."""
        x = _wide(input)
        center = jnp.mean(x, dims, keepdims=True)
        variance = jnp.mean(jnp.square(x - center), dims, keepdims=True)
        eps = lax.stop_gradient(1 / jnp.square(_wide(rstd)) - variance)
        offset = lax.stop_gradient(_wide(mean) - center)
        rstd = lax.rsqrt(variance + eps)
        return cls((x - center - offset) * rstd, rstd, dims)

    def mean(self, tensor):
        return jnp.mean(tensor, self.dims, keepdims=True)

    def project(self, tensor):
        """The part of a tensor that changes neither mean nor variance of x."""
        return tensor - self.mean(tensor) - self.hat * self.mean(tensor * self.hat)

    def of_gradients(self, of_self, grad, weight, of_weight):
        """The gradient of x in `rstd * project(grad * weight)`, of which `of_self` is the gradient,
        and in `grad * x̂`, of which `of_weight` is the gradient, if given.
        """
        u = grad if weight is None else grad * weight
        along = self.mean(of_self * self.hat), self.mean(u * self.hat)
        of_hat = -self.rstd * (of_self * along[1] + u * along[0])
        if of_weight is not None:
            of_hat = of_hat + of_weight * grad
        overlap = self.mean(of_self * u) - self.mean(of_self) * self.mean(u) - along[0] * along[1]
        return self.rstd * self.project(of_hat) - jnp.square(self.rstd) * self.hat * overlap


def _check_dtypes(name, input, *parameters):
    """Parameters have the dtype of the input, or all of them float32 beside a half one."""
    promotion.refuse(name, input, BOOLEAN, INTEGRAL, COMPLEX)
    kinds = {parameter.dtype for parameter in parameters if parameter is not None}
    if kinds <= {input.dtype} or (input.dtype.itemsize == 2 and kinds == {jnp.dtype("float32")}):
        return
    shown = ", ".join(sorted(str(kind) for kind in kinds))
    raise RuntimeError(
        "mixed dtype (CPU): expect parameter to have scalar type of Float, or that of the input: "
        f"{name} of {input.dtype} got parameters and running statistics of {shown}"
    )


def _affine(hat, weight, bias, dtype):
    if weight is not None:
        hat = hat * weight
    return (hat if bias is None else hat + bias).astype(dtype)


def _statistic(value, input, weight):
    """A saved mean or deviation in PyTorch's dtype: of the parameters, else of the input."""
    return value.astype(input.dtype if weight is None else weight.dtype)


# over the last dimensions


def _normalized_dims(input, normalized_shape, weight, bias=None):
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
    return _last_dims(input, shape)


def _last_dims(input, shape):
    return tuple(range(input.ndim - len(shape), input.ndim))


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    dims = _normalized_dims(input, normalized_shape, weight, bias)
    _check_dtypes("LayerNormKernelImpl", input, weight, bias)
    x = _wide(input)
    mean, rstd = _moments(x, dims, eps)
    result = _affine((x - mean) * rstd, weight, bias, input.dtype)
    return result, *(_statistic(statistic, input, weight) for statistic in (mean, rstd))


def native_layer_norm_backward(
    grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
):
    """The gradients of input, weight and bias."""
    dims = _normalized_dims(input, normalized_shape, weight, bias)
    at, grad = _Normalized.saved(input, mean, rstd, dims), _wide(grad_out)
    others = tuple(range(dims[0]))
    gradients = (
        at.rstd * at.project(grad if weight is None else grad * weight),
        jnp.sum(grad * at.hat, others),
        jnp.sum(grad, others),
    )
    return _kept(gradients, output_mask, (input, weight, bias))


def layer_norm_double_backward(grads, grad_out, input, normalized_shape, mean, rstd, weight):
    """The gradients of grad_out, input and weight in `native_layer_norm_backward`."""
    dims = _last_dims(input, normalized_shape)
    at, grad = _Normalized.tied(input, mean, rstd, dims), _wide(grad_out)
    return _double_backward(at, grads, grad, weight, tuple(range(dims[0])))


def fused_rms_norm(input, normalized_shape, weight, eps):
    dims = _normalized_dims(input, normalized_shape, weight)
    promotion.refuse("rms_norm", input, BOOLEAN, INTEGRAL)
    x = _wide(input)
    eps = jnp.finfo(x.dtype).eps if eps is None else eps
    rstd = lax.rsqrt(jnp.mean(jnp.square(x), dims, keepdims=True) + eps)
    return _affine(x * rstd, weight, None, input.dtype), rstd


fused_rms_norm.tells_missing = True


def rms_norm_backward(grads, input, normalized_shape, weight, rstd):
    """The gradients of input and weight, from those of the result and of `rstd`, None if absent."""
    dims, x, rstd = _last_dims(input, normalized_shape), _wide(input).conj(), rstd.conj()
    hat, size = x * rstd, math.prod(normalized_shape)
    of_input, of_weight = jnp.zeros_like(x), None if weight is None else jnp.zeros_like(weight)
    if grads[0] is not None:
        grad = _wide(grads[0])
        u = grad if weight is None else grad * weight.conj()
        of_input = rstd * (u - hat * jnp.mean(u * hat, dims, keepdims=True))
        of_weight = jnp.sum(grad * hat, tuple(range(dims[0])))
    if grads[1] is not None:
        of_input = of_input - grads[1] * jnp.square(rstd) * hat / size
    return of_input, of_weight


# over groups of channels


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    _check_dtypes("GroupNormKernelImpl", input, weight, bias)
    _check_groups(input, weight, bias, N, C, HxW, group)
    x = _wide(input).reshape(N, group, C // group * HxW)
    mean, rstd = _moments(x, 2, eps)
    hat = ((x - mean) * rstd).reshape(input.shape)
    weight_, bias_ = (_per_channel(parameter, input.ndim) for parameter in (weight, bias))
    result = _affine(hat, weight_, bias_, input.dtype)
    return result, *(_statistic(statistic[..., 0], input, weight) for statistic in (mean, rstd))


native_group_norm.tells_missing = True


def _check_groups(input, weight, bias, N, C, HxW, group):
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if C % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={group}"
        )
    if input.ndim < 2 or input.shape[:2] != (N, C) or input.size != N * C * HxW:
        raise RuntimeError(
            "Expected X.numel() == N * C * HxW to be true, but got false.: native_group_norm of "
            f"an input of shape {list(input.shape)} with N={N}, C={C} and HxW={HxW}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != (C,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(parameter.shape)} and input of shape "
                f"{list(input.shape)}"
            )


def native_group_norm_backward(grads, input, weight, mean, rstd, group):
    """The gradients of input, weight and bias, from those of the result, mean and rstd, which are
    None if absent.
    """
    shape, channels, others = input.shape, input.shape[1], _batch_dims(input)
    x = _wide(input).reshape(shape[0], group, math.prod(shape[1:]) // group)
    at = _Normalized.saved(x, mean[..., None], rstd[..., None], (2,))
    of_input, of_weight, of_bias = jnp.zeros_like(x), *jnp.zeros((2, channels), x.dtype)
    if grads[0] is not None:
        grad = _wide(grads[0])
        u = grad if weight is None else grad * _per_channel(weight, len(shape))
        of_input = at.rstd * at.project(u.reshape(x.shape))
        of_weight = jnp.sum(grad * at.hat.reshape(shape), others)
        of_bias = jnp.sum(grad, others)
    size = max(x.shape[2], 1)
    if grads[1] is not None:
        of_input = of_input + grads[1][..., None] / size
    if grads[2] is not None:
        of_input = of_input - grads[2][..., None] * jnp.square(at.rstd) * at.hat / size
    return of_input.reshape(shape), of_weight, of_bias


# over batches


def _batch_dims(input):
    return (0, *range(2, input.ndim))


def _per_channel(tensor, ndim):
    """A tensor (C,) in a shape that broadcasts against (N, C, ...)."""
    return None if tensor is None else tensor.reshape(1, -1, *[1] * (ndim - 2))


def _check_batch_norm(input, weight, bias, running_mean, running_var, training):
    if input.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, "
            f"{max(input.ndim - 1, 0)}], but got 1): batch_norm takes an input (N, C, ...)"
        )
    channels, running = input.shape[1], {"running_mean": running_mean, "running_var": running_var}
    for name, tensor in (running | {"weight": weight, "bias": bias}).items():
        if tensor is not None and tensor.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.size}")
        if tensor is None and not training and name in running:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if tensor is not None and tensor.ndim != 1 and name in running:
            raise RuntimeError(f"{name} must have 1 dimension, but its shape is {tensor.shape}")
    if input.size:
        _check_dtypes("batch_norm", input, weight, bias, running_mean, running_var)


def native_batch_norm_legit_functional(
    input, weight, bias, running_mean, running_var, training, momentum, eps
):
    """The result, the mean and `1 / sqrt(variance + eps)` of the batch, which are empty without
    `training`, and the new running statistics.
    """
    _check_batch_norm(input, weight, bias, running_mean, running_var, training)
    x, dims, ndim = _wide(input), _batch_dims(input), input.ndim
    if training:
        mean = jnp.mean(x, dims, keepdims=True)
        variance = jnp.mean(jnp.square(x - mean), dims, keepdims=True)
    else:
        mean, variance = (
            _per_channel(statistic, ndim) for statistic in (running_mean, running_var)
        )
    rstd = lax.rsqrt(_wide(variance) + eps)
    hat = (x - mean) * rstd
    result = _affine(hat, _per_channel(weight, ndim), _per_channel(bias, ndim), input.dtype)
    saved = [_statistic(statistic.reshape(-1), input, weight) for statistic in (mean, rstd)]
    if not training:
        return result, *(statistic[:0] for statistic in saved), *(running_mean, running_var)
    count = math.prod(input.shape[i] for i in dims)
    of_batch = mean, variance * (count / max(count - 1, 1))  # the unbiased variance
    running = [
        _moved(old, new.reshape(-1), momentum, count)
        for old, new in zip((running_mean, running_var), of_batch, strict=True)
    ]
    return result, *saved, *running


def _moved(running, of_batch, momentum, count):
    """A running statistic after a batch; an empty batch has none."""
    if running is None:
        return jnp.zeros(0, of_batch.dtype)
    moved = running * (1 - momentum) + of_batch.reshape(running.shape) * momentum
    return moved.astype(running.dtype) if count else running


def native_batch_norm_backward(
    grad_out,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    train,
    eps,
    output_mask,
):
    """The gradients of input, weight and bias."""
    if train and (save_mean is None or save_invstd is None):
        raise RuntimeError("native_batch_norm_backward: in training it reads the saved statistics")
    if not train and (running_mean is None or running_var is None):
        raise RuntimeError("native_batch_norm_backward: without training it reads running ones")
    _check_batch_norm(input, weight, None, running_mean, running_var, train)
    at, dims = _of_batch(input, running_mean, running_var, save_mean, save_invstd, train, eps)
    grad, slope = _wide(grad_out), at.rstd
    total = jnp.sum(grad, dims, keepdims=True)
    along = jnp.sum(grad * at.hat, dims, keepdims=True)
    if weight is not None:
        slope = slope * _per_channel(weight, input.ndim)
    kept = grad
    if train:
        count = math.prod(input.shape[i] for i in dims)
        kept = grad - total / count - at.hat * (along / count)
    gradients = slope * kept, along.reshape(-1), total.reshape(-1)
    return _kept(gradients, output_mask, (input, weight, weight))


def _of_batch(input, running_mean, running_var, save_mean, save_invstd, train, eps, tied=False):
    """The batch, normalized by its own statistics or the running ones, and what they are over."""
    dims, ndim = _batch_dims(input), input.ndim
    if train:
        mean, rstd = (_per_channel(statistic, ndim) for statistic in (save_mean, save_invstd))
        return (_Normalized.tied if tied else _Normalized.saved)(input, mean, rstd, dims), dims
    mean, variance = (
        _wide(_per_channel(statistic, ndim)) for statistic in (running_mean, running_var)
    )
    rstd = lax.rsqrt(variance + eps)
    return _Normalized((_wide(input) - mean) * rstd, rstd, dims), dims


def batch_norm_double_backward(
    grads, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps
):
    """The gradients of grad_out, input and weight in `native_batch_norm_backward`; the saved
    statistics are functions of the input.
    """
    at, dims = _of_batch(
        input, running_mean, running_var, save_mean, save_invstd, train, eps, tied=True
    )
    weight, grad = _per_channel(weight, input.ndim), _wide(grad_out)
    grads = [grads[0], *(_per_channel(cotangent, input.ndim) for cotangent in grads[1:])]
    if train:
        return _double_backward(at, grads, grad, weight, dims)
    slope = at.rstd if weight is None else at.rstd * weight
    of_grad = slope * grads[0] + at.hat * grads[1] + grads[2]
    of_weight = jnp.sum(at.rstd * grads[0] * grad, dims)
    return of_grad, at.rstd * grads[1] * grad, None if weight is None else of_weight


def batch_norm_backward_running(
    grads, grad_out, input, weight, running_mean, running_var, train, eps
):
    """The gradients of the running statistics in `native_batch_norm_backward`."""
    if train:
        return jnp.zeros_like(running_mean), jnp.zeros_like(running_var)
    at, dims = _of_batch(input, running_mean, running_var, None, None, train, eps)
    weight, grad = _per_channel(weight, input.ndim), _wide(grad_out)
    of_input, of_weight = grads[0], _per_channel(grads[1], input.ndim)
    of_mean = -at.rstd * of_weight * grad
    u = grad if weight is None else grad * weight
    of_variance = -0.5 * jnp.square(at.rstd) * (at.rstd * of_input * u + of_weight * at.hat * grad)
    return jnp.sum(of_mean, dims), jnp.sum(of_variance, dims)


def batch_norm_running_backward(grad, input, weight, running_mean, running_var, training, eps):
    """The gradients of the running statistics in `native_batch_norm`."""
    if training:
        return jnp.zeros_like(running_mean), jnp.zeros_like(running_var)
    at, dims = _of_batch(input, running_mean, running_var, None, None, False, eps)
    u = _wide(grad) if weight is None else _wide(grad) * _per_channel(weight, input.ndim)
    of_mean, of_variance = -at.rstd * u, -0.5 * jnp.square(at.rstd) * at.hat * u
    return jnp.sum(of_mean, dims), jnp.sum(of_variance, dims)


# shared by the double backwards


def _double_backward(at, grads, grad, weight, others):
    """The gradients of grad, x and weight, from those of the gradients of x, weight and bias;
    `others`: the dimensions over which weight is repeated.
    """
    of_self, of_weight, of_bias = map(_wide, grads)
    projected = at.rstd * at.project(of_self)
    of_grad = (projected if weight is None else projected * weight) + of_weight * at.hat + of_bias
    of_input = at.of_gradients(of_self, grad, weight, of_weight)
    return of_grad, of_input, None if weight is None else jnp.sum(grad * projected, others)


def _kept(gradients, output_mask, inputs):
    """The gradients in the dtypes of their inputs, with zeros for those that nobody asked for."""
    kept = []
    for gradient, wanted, tensor in zip(gradients, output_mask, inputs, strict=True):
        gradient = gradient if wanted else jnp.zeros_like(gradient)
        kept.append(gradient.astype((inputs[0] if tensor is None else tensor).dtype))
    return tuple(kept)


# of weights


def weight_norm_interface(v, g, dim=0):
    """`v * g / norm` and the norms, over all dimensions but `dim`, or with -1 over all."""
    norms = _norms(v, dim)
    if g.size not in (1, norms.size):
        raise RuntimeError(
            f"_weight_norm: g of shape {list(g.shape)} does not fit norms of shape "
            f"{list(norms.shape)}"
        )
    return (v * (g / norms)).astype(v.dtype), norms


def _norms(v, dim):
    # -1 is no dimension: as in PyTorch, the norm is that of all elements
    kept = None if dim == -1 else shapes.wrap_dim(dim, v.ndim)
    dims = tuple(i for i in range(v.ndim) if i != kept)
    return jnp.sqrt(jnp.sum(jnp.square(_wide(v)), dims, keepdims=True))


def weight_norm_backward(grad, v, g, dim):
    """The gradients of v and g."""
    norms = _norms(v, dim)
    dims = tuple(i for i, extent in enumerate(norms.shape) if extent == 1 and v.shape[i] != 1)
    along = jnp.sum(_wide(grad) * v, dims, keepdims=True) / norms
    return g / norms * (grad - v * (along / norms)), along
