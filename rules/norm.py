"""Norms of vectors, and the scaling of slices to a norm.

The order of a norm, `p`, is part of the kernel, since the formulas differ by it. `dim` is None, an
int or a tuple of ints; None and () mean all dimensions.
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import arithmetic, reduction, shape

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

# elements


def _wide(tensor):
    """Half precision in float32, in which norms are computed."""
    is_half = tensor.dtype.itemsize <= 2 and jnp.issubdtype(tensor.dtype, jnp.floating)
    return tensor.astype(jnp.float32) if is_half else tensor


def _real_type(tensor):
    return tensor.real.dtype


def _squared(x):
    """`|x| ** 2`, which is differentiable at 0 also for complex numbers."""
    return x.real * x.real + x.imag * x.imag if jnp.iscomplexobj(x) else x * x


def _size(x):
    """`|x|`, with 1 in the place of 0, so that its derivative is finite."""
    if jnp.iscomplexobj(x):
        return jnp.sqrt(_nonzero(_squared(x)))
    return jnp.abs(_nonzero(x))


def _nonzero(x):
    """`x` with 1 in the place of 0."""
    return jnp.where(x == 0, jnp.ones_like(x), x)


def _power(x, p):
    return lax.integer_pow(x, int(p)) if abs(p) <= 64 and p == int(p) else x**p


def _direction(x):
    """`x / |x|`, and 0 at 0."""
    return x / _size(x) if jnp.iscomplexobj(x) else lax.sign(x)


# norms of vectors


def _norm(x, p, dims):
    """The p-norm over `dims`, counted from 0; they are kept with extent 1.

    `x`: not of half precision.
    """
    size = jnp.abs(x)
    if p == math.inf or p == -math.inf:
        if math.prod(x.shape[i] for i in dims) == 0:
            return jnp.zeros([1 if i in dims else n for i, n in enumerate(x.shape)], size.dtype)
        return lax.expand_dims((lax.reduce_max if p > 0 else lax.reduce_min)(size, dims), dims)
    if p == 0:
        terms = (x != 0).astype(size.dtype)
    elif p == 1:
        terms = size
    else:
        terms = _squared(x) if p == 2 else _power(size, p)
    total = lax.expand_dims(lax.reduce_sum(terms, dims), dims)
    return total if p in (0, 1) else jnp.sqrt(total) if p == 2 else total ** (1 / p)


def _normed(x, p, dim, keepdim):
    """`_norm` with the dtype of `x` made real."""
    dims, wide = _dims(dim, x.ndim), _wide(x)
    result = _norm(wide, p, dims).astype(_real_type(x))
    return result if keepdim else lax.squeeze(result, dims)


def _dims(dim, ndim):
    dims = shape.wrap_dims((dim,) if isinstance(dim, int) else dim or (), ndim)
    return tuple(dims or range(ndim)) if ndim else ()


def linalg_vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None):
    _check_floating("linalg.vector_norm", self)
    _check_dtype("linalg.vector_norm", self, dtype)
    _check_identity(self.shape, ord, dim)
    return _normed(self if dtype is None else promotion.cast(self, dtype), ord, dim, keepdim)


def norm(self, p=2, dim=None, keepdim=False, *, dtype=None):
    if dtypes.from_numpy(self.dtype).category < dtypes.FLOATING:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{dtypes.from_numpy(self.dtype).scalar_type} instead."
        )
    return linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)


def norm_ScalarOpt_dtype(self, p, *, dtype):
    return norm(self, p, dtype=dtype)


def _check_floating(name, self):
    dtype = dtypes.from_numpy(self.dtype)
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{dtype.scalar_type}: convert with .to(torch.float32)"
        )


def _check_dtype(name, self, dtype):
    if dtype is None:
        return
    source, wanted = dtypes.from_numpy(self.dtype), dtype.scalar_type
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {wanted}")
    if source.category != dtype.category:
        kind = "complex" if source.category == dtypes.COMPLEX else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {wanted}")
    if promotion.promote_types(source, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({source.scalar_type}) should be convertible without "
            f"narrowing to the specified dtype ({wanted})"
        )


def _check_identity(extents, p, dim):
    """A greatest or least element exists only where there is one."""
    if math.prod(extents) or not (p < 0 or p == math.inf):
        return
    what = f"linalg.vector_norm cannot compute the {p:g} norm on"
    why = "empty and the operation does not have an identity"
    if dim in (None, ()):
        raise RuntimeError(
            f"{what} an empty tensor because the operation does not have an identity"
        )
    for axis in _dims(dim, len(extents)):
        if extents[axis] == 0:
            raise RuntimeError(f"{what} the dimension {axis} because this dimension is {why}")


def norm_backward(grad, self, p, result, dim=None, keepdim=False):
    """The gradient of a p-norm, of the shape of `self`; where `result` is 0 it is 0.

    It is `|x / norm| ** (p - 1)` times the direction of x. Where this is infinite, as at 0 for
    p < 1, it is 0 as in PyTorch.
    """
    p = 2 if p is None else p
    self = _wide(self.astype(jnp.promote_types(self.dtype, result.dtype)))
    grad, result = (
        _wide(reduction._restore_reduced_dims(reduced, self.shape, dim, keepdim))
        for reduced in (grad, result)
    )
    return _norm_backward(grad, self, p, result, _dims(dim, self.ndim))


def _norm_backward(grad, x, p, result, dims):
    """`norm_backward` with the reduced dimensions kept in `grad` and `result`."""
    if p == 0:
        return jnp.zeros_like(x)
    if p == 1:
        return grad * _direction(x)
    if p == math.inf or p == -math.inf:
        return _share_of_extremum(grad, x, p, result, dims)
    is_zero = result == 0
    norm = _nonzero(result)
    if _is_even(p):  # a polynomial: its derivatives of any order are right at 0 too
        slope = (x / norm) * (_squared(x) / (norm * norm)) ** int(p / 2 - 1)
        return jnp.where(is_zero, 0, grad * slope)
    slope = _direction(x) * _power(_size(x) / norm, p - 1)
    return jnp.where(is_zero | (x == 0), 0, grad * slope)


def _is_even(p):
    return p > 0 and p % 2 == 0 and p <= 64


def _share_of_extremum(grad, x, p, result, dims):
    """`grad` divided equally among the elements whose size is the extremum, in their direction."""
    size = jnp.abs(x)
    if jnp.iscomplexobj(x):  # a root is not rounded alike in two kernels
        margin = 8 * jnp.finfo(size.dtype).eps
        bound = result * (1 - margin if p > 0 else 1 + margin)
        chosen = size >= bound if p > 0 else size <= bound
    else:
        chosen = size == result
    chosen = chosen | jnp.isnan(size)
    # floats are counted faster, and exactly up to 2 ** 24
    is_exact = math.prod(x.shape[i] for i in dims) <= 2**24
    flags = chosen.astype(size.dtype if is_exact else jnp.int32)
    count = jnp.sum(flags, axis=dims, keepdims=True).astype(size.dtype)
    return jnp.where(chosen, _direction(x) * (grad / count), 0)


def _difference(self, other):
    arithmetic.refuse_booleans(self, other)
    return op.sub(*promotion.broadcast("dist", *promotion.unify(self, other)))


def dist(self, other, p=2):
    return norm(_difference(self, other), p)


def dist_backward(grad, self, other, p, result):
    """The gradient of `self`; that of `other` is its negative."""
    return norm_backward(grad, _difference(self, other), p, result)


# scaling of slices


def renorm(self, p, dim, maxnorm):
    dims = _check_renorm(self, p, dim, maxnorm)
    wide = _wide(self)
    norm = linalg_vector_norm(wide, p, dims, True)
    factor = jnp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)
    return (wide * factor.astype(norm.dtype)).astype(self.dtype)


def renorm_backward(grad, self, p, dim, maxnorm):
    """`grad` for a slice that is not scaled; else the gradient of a slice times its factor."""
    dims = _check_renorm(self, p, dim, maxnorm)
    wide, grad = _wide(self), _wide(grad)
    norm = op.linalg_vector_norm(wide, p, dims, True)
    along = jnp.sum((wide.conj() * grad).real, axis=dims, keepdims=True)
    inverse = 1 / (norm + 1e-7)
    of_norm = _norm_backward(along, wide, p, norm, dims)
    return jnp.where(norm > maxnorm, maxnorm * inverse * (grad - inverse * of_norm), grad)


def _check_renorm(self, p, dim, maxnorm):
    """Check the arguments, and return the dimensions of a slice."""
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p is {p}")
    if not maxnorm >= 0:  # NaN too
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    dim = shape.wrap_dim(dim, self.ndim)
    return tuple(i for i in range(self.ndim) if i != dim)
