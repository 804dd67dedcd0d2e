"""Activations: smooth, and piecewise linear with PyTorch's derivative at the kinks; softmax."""

import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import pointwise, shape

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL

_real = promotion.without(BOOLEAN, COMPLEX)
_floating = promotion.without(BOOLEAN, INTEGRAL, COMPLEX)
_inexact = promotion.without(BOOLEAN, INTEGRAL)


def upcast_half(tensor):
    """A tensor of half precision as float32, in which sums of exponentials are computed."""
    return tensor.astype(jnp.float32) if tensor.dtype.itemsize == 2 else tensor


# piecewise linear


@_real
def relu(self):
    return jnp.maximum(self, 0)


@_real
def threshold(self, threshold, value):
    return jnp.where(self <= threshold, lax.convert_element_type(value, self.dtype), self)


threshold.precondition = promotion.refuse_overflow


def threshold_backward(grad_output, self, threshold):
    return jnp.where(self <= threshold, 0, grad_output)


@_floating
@promotion.in_single
def leaky_relu(self, negative_slope):
    return jnp.where(self > 0, self, self * negative_slope)


@promotion.in_single
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    return jnp.where(self > 0, grad_output, grad_output * negative_slope)


def _refuse_negative_slope(grad_output, self, negative_slope, self_is_result):
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is "
            "not supported: a result does not tell the sign of the input when negative_slope is "
            f"{negative_slope}; pass the input"
        )


leaky_relu_backward.precondition = _refuse_negative_slope


@_real
def hardtanh(self, min_val, max_val):
    low, high = (lax.convert_element_type(bound, self.dtype) for bound in (min_val, max_val))
    return jnp.minimum(jnp.maximum(self, low), high)


def _refuse_limits(self, min_val, max_val):
    if self.dtype.kind == "u" and min(min_val, max_val) < 0:
        raise RuntimeError(
            f"cannot do hardtanh on an unsigned type with negative limits: {min_val}, {max_val}"
        )
    promotion.refuse_overflow(self, min_val, max_val)


_refuse_limits.of_integers = True
hardtanh.precondition = _refuse_limits


def hardtanh_backward(grad_output, self, min_val, max_val):
    return jnp.where((self <= min_val) | (self >= max_val), 0, grad_output)


def hardsigmoid_backward(grad_output, self):
    return jnp.where((self > -3) & (self < 3), grad_output * (1 / 6), 0)


@_floating
@promotion.in_single
def hardsigmoid(self):
    """`min(max(self + 3, 0), 6) / 6`."""
    return jnp.minimum(jnp.maximum(self + 3, 0), 6) / 6


@_floating
@promotion.in_single
def hardswish(self):
    """`self * hardsigmoid(self)`."""
    return self * jnp.minimum(jnp.maximum(self + 3, 0), 6) / 6


@promotion.in_single
def hardswish_backward(grad_output, self):
    """`grad_output * (self / 3 + 1 / 2)` from -3 on to below 3; beyond, 0 and `grad_output`."""
    inner = jnp.where(self < 3, grad_output * (self / 3 + 0.5), grad_output)
    return jnp.where(self <= -3, 0, inner)


@promotion.in_single
def hardswish_double_backward(grad, self):
    """The gradient of `self` in `hardswish_backward`; `grad` is multiplied by `grad_output`."""
    return jnp.where((self > -3) & (self < 3), grad / 3, 0)


@_floating
def hardshrink(self, lambd):
    # a NaN passes
    return jnp.where((self >= -lambd) & (self <= lambd), 0, self)


def shrink_backward(grad_output, self, lambd):
    """`grad_output` where `abs(self)` is greater than `lambd`, else 0."""
    return jnp.where((self >= -lambd) & (self <= lambd), 0, grad_output)


@_floating
@promotion.in_single
def softshrink(self, lambd):
    """`self - sign(self) * lambd` where `abs(self)` is greater than `lambd`, else 0 with the sign
    of `self`, or NaN.
    """
    return jnp.where(self > lambd, self - lambd, jnp.where(self < -lambd, self + lambd, self * 0))


