"""Elements rounded to the numbers that integers of a quantized tensor stand for."""

import jax.numpy as jnp
from jaxgrad.rules import reduction as reductions
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion


def fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min, quant_max):
    """The elements as multiples of `scale`, within the range of the integers."""
    _check(self, quant_min, quant_max)
    _check_zero_point(zero_point, quant_min, quant_max)
    return _rounded(self, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_tensor_affine_tensor_qparams(self, scale, zero_point, quant_min, quant_max):
    """The same with tensors of one element as scale and zero point."""
    _check(self, quant_min, quant_max)
    return _rounded(self, *_numbers(scale, zero_point), quant_min, quant_max)


def _numbers(scale, zero_point):
    """Parameters of one element as numbers; the zero point is an integer, as in PyTorch."""
    scale, zero_point = (jnp.reshape(jnp.asarray(number), ()) for number in (scale, zero_point))
    return scale, zero_point.astype(jnp.int32)


def fake_quantize_per_channel_affine(self, scale, zero_point, axis, quant_min, quant_max):
    """The same with a scale and a zero point for each index along `axis`."""
    _check(self, quant_min, quant_max)
    _check_dtype("Scale", scale, dtypes.float32, dtypes.bfloat16)
    _check_dtype("Zero-point", zero_point, dtypes.int32, dtypes.float32, dtypes.float16)
    scale, zero_point = _along(self, scale, axis), _along(self, zero_point, axis)
    return _rounded(self, scale, zero_point, quant_min, quant_max)


def fake_quantize_mask(self, scale, zero_point, quant_min, quant_max):
    """Whether each element is within the range of the integers."""
    return _is_inside(_steps(self, *_numbers(scale, zero_point)), quant_min, quant_max)


def fake_quantize_channel_mask(self, scale, zero_point, axis, quant_min, quant_max):
    """Whether each element is within the range of the integers of its channel."""
    scale, zero_point = _along(self, scale, axis), _along(self, zero_point, axis)
    return _is_inside(_steps(self, scale, zero_point), quant_min, quant_max)


def _check(self, quant_min, quant_max):
    refused = (dtypes.BOOLEAN, dtypes.INTEGRAL, dtypes.COMPLEX)
    promotion.refuse("fake_quantize_tensor_cachemask_kernel_type_handling", self, *refused)
    if quant_min > quant_max:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`, not {quant_min} and "
            f"{quant_max}"
        )


def _check_dtype(noun, numbers, *supported):
    dtype = dtypes.from_numpy(numbers.dtype)
    if dtype not in supported:
        *names, last = (kind.scalar_type for kind in supported)
        raise RuntimeError(
            f"{noun} must be {', '.join(names).replace('Int', 'Int32')} or {last}, found "
            f"{dtype.scalar_type}: convert it first"
        )


def _check_zero_point(zero_point, quant_min, quant_max):
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`, not {zero_point}"
        )


def _along(self, numbers, axis):
    """Numbers of channels in a shape that broadcasts with the tensor."""
    axis = shapes.wrap_dim(axis, self.ndim)
    if numbers.shape != (self.shape[axis],):
        raise RuntimeError(
            f"dimensions of scale and zero-point are not consistent with input tensor: "
            f"{list(numbers.shape)} for {self.shape[axis]} channels"
        )
    return jnp.expand_dims(numbers, [dim for dim in range(self.ndim) if dim != axis])


def _steps(self, scale, zero_point):
    """The integers that stand for the elements, before they are limited."""
    inverse = 1 / jnp.asarray(scale, jnp.float32)
    wide = reductions.widened(self) * inverse
    is_integer = jnp.issubdtype(jnp.asarray(zero_point).dtype, jnp.integer)
    return zero_point + jnp.round(wide) if is_integer else jnp.round(wide + zero_point)


def _is_inside(steps, quant_min, quant_max):
    return (steps >= quant_min) & (steps <= quant_max)


def _rounded(self, scale, zero_point, quant_min, quant_max):
    # NaN becomes the least number, as in PyTorch
    steps = jnp.fmin(jnp.fmax(_steps(self, scale, zero_point), quant_min), quant_max)
    # a scale is a number of float32 in PyTorch, also beside a tensor of float64
    return ((steps - zero_point) * jnp.asarray(scale, jnp.float32)).astype(self.dtype)
