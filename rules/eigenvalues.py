"""Eigenvalues and singular values.

Eigenvectors and singular vectors are determined up to a phase, and those of equal values up to a
rotation among them. The derivatives are those of functions that do not depend on this choice. Where
there is no derivative the formulas give NaN, and `undefined` is the error that a call outside of
JAX's transformations raises for it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxgrad.rules import matrices

from jaxgrad.core import device_axes, dtypes, lacking, promotion, tpu_kernels
from jaxgrad.core.program import takes_part

# Two values that differ by less than this many roundings of the largest one count as equal.
_EQUAL = 10


def check_matrices(name, matrix, square=True, half=False):
    """Check that there are matrices of a dtype that LAPACK has, or of half precision."""
    dtype = dtypes.from_numpy(matrix.dtype)
    if matrix.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions. It has shape "
            f"{list(matrix.shape)}"
        )
    rows, columns = matrix.shape[-2:]
    if square and rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {rows} by {columns} "
            "matrices"
        )
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{dtype.scalar_type}: convert with .to(dtype)"
        )
    if dtype.to_real().itemsize < 4 and not half:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{dtype.scalar_type}': Low precision dtypes not "
            f"supported. Got {dtype.scalar_type}: convert with .float()"
        )


def matrix_product(first, *others):
    """The product of matrices, in the highest precision."""
    for other in others:
        first = jnp.matmul(first, other, precision="highest")
    return first


def _skew(matrix):
    """Twice the skew-Hermitian part."""
    return matrix - matrices.hermitian_transpose(matrix)


def _diagonal_matrix(values):
    return values[..., None] * jnp.eye(values.shape[-1], dtype=values.dtype)


def size_of(matrix):
    """The largest absolute value, 1 by 1."""
    return jnp.max(abs(matrix), axis=(-2, -1), keepdims=True, initial=0)


def _rounding(values):
    """Below this a difference of the values counts as 0, 1 by 1."""
    largest = jnp.max(abs(values), axis=-1, keepdims=True, initial=0)[..., None]
    return _EQUAL * jnp.finfo(largest.dtype).eps * largest


def _is_zero(matrix, size):
    """Whether elements are 0 but for rounding; `size`: that of the terms that they are sums of."""
    digits = 100 * max(matrix.shape[-2:], default=1) * jnp.finfo(matrix.dtype).eps
    return abs(matrix) <= digits * size


def _over(numerator, divisor, small):
    """numerator / divisor, 0 where the divisor is `small`."""
    return jnp.where(small, 0, numerator / jnp.where(small, 1, divisor))


def _differences(values):
    """values[j] - values[i], and which of them are 0."""
    differences = values[..., None, :] - values[..., None]
    return differences, abs(differences) <= _rounding(values)


def _near(values):
    """Which values differ so little that a limit is more precise than a difference quotient."""
    eps = jnp.finfo(values.dtype).eps
    largest = jnp.max(abs(values), axis=-1, keepdims=True, initial=0)[..., None]
    differences = abs(values[..., None, :] - values[..., None])
    return differences <= min(100 * values.shape[-1] * eps, eps**0.5) * largest


def _unequal(gradient, equal):
    """For each pair of equal values whether their gradients differ."""
    difference, size = gradient[..., None, :] - gradient[..., None], size_of(gradient[..., None])
    return equal & ~_is_zero(difference, size)


def _depends(rotation, equal, size, with_values=True):
    """Where a gradient with respect to a rotation or phase of vectors of equal values is not 0.

    Vectors at right angles turn by skew-Hermitian matrices, so only that part counts. Where the
    gradient of the values is not known, without `with_values`, the Hermitian part counts too: it
    may come from a function of vectors and values.
    """
    # of a part of a gradient the phase says nothing
    turned = abs(rotation.imag) > jnp.sqrt(jnp.finfo(size.dtype).eps) * size
    turned = turned & (not takes_part.get())
    off = _off_diagonal(equal)
    among = _skew(rotation) if with_values else rotation
    return (off & ~_is_zero(among, size)) | (equal & ~off & turned)


def _with_values(inner, grad_values, rotation, values):
    """The gradient of the matrix in the basis of its vectors, with what equal values add to it.

    A loss of V f(L) V^H, a function of the matrix, has with a Hermitian K the gradient
    diag(f'(L) K) of its values, and V^H times that of its vectors is K f(L) + f(L) K. Between equal
    values that of the matrix is f'(L) K, the limit of a difference quotient. So both known
    gradients have one ratio f' / 2f on the diagonal, and it holds for the other elements, because
    the vectors are in general position. Equal gradients of equal values are of a function of the
    values, such as their sum. Without one ratio a loss of several functions of the matrix is
    possible, and then the elements are not determined. Nor is the derivative of the result in the
    values: that takes f''. The limit replaces quotients of values that nearly are equal, too.
    """
    equal, near = (_off_diagonal(flags) for flags in (_differences(values)[1], _near(values)))
    group = near | jnp.eye(values.shape[-1], dtype=bool)
    hermitian = (rotation + matrices.hermitian_transpose(rotation)) / 2
    diagonal, size = matrices.diagonal_of(hermitian).real, size_of(grad_values[..., None])
    length = _sum_of_group(group, diagonal**2)
    is_zero = _is_zero(diagonal[..., None], size_of(rotation))[..., 0]
    ratio = _over(_sum_of_group(group, grad_values * diagonal), length, is_zero)
    other = ~_is_zero((grad_values - ratio * diagonal)[..., None], size)
    unequal = _unequal(grad_values, group)
    unknown = unequal & (other | jnp.swapaxes(other, -1, -2))
    mixed = jnp.any(unequal, axis=-1, keepdims=True)
    ratio = jax.lax.stop_gradient(ratio[..., None, :] + ratio[..., None]) / 2
    limit = jnp.where(mixed, ratio * hermitian, 0)
    turns = ~_is_zero(_skew(rotation), size_of(rotation))
    known = near & ~(unknown | turns) & jnp.isfinite(inner)
    inner = jnp.where(known, limit + (inner - matrices.hermitian_transpose(inner)) / 2, inner)
    used = jnp.any(equal | known, axis=-1) & ~_is_zero(grad_values[..., None], size)[..., 0]
    inner = inner + _diagonal_matrix(_unknown_slope(values, used))
    return _poisoned(inner, equal & unknown)


def _sum_of_group(group, numbers):
    """For each value the sum of the numbers of its group."""
    return jnp.sum(jnp.where(group, numbers[..., None, :], 0), axis=-1)


def _unknown_slope(values, used):
    """Zeros, whose derivative in the values is infinite where `used`: there it is not known."""
    step = jnp.where(used, values - jax.lax.stop_gradient(values), 1)
    return jnp.where(used, jnp.sqrt(step), 0)


def _off_diagonal(flags):
    return flags & ~jnp.eye(flags.shape[-1], dtype=bool)


def _poisoned(matrix, wrong):
    """The matrix, NaN where it is wrong."""
    return jnp.where(wrong, jnp.nan, matrix)


def _in_general_position(values, *vectors):
    """The vectors, those of equal values turned among themselves by a rotation of no special form.

    LAPACK returns vectors of a special form for matrices of a special form: unit vectors for a
    multiple of the identity. There the gradient of a function that depends on the choice of the
    vectors, such as `vectors[0, 1] ** 2`, may happen to be 0, and could not be told from that of a
    function with a derivative.
    """
    equal, size = _differences(values)[1], values.shape[-1]
    number = jnp.arange(1, size + 1, dtype=values.dtype)
    form = jnp.sin(7.3 * number[:, None] + 3.7 * number[:, None] * number + 11.1 * number)
    form = form + 2 * jnp.eye(size, dtype=values.dtype)  # positive on the diagonal

    def turned(bases):
        rotation, triangle = jnp.linalg.qr(jnp.where(equal, form, 0))
        rotation = rotation * jnp.sign(matrices.diagonal_of(triangle))[..., None, :]
        return tuple(
            jnp.concatenate(
                [
                    matrix_product(basis[..., :size], rotation.astype(basis.dtype)),
                    basis[..., size:],
                ],
                -1,
            )
            for basis in bases
        )

    any_equal = jnp.any(_off_diagonal(equal))
    return device_axes.cond(any_equal, turned, lambda bases: bases, vectors)


# Hermitian matrices


def linalg_eigh(self, UPLO="L"):
    promotion.refuse("linalg_eigh_cpu", self, dtypes.BOOLEAN, dtypes.INTEGRAL)
    check_matrices("linalg.eigh", self)
    values, vectors = jnp.linalg.eigh(self, UPLO=_triangle(UPLO), symmetrize_input=False)
    return values, *_in_general_position(values, vectors)


def linalg_eigvalsh(self, UPLO="L"):
    promotion.refuse("linalg_eigh_cpu", self, dtypes.BOOLEAN, dtypes.INTEGRAL)
    check_matrices("linalg.eigh", self)
    return jnp.linalg.eigvalsh(self, UPLO=_triangle(UPLO), symmetrize_input=False)


def _triangle(UPLO):
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


linalg_eigh.tells_missing = True
linalg_eigh.undefined = linalg_eigvalsh.undefined = (
    "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication "
    "by e^{i phi}, and those of equal eigenvalues up to a rotation. The specified loss function "
    "depends on this quantity, so it is ill-defined: the derivative of eigenvectors of equal "
    "eigenvalues does not exist, nor that of one eigenvalue among equal ones where eigenvectors "
    "are used too. Use linalg.eigvalsh where eigenvalues are enough, and a decomposition for each "
    "function of the matrix"
)


def linalg_eigh_backward(grad_values, grad_vectors, values, vectors, with_values=True):
    """The gradient of a Hermitian matrix. The gradient of one of its results may be None."""
    adjoint, inner = matrices.hermitian_transpose(vectors), jnp.zeros_like(vectors)
    if grad_vectors is not None:
        rotation, (difference, equal) = matrix_product(adjoint, grad_vectors), _differences(values)
        wrong = _depends(rotation, equal, size_of(grad_vectors), with_values)
        inner = _poisoned(_over(rotation, difference, equal), wrong)
        inner = (inner + matrices.hermitian_transpose(inner)) / 2
    if grad_values is not None:
        inner = inner + _diagonal_matrix(grad_values)
    if grad_values is not None and grad_vectors is not None:
        inner = _with_values(inner, grad_values, rotation, values)
    return matrix_product(vectors, inner, adjoint)


def eigh_of_values(self, UPLO):
    """The decomposition in derivatives of eigenvalues, which are differentiated elsewhere."""
    return linalg_eigh(self, UPLO)


eigh_of_values.tells_missing, eigh_of_values.undefined = True, linalg_eigh.undefined


def linalg_eigvalsh_backward(grad, decomposition):
    return linalg_eigh_backward(grad, None, *decomposition)


def linalg_eigvalsh_jvp(tangent, decomposition):
    return linalg_eigh_values_jvp(tangent, decomposition[1])


def linalg_eigh_values_jvp(tangent, vectors):
    return matrices.diagonal_of(
        matrix_product(matrices.hermitian_transpose(vectors), tangent, vectors)
    ).real


def linalg_eigh_vectors_jvp(tangent, values, vectors):
    moved, (difference, equal) = (
        matrix_product(matrices.hermitian_transpose(vectors), tangent, vectors),
        _differences(values),
    )
    wrong = _off_diagonal(equal) & ~_is_zero(moved, size_of(tangent))
    return matrix_product(vectors, _poisoned(_over(moved, difference, equal), wrong))


# singular values


def linalg_svd(A, full_matrices=True, driver=None):
    check_matrices("linalg.svd", A, square=False)
    _refuse_driver(driver)
    factors = tpu_kernels.svd(A, full_matrices)
    left, right = _in_general_position(
        factors.S, factors.U, matrices.hermitian_transpose(factors.Vh)
    )
    return left, factors.S, matrices.hermitian_transpose(right)


def linalg_svdvals(A, driver=None):
    check_matrices("linalg.svd", A, square=False)
    _refuse_driver(driver)
    return tpu_kernels.svdvals(A)


def _refuse_driver(driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            f"cuSOLVER backend. XLA chooses the algorithm; leave driver={driver!r} out"
        )


def _refuse_nan(result, self, *options):
    values = np.asarray(result[1] if isinstance(result, tuple | list) else result)
    if np.isnan(values).any():
        failed = np.isnan(self).any((-2, -1)).astype(int)
        matrices.raise_for_failures("linalg.svd", failed, _NOT_FINITE)


_NOT_FINITE = (
    "The algorithm failed to converge because the input matrix contained non-finite values."
)
linalg_svd.postcondition = linalg_svdvals.postcondition = _refuse_nan
linalg_svd.tells_missing = True
linalg_svd.undefined = linalg_svdvals.undefined = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by "
    "e^{i phi}, and those of equal singular values up to a rotation. The specified loss function "
    "depends on this quantity, so it is ill-defined: the derivative of singular vectors of equal "
    "or zero singular values does not exist, nor that of one singular value among them where "
    "singular vectors are used too. Use linalg.svdvals where singular values are enough, and a "
    "decomposition for each function of the matrix"
)


def svd_backward(grad_U, grad_S, grad_Vh, U, S, Vh, with_values=True):
    """The gradient of the matrix. Gradients of results may be None.

    The differentials of the thin decomposition are dU = U X + (1 - U U^H) dA V / S and
    dV = V Y + (1 - V V^H) dA^H U / S with skew-Hermitian X and Y, for which
    X + Y = (P + P^H) / (s_j - s_i) and X - Y = (P - P^H) / (s_j + s_i), where P = U^H dA V. Further
    columns of full matrices move by -U dU^H U2, and are determined up to a rotation among them.
    """
    k = S.shape[-1]
    left, right = (
        _Side(U, grad_U, k),
        _Side(matrices.hermitian_transpose(Vh), _maybe_adjoint(grad_Vh), k),
    )
    inner = _diagonal_matrix(jnp.zeros_like(S) if grad_S is None else grad_S)
    if grad_U is None and grad_Vh is None:
        return matrix_product(left.thin, inner, matrices.hermitian_transpose(right.thin))
    sizes = [size_of(gradient) for gradient in (grad_U, grad_Vh) if gradient is not None]
    size = sum(sizes[1:], start=sizes[0])
    inner = inner + _svd_inner(left.rotation, right.rotation, S, size, with_values)
    inner = _poisoned(inner, left.wrong | right.wrong)
    if grad_S is not None:
        inner = _with_values(inner, grad_S, left.rotation + right.rotation, S)
        inner = _poisoned(inner, _of_zero(grad_S, S))
    gradient = matrix_product(left.thin, inner, matrices.hermitian_transpose(right.thin))
    for side, other, is_left in ((left, right, True), (right, left, False)):
        if side.gradient is not None and side.thin.shape[-2] > k:
            scaled = _over_values(side.outside(), S, size)
            outer = matrix_product(scaled, matrices.hermitian_transpose(other.thin))
            gradient = gradient + (outer if is_left else matrices.hermitian_transpose(outer))
    return gradient


class _Side:
    """Singular vectors of one side, and what their gradient says of the thin decomposition."""

    def __init__(self, vectors, gradient, k):
        self.thin, rest = vectors[..., :k], vectors[..., k:]
        self.gradient, self.rotation, self.wrong = gradient, 0, False
        if gradient is None:
            return
        self.gradient = gradient[..., :k]
        if rest.shape[-1]:
            of_rest = gradient[..., k:]
            self.gradient = self.gradient - matrix_product(
                rest, matrices.hermitian_transpose(of_rest), self.thin
            )
            among = _skew(matrix_product(matrices.hermitian_transpose(rest), of_rest))
            free = ~_is_zero(among, size_of(of_rest))
            self.wrong = jnp.any(free, axis=(-2, -1), keepdims=True)
        self.rotation = matrix_product(matrices.hermitian_transpose(self.thin), self.gradient)

    def outside(self):
        """The part of the gradient in the complement of the vectors' span."""
        return self.gradient - matrix_product(self.thin, self.rotation)


def _maybe_adjoint(matrix):
    return None if matrix is None else matrices.hermitian_transpose(matrix)


def _svd_inner(left, right, S, size, with_values):
    """The gradient of P of those of X and Y."""
    both, opposite = left + right, left - right
    (difference, equal), (total, zero) = _differences(S), _sums(S)
    of_zero = _skew(opposite) if with_values else opposite
    wrong = _depends(both, equal, size, with_values) | (zero & ~_is_zero(of_zero, size))
    inner = _over(_skew(both), difference, equal) + _over(_skew(opposite), total, zero)
    return _poisoned(inner / 2, wrong)


def _sums(values):
    """values[j] + values[i], and which of them are 0."""
    sums = values[..., None, :] + values[..., None]
    return sums, sums <= _rounding(values)


def _of_zero(grad_S, S):
    """Where the gradient is that of a singular value of 0."""
    return _sums(S)[1] & ~_is_zero(grad_S[..., None], size_of(grad_S[..., None]))


def _over_values(matrix, S, size):
    """The columns of a matrix over the singular values."""
    divisor = S[..., None, :]
    zero = divisor <= _rounding(S)
    return _poisoned(_over(matrix, divisor, zero), zero & ~_is_zero(matrix, size))


def svd_of_values(A):
    """The decomposition in derivatives of singular values, which are differentiated elsewhere."""
    return linalg_svd(A, False)


svd_of_values.tells_missing, svd_of_values.undefined = True, linalg_svd.undefined


def linalg_svdvals_backward(grad, decomposition):
    return svd_backward(None, grad, None, *decomposition)


def linalg_svdvals_jvp(tangent, decomposition):
    return svd_values_jvp(tangent, *decomposition)


def svd_values_jvp(tangent, U, S, Vh):
    k = S.shape[-1]
    left, right = (
        matrices.hermitian_transpose(U[..., :k]),
        matrices.hermitian_transpose(Vh)[..., :k],
    )
    return matrices.diagonal_of(matrix_product(left, tangent, right)).real


def svd_left_jvp(tangent, U, S, Vh):
    return _svd_vectors_jvp(tangent, U, S, matrices.hermitian_transpose(Vh))


def svd_right_jvp(tangent, U, S, Vh):
    return matrices.hermitian_transpose(
        _svd_vectors_jvp(
            matrices.hermitian_transpose(tangent), matrices.hermitian_transpose(Vh), S, U
        )
    )


def _svd_vectors_jvp(tangent, vectors, S, others):
    """The tangent of the left singular vectors of a matrix, by the tangent of the matrix."""
    k, size = S.shape[-1], size_of(tangent)
    thin, rest = vectors[..., :k], vectors[..., k:]
    image = matrix_product(tangent, others[..., :k])
    inner = matrix_product(matrices.hermitian_transpose(thin), image)
    (difference, equal), (total, zero) = _differences(S), _sums(S)
    hermitian, skew = inner + matrices.hermitian_transpose(inner), _skew(inner)
    wrong = (_off_diagonal(equal) & ~_is_zero(hermitian, size)) | (zero & ~_is_zero(skew, size))
    turned = _over(hermitian, difference, equal) + _over(skew, total, zero)
    moved = matrix_product(thin, _poisoned(turned / 2, wrong))
    if thin.shape[-2] > k:
        moved = moved + _over_values(image - matrix_product(thin, inner), S, size)
    if not rest.shape[-1]:
        return moved
    return jnp.concatenate(
        [moved, -matrix_product(thin, matrices.hermitian_transpose(moved), rest)], axis=-1
    )


def svd(self, some=True, compute_uv=True):
    if compute_uv:
        left, values, right = linalg_svd(self, full_matrices=not some)
        return left, values, matrices.hermitian_transpose(right)
    check_matrices("linalg.svd", self, square=False)
    rows, columns = self.shape[-2:]
    left, right = (jnp.zeros((*self.shape[:-2], n, n), self.dtype) for n in (rows, columns))
    return left, tpu_kernels.svdvals(self), right


svd.postcondition = _refuse_nan
svd.tells_missing, svd.undefined = True, linalg_svd.undefined


def svd_v_backward(grad_U, grad_S, grad_V, U, S, V):
    """`svd_backward` with V in place of its adjoint."""
    return svd_backward(
        grad_U, grad_S, _maybe_adjoint(grad_V), U, S, matrices.hermitian_transpose(V)
    )


def svd_u_jvp(tangent, U, S, V, compute_uv):
    return svd_left_jvp(tangent, U, S, matrices.hermitian_transpose(V)) if compute_uv else 0 * U


def svd_v_jvp(tangent, U, S, V, compute_uv):
    return (
        matrices.hermitian_transpose(svd_right_jvp(tangent, U, S, matrices.hermitian_transpose(V)))
        if compute_uv
        else 0 * V
    )


# eigenvalues of any matrix


_NO_EIG = {
    "operators": "linalg.eig, and linalg.eigvals",
    "tpu": "move the matrix to the CPU with .cpu() and the results back with .to(device), or use "
    "linalg.eigh or linalg.eigvalsh if the matrix is symmetric or Hermitian",
}


def linalg_eig(self):
    check_matrices("linalg.eig", self)
    decomposition = lacking.without_kernel(jnp.linalg.eig, self, **_NO_EIG)
    return decomposition.eigenvalues, decomposition.eigenvectors


def linalg_eigvals(self):
    check_matrices("linalg.eigvals", self)
    return lacking.without_kernel(jnp.linalg.eigvals, self, **_NO_EIG)


def _refuse_infinite(self):
    if not np.isfinite(self).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


linalg_eig.precondition = linalg_eigvals.precondition = _refuse_infinite
linalg_eig.tells_missing = True
linalg_eig.undefined = linalg_eigvals.undefined = (
    "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication "
    "by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined; or "
    "two eigenvalues are equal: the derivative of one of them does not exist, nor that of their "
    "eigenvectors"
)


def linalg_eig_backward(grad_values, grad_vectors, values, vectors):
    """The gradient of the matrix. The gradient of one of its results may be None.

    The differentials are dL = diag(P) and dV = V (P / (l_j - l_i)), less what keeps the vectors at
    unit length, where P = V^-1 dA V.
    """
    adjoint, inner = matrices.hermitian_transpose(vectors), jnp.zeros_like(vectors)
    difference, equal = _differences(values)
    if grad_vectors is not None:
        rotation, size = matrix_product(adjoint, grad_vectors), size_of(grad_vectors)
        lengths = matrix_product(
            adjoint, vectors * matrices.diagonal_of(rotation).real[..., None, :]
        )
        # vectors of equal values are not in general position: any gradient may be that of a choice
        wrong = _depends(rotation, equal, size) | _off_diagonal(equal)
        inner = _poisoned(_over(rotation - lengths, jnp.conj(difference), equal), wrong)
    if grad_values is not None:
        inner = _poisoned(inner + _diagonal_matrix(grad_values), _unequal(grad_values, equal))
    return jnp.linalg.solve(adjoint, matrix_product(inner, adjoint))


def linalg_eig_values_jvp(tangent, values, vectors):
    moved = jnp.linalg.solve(vectors, matrix_product(tangent, vectors))
    wrong = _off_diagonal(_differences(values)[1]) & ~_is_zero(moved, size_of(moved))
    return _poisoned(matrices.diagonal_of(moved), jnp.any(wrong, axis=-1))


def linalg_eig_vectors_jvp(tangent, values, vectors):
    moved = jnp.linalg.solve(vectors, matrix_product(tangent, vectors))
    difference, equal = _differences(values)
    turned = _poisoned(_over(moved, difference, equal), _off_diagonal(equal))
    turned = matrix_product(vectors, turned)
    lengths = matrices.diagonal_of(
        matrix_product(matrices.hermitian_transpose(vectors), turned)
    ).real
    return turned - vectors * lengths[..., None, :]


def linalg_eigvals_backward(grad, decomposition):
    return linalg_eig_backward(grad, None, *decomposition)


def linalg_eigvals_jvp(tangent, decomposition):
    return linalg_eig_values_jvp(tangent, *decomposition)


# decompositions of early PyTorch


def symeig(self, eigenvectors=False, upper=True):
    triangle = "U" if upper else "L"
    if eigenvectors:
        return linalg_eigh(self, triangle)
    return linalg_eigvalsh(self, triangle), jnp.zeros(0, self.dtype)


symeig.tells_missing, symeig.undefined = True, linalg_eigh.undefined


def symeig_backward(grad_values, grad_vectors, decomposition, eigenvectors):
    grad_vectors = grad_vectors if eigenvectors else None
    return linalg_eigh_backward(grad_values, grad_vectors, *decomposition)


def symeig_vectors_jvp(tangent, decomposition, eigenvectors):
    if not eigenvectors:
        return jnp.zeros(0, tangent.dtype)
    return linalg_eigh_vectors_jvp(tangent, *decomposition)


def eig(self, eigenvectors=False):
    check_matrices("eig", self)
    promotion.refuse("eig", self, dtypes.COMPLEX)
    values, vectors = linalg_eig(self)
    return _parts(values), _packed(values, vectors) if eigenvectors else jnp.zeros(0, self.dtype)


eig.tells_missing, eig.undefined = True, linalg_eig.undefined


def _parts(values):
    return jnp.stack([values.real, values.imag], axis=-1)


def _packed(values, vectors):
    """Vectors as LAPACK packs them: those of a conjugate pair as real and imaginary part."""
    return jnp.where(values.imag[..., None, :] < 0, -vectors.imag, vectors.real)


def eig_backward(grad_values, grad_vectors, decomposition, eigenvectors):
    values, vectors = decomposition
    if grad_values is not None:
        grad_values = grad_values[..., 0] + 1j * grad_values[..., 1]
    if not eigenvectors:
        grad_vectors = None
    if grad_vectors is not None:
        second = values.imag[..., None, :] < 0
        grad_vectors = jnp.where(second, -1j * grad_vectors, grad_vectors)
    return linalg_eig_backward(grad_values, grad_vectors, values, vectors)


def eig_values_jvp(tangent, decomposition):
    return _parts(linalg_eig_values_jvp(tangent, *decomposition))


def eig_vectors_jvp(tangent, decomposition, eigenvectors):
    if not eigenvectors:
        return jnp.zeros(0, tangent.dtype)
    return _packed(decomposition[0], linalg_eig_vectors_jvp(tangent, *decomposition))
