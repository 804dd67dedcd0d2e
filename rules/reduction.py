"""Reductions over dimensions: sums, extrema, products, statistics, counts; running sums.

`dim` is None, an int or a tuple of ints. None and () mean all dimensions; only for `any` and `all`
() means none.
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion

# dimensions


def _dims(dim, ndim):
    """The dimensions to reduce, counted from 0; a tensor without dimensions has none."""
    dims = shapes.wrap_dims((dim,) if isinstance(dim, int) else dim or (), ndim)
    return tuple(dims or range(ndim)) if ndim else ()


def _reduced_count(shape, dim=None):
    """The number of elements that are reduced to one."""
    return math.prod(shape[i] for i in _dims(dim, len(shape)))


def _reduced(reduce, self, dim, keepdim):
    """Reduce over `dim`; `keepdim` keeps these dimensions with size 1."""
    dims = _dims(dim, self.ndim)
    result = reduce(self, dims)
    return lax.expand_dims(result, dims) if keepdim else result


def _restore_reduced_dims(reduced, shape, dim=None, keepdim=False):
    """The result of a reduction with its reduced dimensions restored, with size 1."""
    if keepdim:
        return reduced
    return lax.expand_dims(reduced, _dims(dim, len(shape)))


def sum_backward(grad, shape, dim=None, keepdim=False):
    """`grad` broadcast to the shape of the input of the reduction."""
    return jnp.broadcast_to(_restore_reduced_dims(grad, shape, dim, keepdim), shape)


def mean_backward(grad, shape, dim=None, keepdim=False):
    return sum_backward(grad / _reduced_count(shape, dim), shape, dim, keepdim)


# dtypes


def _converted(self, dtype):
    """`self` converted to `dtype`; complex numbers lose their imaginary part if it is real."""
    if dtype is None:
        return self
    if jnp.iscomplexobj(self) and not dtype.is_complex and dtype is not dtypes.bool:
        self = self.real
    return promotion.cast(self, dtype)


def summable(self, dtype):
    """`self` converted to `dtype`; without one, integers and booleans become int64."""
    source = dtypes.from_numpy(self.dtype)
    integral = dtype is None and source.category <= dtypes.INTEGRAL
    return _converted(self, dtypes.int64 if integral else dtype)


def in_single(function, self):
    """`function` of `self`, computed in float32 for half precision."""
    numbers = widened(self)
    return function(self) if numbers is self else function(numbers).astype(self.dtype)


def widened(self):
    """`self` as float32 if it is of half precision."""
    if self.dtype.itemsize > 2 or not jnp.issubdtype(self.dtype, jnp.floating):
        return self
    return self.astype(jnp.float32)


def _refuse_complex(name, self):
    if jnp.iscomplexobj(self):
        raise NotImplementedError(
            f"{name}(): does not support complex input, which has no order: take .abs() or .real"
        )


# sums


def sum(self, dim=None, keepdim=False, *, dtype=None):
    numbers = summable(self, dtype)
    if numbers.dtype == bool:
        return _reduced(lax.reduce_or, numbers, dim, keepdim)
    return in_single(lambda x: _reduced(lax.reduce_sum, x, dim, keepdim), numbers)


def mean(self, dim=None, keepdim=False, *, dtype=None):
    _check_mean(self, dtype)
    count = _reduced_count(self.shape, dim)

    def average(numbers):
        total = _reduced(lax.reduce_sum, numbers, dim, keepdim)
        return lax.div(total, lax.full_like(total, count))

    return in_single(average, _converted(self, dtype))


def nansum(self, dim=None, keepdim=False, *, dtype=None):
    if jnp.iscomplexobj(self):
        raise RuntimeError("nansum(): does not support complex inputs: sum .real and .imag")
    return sum(_without_nan(self), dim, keepdim, dtype=dtype)


def _without_nan(self):
    is_float = jnp.issubdtype(self.dtype, jnp.floating)
    return jnp.where(jnp.isnan(self), 0, self) if is_float else self


def nansum_backward(grad, self, dim=None, keepdim=False):
    """`grad` for each element but NaNs, which get 0."""
    return jnp.where(jnp.isnan(self), 0, sum_backward(grad, self.shape, dim, keepdim))


def _check_mean(self, dtype):
    output_dtype = dtypes.from_numpy(self.dtype) if dtype is None else dtype
    if output_dtype.category < dtypes.FLOATING:
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point "
            f"or complex dtype. Got: {output_dtype.scalar_type}; pass dtype=torch.float32"
        )


def cumsum(self, dim, *, dtype=None):
    dim, numbers = shapes.wrap_dim(dim, self.ndim), summable(self, dtype)
    promotion.refuse("cumsum", numbers, dtypes.BOOLEAN)
    return in_single(lambda x: lax.cumsum(x, dim) if x.ndim else x, numbers)


def cumsum_backward(grad, dim):
    return lax.cumsum(grad, shapes.wrap_dim(dim, grad.ndim), reverse=True) if grad.ndim else grad


def count_nonzero(self, dim=None):
    return sum(self != 0, dim)


def hash_tensor(self, dim=(), *, keepdim=False, mode=0):
    """The exclusive or of the bits of the elements, as 64-bit floats or integers."""
    if mode:
        raise RuntimeError(f"hash_tensor: mode {mode} is unknown: 0 is the exclusive or")
    if jnp.iscomplexobj(self):
        raise NotImplementedError("hash_tensor: complex tensors have no hash: hash their parts")
    is_float = jnp.issubdtype(self.dtype, jnp.floating)
    wide = self.astype(jnp.float64 if is_float else jnp.int64)
    return _reduced(lax.reduce_xor, lax.bitcast_convert_type(wide, jnp.uint64), dim, keepdim)


# truth


def any(self, dim=None, keepdim=False):
    return _truth(lax.reduce_or, self, dim, keepdim)


def all(self, dim=None, keepdim=False):
    return _truth(lax.reduce_and, self, dim, keepdim)


def _truth(reduce, self, dim, keepdim):
    """Reduce the truth of the elements; the result is uint8 for uint8, else bool."""
    true = promotion.cast(self, dtypes.bool)
    reduced = true if dim == () else _reduced(reduce, true, dim, keepdim)
    return reduced.astype(jnp.uint8) if self.dtype == jnp.uint8 else reduced


# extrema


def check_reduced_dims(name, self, dim):
    if dim in (None, ()) and self.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            f"reduction dim with the 'dim' argument; the shape is {list(self.shape)}"
        )
    for axis in _dims(dim, self.ndim):
        if self.shape[axis] == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim {axis} to have non-zero size, but the shape is "
                f"{list(self.shape)}"
            )


def _extremum(name, reduce, self, dim=None, keepdim=False):
    _refuse_complex(name, self)
    check_reduced_dims(name, self, dim)
    return _reduced(reduce, self, dim, keepdim)


def amax(self, dim=(), keepdim=False):
    return _extremum("amax", lax.reduce_max, self, dim, keepdim)


def amin(self, dim=(), keepdim=False):
    return _extremum("amin", lax.reduce_min, self, dim, keepdim)


def max(self):
    return _extremum("max", lax.reduce_max, self)


def min(self):
    return _extremum("min", lax.reduce_min, self)


def aminmax(self, *, dim=None, keepdim=False):
    _refuse_complex("aminmax", self)
    if dim is None and not self.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            f"identity: the shape is {list(self.shape)}"
        )
    check_reduced_dims("aminmax", self, dim)
    return tuple(
        _reduced(reduce, self, dim, keepdim) for reduce in (lax.reduce_min, lax.reduce_max)
    )


def max_dim(self, dim, keepdim=False):
    values = _extremum("max", lax.reduce_max, self, dim, keepdim)
    return values, _position(lax.argmax, self, dim, keepdim)


def min_dim(self, dim, keepdim=False):
    values = _extremum("min", lax.reduce_min, self, dim, keepdim)
    return values, _position(lax.argmin, self, dim, keepdim)


def _position(find, self, dim, keepdim):
    """The index of the first extremum along `dim`; a NaN is an extremum."""
    index_dtype = promotion.available(dtypes.int64)
    if not self.ndim:
        return jnp.zeros((), index_dtype)
    return _reduced(lambda x, dims: find(x, *dims, index_dtype), self, dim, keepdim)


def argmax(self, dim=None, keepdim=False):
    return _argument("argmax", lax.argmax, self, dim, keepdim)


def argmin(self, dim=None, keepdim=False):
    return _argument("argmin", lax.argmin, self, dim, keepdim)


def _argument(name, find, self, dim, keepdim):
    _check_argument(name, self, dim)
    if dim is not None:
        return _position(find, self, dim, keepdim)
    position = _position(find, self.ravel(), 0, False)
    return _restore_reduced_dims(position, self.shape) if keepdim else position


def _check_argument(name, self, dim):
    _refuse_complex(name, self)
    if self.dtype == bool:
        raise RuntimeError(f"{name}(): does not support bool input: convert with .to(torch.uint8)")
    if dim is None and self.size == 0:
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0, and the "
            f"shape is {list(self.shape)}"
        )
    if dim is not None:
        check_reduced_dims(name, self, dim)


def evenly_distribute_backward(grad, self, result, dim=None, keepdim=False):
    """`grad` divided equally among the elements that equal the extremum `result`."""
    extremum = _restore_reduced_dims(result, self.shape, dim, keepdim)
    chosen = (self == extremum) | (jnp.isnan(self) & jnp.isnan(extremum))
    count = jnp.sum(chosen, axis=_dims(dim, self.ndim), keepdims=True, dtype=jnp.int32)
    count = count.astype(jnp.promote_types(self.dtype, jnp.float32))
    return jnp.where(chosen, _restore_reduced_dims(grad, self.shape, dim, keepdim) / count, 0)


def value_selecting_reduction_backward(grad, dim, indices, shape, keepdim):
    """`grad` for the elements at `indices` along `dim`, 0 for the others."""
    if not shape:
        return grad
    (dim,) = _dims(dim, len(shape))
    positions = lax.broadcasted_iota(indices.dtype, shape, dim)
    chosen = positions == _restore_reduced_dims(indices, shape, dim, keepdim)
    return jnp.where(chosen, _restore_reduced_dims(grad, shape, dim, keepdim), 0)


# logarithm of a sum of exponentials


def logsumexp(self, dim, keepdim=False):
    (numbers,) = promotion.unify_floating(self)
    return in_single(lambda x: _logsumexp(x, dim, keepdim), numbers)


def _logsumexp(numbers, dim, keepdim):
    real = numbers.real if jnp.iscomplexobj(numbers) else numbers
    greatest = lax.stop_gradient(_reduced(lax.reduce_max, real, dim, True))
    shift = jnp.where(jnp.isfinite(greatest), greatest, 0)
    total = _reduced(lax.reduce_sum, jnp.exp(numbers - shift), dim, keepdim)
    return jnp.log(total) + (shift if keepdim else jnp.reshape(shift, total.shape))


def logsumexp_backward(grad, self, result, dim, keepdim):
    """`grad * exp(self - result)`: the softmax, which does not overflow."""
    softmax = jnp.exp(self - _restore_reduced_dims(result, self.shape, dim, keepdim))
    return sum_backward(grad, self.shape, dim, keepdim) * jnp.conj(softmax)


# products


def prod(self, *, dtype=None):
    return prod_dim_int(self, None, dtype=dtype)


def prod_dim_int(self, dim, keepdim=False, *, dtype=None):
    numbers = summable(self, dtype)
    if numbers.dtype == bool:
        return _reduced(lax.reduce_and, numbers, dim, keepdim)
    return in_single(lambda x: _reduced(lax.reduce_prod, x, dim, keepdim), numbers)


def prod_backward(grad, self, dtype, dim=None, keepdim=False):
    """`grad` times the product of the other elements, without a division, so zeros are exact."""
    factors = jnp.conj(_products_of_others(self.astype(dtype), dim))
    return sum_backward(grad, self.shape, dim, keepdim) * factors


def _products_of_others(numbers, dim):
    if dim is None or not numbers.ndim:
        return jnp.reshape(_products_along(numbers.ravel(), 0), numbers.shape)
    return _products_along(numbers, shapes.wrap_dim(dim, numbers.ndim))


def _products_along(numbers, dim):
    before = lax.cumprod(_shifted(numbers, dim, 1), dim)
    after = lax.cumprod(_shifted(numbers, dim, -1), dim, reverse=True)
    return before * after


def _shifted(numbers, dim, by):
    """`numbers` shifted along `dim` by 1 or -1, with a 1 at the free end."""
    padding = [(0, 0, 0)] * numbers.ndim
    padding[dim] = (by, -by, 0)
    return lax.pad(numbers, jnp.ones((), numbers.dtype), padding)


# variance


def var_mean_of(self, dim=None, correction=1, keepdim=False):
    return variance(self, dim, correction, keepdim), mean(self, dim, keepdim)


def std_mean_of(self, dim=None, correction=1, keepdim=False):
    return standard_deviation(self, dim, correction, keepdim), mean(self, dim, keepdim)


def variance(self, dim=None, correction=1, keepdim=False):
    _check_variance(self)
    if jnp.iscomplexobj(self):
        real, imaginary = (variance(x, dim, correction, keepdim) for x in (self.real, self.imag))
        return real + imaginary
    return in_single(lambda x: _variance(x, dim, correction, keepdim), self)


def standard_deviation(self, dim=None, correction=1, keepdim=False):
    return jnp.sqrt(variance(self, dim, correction, keepdim))


def _check_variance(self):
    if not jnp.issubdtype(self.dtype, jnp.inexact):
        raise RuntimeError(
            "std and var only support floating point and complex dtypes, not "
            f"{dtypes.from_numpy(self.dtype)!r}: convert with .to(torch.float32)"
        )


def _variance(numbers, dim, correction, keepdim):
    centred = numbers - mean(numbers, dim, True)
    total = _reduced(lax.reduce_sum, centred * centred, dim, keepdim)
    if not _reduced_count(numbers.shape, dim):
        return jnp.full_like(total, jnp.nan)  # also for a negative correction
    return total / _degrees_of_freedom(numbers, dim, correction)


def _degrees_of_freedom(numbers, dim, correction):
    """The divisor of the sum of squares, `max(count - correction, 0)`.

    It is an array, since Python raises for a division by 0.
    """
    correction = 1 if correction is None else correction
    count = _reduced_count(numbers.shape, dim)
    return jnp.maximum(jnp.asarray(count - correction, numbers.real.dtype), 0)


def var_backward(grad, self, dim, correction, keepdim=False):
    """`grad * 2 * (self - mean) / (count - correction)`."""
    slope = (self - mean(self, dim, True)) * (2 / _degrees_of_freedom(self, dim, correction))
    return sum_backward(grad, self.shape, dim, keepdim) * slope


def std_backward(grad, self, result, dim, correction, keepdim=False):
    """`var_backward` of `grad / (2 * result)`, which is 0 where the deviation `result` is 0."""
    is_zero = result == 0
    grad = jnp.where(is_zero, 0, grad / jnp.where(is_zero, 1, 2 * result))
    return var_backward(grad, self, dim, correction, keepdim)
