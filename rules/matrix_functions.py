"""Determinants, and functions of matrices: the exponential and the pseudoinverse."""

import math

import jax
import jax.numpy as jnp
from jaxgrad.rules import eigenvalues, matrices, orthogonal

from jaxgrad.core import device_axes, dtypes, tpu_kernels

_mm, _adjoint = eigenvalues.matrix_product, matrices.hermitian_transpose

# determinants


def linalg_det(A):
    eigenvalues.check_matrices("linalg.det", A)
    return jnp.linalg.det(A)


def det(self):
    return linalg_det(self)


def linalg_det_backward(grad, A):
    """The gradient by cofactors, which is right for singular matrices too, and so are its own
    derivatives.
    """
    _, transposed = jax.vjp(_determinant, A)
    (cotangent,) = transposed(jnp.conj(grad))
    return jnp.conj(cotangent)


_SMALL = 3  # the determinant of matrices up to this size is written out


def _determinant(A):
    """The determinant, whose derivatives to any order are those of a polynomial.

    Of a matrix of low rank a derivative by the inverse is infinite times 0. Here the inverse is
    that of a block with all singular values but the smallest three; of what remains the determinant
    is written out. If more of them are 0, then so are all derivatives to the third.
    """
    n = A.shape[-1]
    if n <= _SMALL:
        return _small_determinant(A)
    # unitary factors that are constants: then the matrix between them is diagonal, and moves
    left, values, right = tpu_kernels.svd(jax.lax.stop_gradient(A))
    phase = jnp.linalg.det(left) * jnp.linalg.det(right)
    inner = _mm(_adjoint(left), A, _adjoint(right))
    r = n - _SMALL
    large = values[..., :r]
    pivots = jnp.where(large == 0, 1, large)[..., None]
    block = inner[..., :r, :] / pivots
    block, beside = block[..., :r], block[..., r:]
    # the product below is 0 if a pivot is
    block = block + jnp.eye(r, dtype=A.dtype) * (large == 0)[..., None]
    rest = inner[..., r:, r:] - _mm(inner[..., r:, :r], jnp.linalg.solve(block, beside))
    # next to the identity, so that its logarithm is regular
    sign, logarithm = jnp.linalg.slogdet(block)
    determinant = jnp.prod(large, axis=-1) * sign * jnp.exp(logarithm)
    return phase * determinant * _small_determinant(rest)


def _small_determinant(A):
    n = A.shape[-1]
    if n == 0:
        return jnp.ones(A.shape[:-2], A.dtype)
    if n == 1:
        return A[..., 0, 0]
    (a, b), (c, d) = ([A[..., i, j] for j in (-2, -1)] for i in (-2, -1))
    if n == 2:
        return a * d - b * c
    minors = (A[..., 1, j] * A[..., 2, k] - A[..., 1, k] * A[..., 2, j] for j, k in _OTHERS)
    return sum(A[..., 0, i] * minor for i, minor in enumerate(minors))


_OTHERS = ((1, 2), (2, 0), (0, 1))


def linalg_slogdet(A):
    eigenvalues.check_matrices("linalg.slogdet", A)
    determinant = jnp.linalg.slogdet(A)
    return determinant.sign, determinant.logabsdet


def slogdet(self):
    return linalg_slogdet(self)


linalg_slogdet.undefined = slogdet.undefined = (
    "slogdet_backward: the matrix is singular: the logarithm of its determinant is -inf and has no "
    "derivative"
)


def slogdet_backward(grad_sign, grad_logabsdet, A, sign):
    """The logarithm of the determinant moves by tr(A^-1 dA), its real part and phase by the real
    and imaginary part of that.
    """
    singular = (sign == 0)[..., None, None]
    identity = jnp.eye(A.shape[-1], dtype=A.dtype)
    inverse = jnp.linalg.inv(jnp.where(singular, identity, A))
    factor = grad_logabsdet
    if jnp.iscomplexobj(A):
        factor = factor + 1j * (grad_sign * jnp.conj(sign)).imag
    # a factor, since the derivative of a constant NaN would be 0
    return factor[..., None, None] * jnp.where(singular, jnp.nan, 1) * _adjoint(inverse)


# functions of matrices