def _check_softshrink(self, lambd):
    dtype = dtypes.from_numpy(self.dtype)
    if dtype.category == FLOATING and not 0 <= lambd <= dtypes.finfo(dtype).max:
        raise RuntimeError(
            f"lambda must be in range [0, {dtypes.finfo(dtype).max:g}] for input dtype "
            f"{dtype.scalar_type}, but found {lambd:g}"
        )


softshrink.precondition = _check_softshrink


# leaky, with a slope for each channel or a random one


def prelu_kernel(self, weight):
    if self.dtype != weight.dtype:
        kinds = [dtypes.from_numpy(operand.dtype).scalar_type for operand in (self, weight)]
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kinds[0]} and {kinds[1]}")
    promotion.refuse("prelu", self, BOOLEAN, INTEGRAL, COMPLEX)
    promotion.broadcast_shapes("prelu", self.shape, weight.shape)
    return jnp.where(self > 0, self, weight * self)


def prelu_kernel_backward(grad_output, self, weight):
    return prelu_self_backward(grad_output, self, weight), prelu_weight_backward(grad_output, self)


def prelu_self_backward(grad_output, self, weight):
    return jnp.where(self > 0, grad_output, weight * grad_output)


def prelu_weight_backward(grad_output, self):
    return jnp.where(self > 0, 0, self * grad_output)


def rrelu(self, noise, lower, upper, training):
    """`self`, multiplied by `noise` if `training`, else by the mean slope where it is negative."""
    if training:
        return self * noise
    return leaky_relu(self, (lower + upper) / 2)


def rrelu_with_noise_backward(
    grad_output, self, noise, lower, upper, training, self_is_result=False
):
    """The gradient of `rrelu_with_noise` from its input, or from its result if `self_is_result`."""
    if not training:
        slope = (lower + upper) / 2
        return leaky_relu_backward(grad_output, self, slope, self_is_result)
    return grad_output * noise


# smooth


@_inexact
@promotion.in_single
def silu(self):
    return self * _sigmoid(self)


@promotion.in_single
def silu_backward(grad_output, self):
    """`grad_output * s * (1 + self * (1 - s))` with `s = sigmoid(self)`."""
    sigmoid = _sigmoid(self)
    return grad_output * jnp.conj(sigmoid * (1 + self * (1 - sigmoid)))


def _sigmoid(self):
    # not every backend lowers lax.logistic of complex numbers
    return 1 / (1 + jnp.exp(-self)) if jnp.iscomplexobj(self) else lax.logistic(self)


@_floating
@promotion.in_single
def softplus(self, beta, threshold):
    """`log(1 + exp(beta * self)) / beta`; `self` where `beta * self > threshold`."""
    scaled = self * beta
    return jnp.where(scaled > threshold, self, jnp.logaddexp(scaled, 0) / beta)


@promotion.in_single
def softplus_backward(grad_output, self, beta, threshold):
    """`grad_output * sigmoid(beta * self)`; `grad_output` beyond the threshold."""
    scaled = self * beta
    return jnp.where(scaled > threshold, grad_output, grad_output * lax.logistic(scaled))


@promotion.in_single
def softplus_double_backward(grad, self, beta, threshold):
    """`grad * beta * s * (1 - s)` with `s = sigmoid(beta * self)`; 0 beyond the threshold."""
    scaled = self * beta
    curvature = beta * lax.logistic(scaled) * lax.logistic(-scaled)
    return jnp.where(scaled > threshold, 0, grad * curvature)


@_floating
@promotion.in_single
def log_sigmoid(self):
    return -jnp.logaddexp(-self, 0)


@_floating
def log_sigmoid_forward(self):
    # the second output is PyTorch's buffer on CPUs, which no formula reads
    return log_sigmoid(self), jnp.exp(-jnp.abs(self))


@promotion.in_single
def log_sigmoid_backward(grad_output, self, buffer):
    return grad_output * lax.logistic(-self)


@_floating
@promotion.in_single
def gelu(self, *, approximate):
    """`self * Phi(self)`, with the normal distribution function or its approximation by tanh.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv 1606.08415.
    """
    if _by_tanh(approximate):
        return 0.5 * self * (1 + jnp.tanh(_tanh_argument(self)))
    return self * _normal_cdf(self)


@promotion.in_single
def gelu_backward(grad_output, self, *, approximate):
    return grad_output * _gelu_slope(self, approximate)


