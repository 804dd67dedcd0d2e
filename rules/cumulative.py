"""Running products, extrema and logarithms of sums."""

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import pointwise
from jaxgrad.rules import reduction as reductions
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion


def _padded(numbers, dim, low, high, value):
    """`numbers` with `low` and `high` elements of `value` added, or removed, at the ends."""
    padding = [(0, 0, 0)] * numbers.ndim
    padding[dim] = (low, high, 0)
    return lax.pad(numbers, jnp.asarray(value, numbers.dtype), padding)


def carried_back(grad, factors, dim):
    """The solution of `y[k] = grad[k] + factors[k + 1] * y[k + 1]`.

    This is the reverse pass of a recurrence `y[k] = factors[k] * y[k - 1] + ...`, without a
    division, by a parallel prefix scan. grad, factors: of one shape and dtype, at least 1-D.
    """

    def joined(later, earlier):
        return later[0] * earlier[0], earlier[1] + earlier[0] * later[1]

    following = _padded(factors, dim, -1, 1, 1)
    return lax.associative_scan(joined, (following, grad), reverse=True, axis=dim)[1]


# products


def cumprod(self, dim, *, dtype=None):
    dim, numbers = shapes.wrap_dim(dim, self.ndim), reductions.summable(self, dtype)
    promotion.refuse("cumprod", numbers, dtypes.BOOLEAN)
    return reductions.in_single(lambda x: lax.cumprod(x, dim) if x.ndim else x, numbers)


def cumprod_backward(grad, self, dim, result):
    """`y[k] = x[k] * y[k - 1]` backwards: exact where elements are 0."""
    if not self.ndim or not self.size:
        return grad
    dim = shapes.wrap_dim(dim, self.ndim)
    factors = jnp.conj(self.astype(result.dtype))
    before = _padded(jnp.conj(result), dim, 1, -1, 1)
    return carried_back(grad, factors, dim) * before


# extrema


def cummax(self, dim):
    return _extrema("cummax", lax.cummax, self, dim)


def cummin(self, dim):
    return _extrema("cummin", lax.cummin, self, dim)


def _extrema(name, running, self, dim):
    """The running extremum and the index of its last occurrence; a NaN stays."""
    promotion.refuse(name, self, dtypes.COMPLEX)
    dim, index_dtype = shapes.wrap_dim(dim, self.ndim), promotion.available(dtypes.int64)
    if not self.ndim:
        return self, jnp.zeros((), index_dtype)
    numbers = self.astype(jnp.uint8) if self.dtype == bool else self
    values = running(numbers, dim)
    holds = (numbers == values) | jnp.isnan(numbers)
    places = lax.broadcasted_iota(jnp.int32, self.shape, dim)
    places = lax.cummax(jnp.where(holds, places, 0), dim)
    return values.astype(self.dtype), places.astype(index_dtype)


# logarithms of sums of exponentials


def logcumsumexp(self, dim):
    dim = shapes.wrap_dim(dim, self.ndim)
    promotion.refuse("logcumsumexp", self, dtypes.BOOLEAN, dtypes.INTEGRAL)
    return reductions.in_single(lambda x: _running_logarithm(x, dim) if x.ndim else x, self)


def _running_logarithm(numbers, dim):
    def joined(earlier, later):
        # or XLA fuses the steps of the scan into one, which computes each logarithm many times
        return lax.optimization_barrier(pointwise.log_of_sum(earlier, later))

    return lax.associative_scan(joined, numbers, axis=dim)


def logcumsumexp_backward(grad, self, result, dim):
    """`y[k] = log(exp(y[k - 1]) + exp(x[k]))` backwards: all factors are at most 1."""
    if not self.ndim or not self.size:
        return grad
    dim = shapes.wrap_dim(dim, self.ndim)
    before = _padded(result, dim, 1, -1, -jnp.inf)
    carried = carried_back(grad, jnp.conj(_ratio(before, result)), dim)
    return carried * jnp.conj(_ratio(self, result))


def _ratio(part, whole):
    """`exp(part - whole)`, 1 where both are the same infinity."""
    is_same = part == whole
    return jnp.where(is_same, 1, jnp.exp(jnp.where(is_same, 0, part - whole)))