def linalg_matrix_exp(self):
    eigenvalues.check_matrices("linalg.matrix_exp", self, half=True)
    if dtypes.from_numpy(self.dtype).to_real().itemsize < 4:
        return linalg_matrix_exp(self.astype(jnp.float32)).astype(self.dtype)
    size, identity = _size(self), jnp.eye(self.shape[-1], dtype=self.dtype)
    halvings = jnp.maximum(jnp.ceil(jnp.log2(size / _RADII[size.dtype.itemsize])), 0)
    halvings = jnp.where(jnp.isfinite(size), halvings, 0)
    most = jnp.max(halvings, initial=0)

    def square(state):
        i, matrix, is_whole = state
        is_open = i < halvings
        shrinks = is_open & ~is_whole & (_size(matrix + identity) < _SMALLEST)
        matrix = jnp.where(shrinks, matrix + identity, matrix)
        is_whole = is_whole | shrinks
        squared = _mm(matrix, matrix) + jnp.where(is_whole, 0, 2 * matrix)
        return i + 1, jnp.where(is_open, squared, matrix), is_whole

    scaled = self * jnp.exp2(-halvings).astype(size.dtype)
    state = 0, _exp_less_identity(scaled), jnp.zeros(size.shape, bool)
    _, matrix, is_whole = device_axes.while_loop(lambda state: state[0] < most, square, state)
    return jnp.where(is_whole, matrix, matrix + identity)


# The norms up to which a Taylor polynomial of degree 16 is right to rounding, by the bytes of a
# real number.
_RADII = {4: 2.0, 8: 0.78}

# The exponential less the identity has no rounding of the ones, which every squaring would double:
# it is squared by E -> E E + 2 E. Where the exponential is smaller than this, the identity would
# cancel, so it is squared itself from there on.
_SMALLEST = 0.5


def _size(matrix):
    """The greatest sum of a column, as (..., 1, 1)."""
    sums = jnp.sum(abs(matrix), axis=-2, keepdims=True)
    return jnp.max(sums, axis=-1, keepdims=True, initial=0)


def _exp_less_identity(A):
    """The Taylor polynomial of exp(A) - I by powers of the fourth power of A, with six products.
    See M. Paterson, L. Stockmeyer, On the number of nonscalar multiplications necessary to evaluate
    polynomials.
    """
    second = _mm(A, A)
    powers = jnp.eye(A.shape[-1], dtype=A.dtype), A, second, _mm(second, A), _mm(second, second)
    c = [1 / math.factorial(k) for k in range(17)]
    result = c[16] * powers[4]
    for first in (12, 8, 4):
        result = _mm(result + sum(c[first + k] * powers[k] for k in range(4)), powers[4])
    return result + sum(c[k] * powers[k] for k in (3, 2, 1))


def linalg_matrix_exp_block(matrix, moved):
    """The block triangular matrix whose exponential has the derivative along `moved` as its upper
    right block; see I. Najfeld, T. Havel, Derivatives of the matrix exponential.
    """
    size = _unit(moved)
    matrix, moved = jnp.broadcast_arrays(matrix, moved / size)
    above = jnp.concatenate([matrix, moved], axis=-1)
    return jnp.concatenate([above, jnp.concatenate([0 * moved, matrix], axis=-1)], axis=-2)


def linalg_matrix_exp_backward_block(matrix, grad):
    return linalg_matrix_exp_block(_adjoint(matrix), grad)


def linalg_matrix_exp_corner(exponential, moved):
    n = moved.shape[-1]
    return exponential[..., :n, n:] * _unit(moved)


def _unit(moved):
    """The size by which `moved` is divided, so that it needs no halvings: the map is linear."""
    size = jax.lax.stop_gradient(eigenvalues.size_of(moved))
    return jnp.where(size == 0, 1, size)