def _gelu_slope(self, approximate):
    if not _by_tanh(approximate):
        return _normal_cdf(self) + self * _normal_density(self)
    tanh = jnp.tanh(_tanh_argument(self))
    return 0.5 * (1 + tanh) + 0.5 * self * (1 - tanh * tanh) * _tanh_argument_slope(self)


@promotion.in_single
def gelu_double_backward(grad, self, *, approximate):
    """The gradient of `self` in `gelu_backward`; `grad` is multiplied by `grad_output`."""
    return grad * _gelu_curvature(self, approximate)


def _gelu_curvature(self, approximate):
    """The second derivative of `gelu`."""
    if not _by_tanh(approximate):
        return _normal_density(self) * (2 - self * self)
    tanh, slope = jnp.tanh(_tanh_argument(self)), _tanh_argument_slope(self)
    bend = 6 * _TANH_SCALE * _TANH_CUBE * self
    return (1 - tanh * tanh) * (slope + 0.5 * self * (bend - 2 * tanh * slope * slope))


def _by_tanh(approximate):
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, not {approximate!r}")
    return approximate == "tanh"


_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def _tanh_argument(x):
    return _TANH_SCALE * (x + _TANH_CUBE * x * x * x)


def _tanh_argument_slope(x):
    return _TANH_SCALE * (1 + 3 * _TANH_CUBE * x * x)


def _normal_cdf(x):
    # 1 + erf would lose the digits of the left tail
    return 0.5 * lax.erfc(x * -math.sqrt(0.5))


def _normal_density(x):
    return jnp.exp(-0.5 * x * x) * math.sqrt(0.5 / math.pi)


@_floating
@promotion.in_single
def elu(self, alpha, scale, input_scale):
    return jnp.where(
        self < 0, alpha * scale * jnp.expm1(_negative(self) * input_scale), self * scale
    )


@promotion.in_single
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    """The gradient of `elu` from its input, or from its result if `is_result`."""
    if is_result:
        slope = input_scale * (self_or_result + alpha * scale)
    else:
        slope = input_scale * alpha * scale * jnp.exp(_negative(self_or_result) * input_scale)
    return jnp.where(self_or_result <= 0, grad_output * slope, grad_output * scale)


@promotion.in_single
def elu_double_backward(grad, scale, input_scale, is_result, self_or_result):
    """The gradient of `self_or_result` in `elu_backward`; `grad` is multiplied by `grad_output`,
    and `scale` by `alpha`.
    """
    curvature = input_scale
    if not is_result:
        exponential = jnp.exp(_negative(self_or_result) * input_scale)
        curvature = scale * input_scale * input_scale * exponential
    return jnp.where(self_or_result < 0, grad * curvature, 0)


@_floating
def celu(self, alpha):
    # a 0 is part of the program, other numbers are inputs
    if isinstance(alpha, int | float) and alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, alpha, 1, 1 / alpha)


@_floating
@promotion.in_single
def mish(self):
    """`self * tanh(softplus(self))`."""
    return self * jnp.tanh(jnp.logaddexp(self, 0))


@promotion.in_single
def mish_backward(grad_output, self):
    """`grad_output * (t + self * (1 - t * t) * sigmoid(self))` with `t = tanh(softplus(self))`."""
    tanh = jnp.tanh(jnp.logaddexp(self, 0))
    return grad_output * (tanh + self * (1 - tanh * tanh) * lax.logistic(self))


def glu(self, dim):
    """The first half of `self` along `dim` times the sigmoid of the second."""
    if not self.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = shape.wrap_dim(dim, self.ndim)
    if self.shape[axis] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {axis} is size {self.shape[axis]}"
        )
    promotion.refuse("glu", self, BOOLEAN, INTEGRAL, COMPLEX)
    values, gates = jnp.split(upcast_half(self), 2, axis)
    return (values * lax.logistic(gates)).astype(self.dtype)


def glu_backward(grad_output, self, dim):
    """The gradient `grad_output * s` of the values and `grad_output * values * s * (1 - s)` of the
    gates, with `s = sigmoid(gates)`.
    """
    axis = shape.wrap_dim(dim, self.ndim)
    values, gates = jnp.split(upcast_half(self), 2, axis)
    sigmoid, grad = lax.logistic(gates), upcast_half(grad_output)
    of_gates = grad * values * sigmoid * lax.logistic(-gates)
    return jnp.concatenate([grad * sigmoid, of_gates], axis).astype(self.dtype)