def linalg_pinv(self, rcond=None, hermitian=False, *, atol=None, rtol=None):
    dtype = dtypes.from_numpy(self.dtype)
    if self.ndim < 2 or dtype.category < dtypes.FLOATING or dtype.to_real().itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({dtype.scalar_type}{{{list(self.shape)}}}): expected a tensor with 2 or "
            "more dimensions of float, double, cfloat or cdouble types"
        )
    check_tolerances("torch.linalg.pinv", rcond=rcond, atol=atol, rtol=rtol)
    rtol = rcond if rtol is None else rtol
    if hermitian:
        eigenvalues.check_matrices("linalg.pinv", self)
        values, left = jnp.linalg.eigh(self, UPLO="L", symmetrize_input=False)
        right = _adjoint(left)
    else:
        left, values, right = tpu_kernels.svd(self, False)
    kept = abs(values) > _threshold(abs(values), self.shape, atol, rtol)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0).astype(self.dtype)
    return _mm(_adjoint(right) * inverse[..., None, :], _adjoint(left))


def check_tolerances(name, **tolerances):
    """Raise RuntimeError for a complex tolerance."""
    for role, value in tolerances.items():
        if value is not None and jnp.iscomplexobj(value):
            kind = dtypes.from_numpy(jnp.result_type(value)).scalar_type
            raise RuntimeError(
                f"{name}: {role} tensor of complex type is not supported. Got {kind}"
            )


def _threshold(values, shape, atol, rtol):
    """Singular values up to this one count as 0: the larger of the two tolerances."""
    if rtol is None:
        usual = max(shape[-2:]) * jnp.finfo(values.dtype).eps
        rtol = usual if atol is None else jnp.where(jnp.asarray(atol) > 0, 0.0, usual)
    largest = jnp.max(values, axis=-1, initial=0)
    relative = jnp.asarray(rtol) * largest
    return jnp.maximum(relative, 0 if atol is None else atol)[..., None]


def pinverse(self, rcond=1e-15):
    return linalg_pinv(self, rcond)


def pinv_backward(grad, pinv, A):
    """The gradient where the rank stays the same, also if more than rounding is dropped.

    No product has the square of the number of rows, of a tall matrix, as its size.
    """
    rows, columns = A.shape[-2:]
    if rows < columns:
        return _adjoint(pinv_backward(_adjoint(grad), _adjoint(pinv), _adjoint(A)))
    dropped = eigenvalues.size_of(A - _mm(A, _mm(pinv, A)))
    digits = 100 * max(A.shape[-2:], default=1) * jnp.finfo(A.dtype).eps
    is_exact = jnp.all(dropped <= digits * eigenvalues.size_of(A))
    return device_axes.cond(
        is_exact, orthogonal.pseudoinverse_backward, _truncated_pinv_backward, grad, A, pinv
    )


def _truncated_pinv_backward(grad, A, pinv):
    """The gradient if singular values are dropped that are not 0.

    The pseudoinverse is V f(S) U^H, where f is 1 / s or 0: the coefficients are its divided
    differences for the Hermitian and the skew part.
    """
    left, values, right = tpu_kernels.svd(A, False)
    right, moved = _adjoint(right), _adjoint(grad)
    # 1 for singular values that are kept, else 0
    share = jnp.diagonal(_mm(_adjoint(left), A, pinv, left), axis1=-2, axis2=-1).real
    kept = share > 0.5
    f = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)
    (f1, f2), (s1, s2) = ((x[..., None], x[..., None, :]) for x in (f, values))
    mixed = kept[..., None] != kept[..., None, :]
    hermitian = jnp.where(mixed, (f1 - f2) / jnp.where(mixed, s1 - s2, 1), -f1 * f2)
    skew = jnp.where(mixed, (f1 + f2) / jnp.where(mixed, s1 + s2, 1), f1 * f2)
    inner = _mm(_adjoint(left), moved, right)
    turned = hermitian * (inner + _adjoint(inner)) + skew * (inner - _adjoint(inner))
    gradient = _mm(left, turned / 2, _adjoint(right))
    beyond = _mm(moved, right) - _mm(left, inner)
    gradient = gradient + _mm(beyond * f2**2, _adjoint(right))
    beyond = _mm(_adjoint(moved), left) - _mm(right, _adjoint(inner))
    return gradient + _mm(left, _adjoint(beyond * f2**2))


linalg_pinv.undefined = pinverse.undefined = (
    "pinv_backward: a tolerance drops singular values that are not 0, and two singular values are "
    "equal: that derivative is computed from singular vectors, which have no derivative there"
)