def _negative(tensor):
    """`min(tensor, 0)`, whose exponential cannot overflow."""
    return jnp.where(tensor < 0, tensor, 0)


# softmax and its logarithm


def softmax(self, dim, dtype):
    return softmax_along(_converted(self, dtype), dim)


def log_softmax(self, dim, dtype):
    return log_softmax_along(_converted(self, dtype), dim)


def _converted(tensor, dtype):
    return (
        tensor if dtype is None else pointwise.to(tensor, dtype)
    )  # of complex numbers the real part


def softmax_along(self, dim, half_to_float=False):
    promotion.refuse("softmax", self, BOOLEAN, INTEGRAL, COMPLEX)
    shifted, axes = _shifted(self, dim)
    exponentials = jnp.exp(shifted)
    result = exponentials / jnp.sum(exponentials, axes, keepdims=True)
    return result.astype(_softmax_dtype(self, half_to_float))


def log_softmax_along(self, dim, half_to_float=False):
    promotion.refuse("log_softmax", self, BOOLEAN, INTEGRAL, COMPLEX)
    shifted, axes = _shifted(self, dim)
    result = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axes, keepdims=True))
    return result.astype(_softmax_dtype(self, half_to_float))


def _shifted(self, dim):
    """`self - max(self)` along `dim`, at least as float32, and `dim` as axes.

    Its exponentials cannot overflow.
    """
    wide, axes = upcast_half(self), _axes(self, dim)
    greatest = jnp.expand_dims(lax.reduce_max(wide, axes), axes)
    # the shift cancels in the result, and so does its derivative
    return wide - lax.stop_gradient(greatest), axes


def _axes(tensor, dim):
    """`dim` as axes to reduce; a tensor without dimensions has none."""
    axis = shape.wrap_dim(dim, tensor.ndim)
    return (axis,) if tensor.ndim else ()


def _softmax_dtype(self, half_to_float):
    return jnp.float32 if half_to_float else self.dtype


def _gradient_dtype(grad_output, input_dtype):
    """Half precision for an input of half precision, whose output may be float32; else the dtype
    of the gradient.
    """
    return input_dtype.numpy if input_dtype.itemsize == 2 else grad_output.dtype


def _check_sizes(grad_output, output):
    if grad_output.shape != output.shape:
        raise RuntimeError(
            "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 "
            f"'output'; but {list(grad_output.shape)} does not equal {list(output.shape)}"
        )


def softmax_backward(grad_output, output, dim, input_dtype):
    """`output * (grad_output - sum(grad_output * output))`."""
    _check_sizes(grad_output, output)
    grad, wide, axes = upcast_half(grad_output), upcast_half(output), _axes(output, dim)
    result = wide * (grad - jnp.sum(grad * wide, axes, keepdims=True))
    return result.astype(_gradient_dtype(grad_output, input_dtype))


def softmax_double_backward(grad, grad_output, dim, output):
    """The gradient of `output` in `softmax_backward`."""
    axes = _axes(output, dim)
    first = jnp.sum(grad_output * output, axes, keepdims=True)
    second = jnp.sum(grad * output, axes, keepdims=True)
    return grad * (grad_output - first) - grad_output * second


def log_softmax_backward(grad_output, output, dim, input_dtype):
    """`grad_output - exp(output) * sum(grad_output)`."""
    _check_sizes(grad_output, output)
    grad, wide, axes = upcast_half(grad_output), upcast_half(output), _axes(output, dim)
    result = grad - jnp.exp(wide) * jnp.sum(grad, axes, keepdims=True)
    return result.astype(_gradient_dtype(grad_output, input_dtype))


def log_softmax_jvp(tangent, output, dim):
    """`tangent - sum(tangent * exp(output))`.

    This is the tangent of `log_softmax`, and the transpose of `log_softmax_backward`.
    """
    return tangent - jnp.sum(tangent * jnp.exp(output), _axes(output, dim), keepdims=True)


def log_softmax_double_backward(grad, grad_output, dim, output):
    """The gradient of `output` in `log_softmax_backward`."""
    return -grad * jnp.exp(output) * jnp.sum(grad_output, _axes(output, dim), keepdims=True)
