"""QR factorizations, Householder reflections, and least squares.

A product of reflections `Q = H_1 ... H_k`, with `H_i = 1 - tau_i v_i v_i^H`, is `1 - V T V^H`,
where `T = (1 + D S)^-1 D`, D has tau on its diagonal, and S is `V^H V` above the diagonal: for any
V and tau, also where Q is not unitary. See Joffrain et al., Accumulating Householder
transformations (2006). So values and derivatives are products of matrices, and smooth where a tau
is 0.
"""

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import factorization, matrices

from jaxgrad.core import dtypes, linalg_error, promotion, tpu_kernels
from jaxgrad.core.primitive import op

# QR


def linalg_qr(A, mode="reduced"):
    matrices.check_matrix("linalg.qr", A)
    matrices.check_kernel("geqrf_cpu", A, halves_only=True)
    matrices.check_numbers("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    rows, columns = A.shape[-2:]
    count = rows if mode == "complete" else min(rows, columns)
    if not A.size:
        identity = jnp.eye(rows, count, dtype=A.dtype)
        unit = jnp.broadcast_to(identity, (*A.shape[:-2], rows, count))
        upper = jnp.zeros((*A.shape[:-2], count, columns), A.dtype)
        return (jnp.zeros((0,), A.dtype) if mode == "r" else unit), upper
    unit, upper = lax.linalg.qr(A, full_matrices=mode == "complete")
    return (jnp.zeros((0,), A.dtype) if mode == "r" else unit), upper


def qr(self, some=True):
    return linalg_qr(self, "reduced" if some else "complete")


def linalg_qr_backward(grads, A, Q, R, mode):
    """The gradient of A. It has no value where the first min(m, n) columns are dependent, but for
    the last of a real matrix that is not tall.
    """
    grad_q, grad_r = grads
    rows, columns = A.shape[-2:]
    if mode == "complete" and rows > columns:
        raise NotImplementedError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols: "
            "the last columns of Q are any basis of the rest; mode='reduced' is differentiable"
        )
    if mode == "r":
        Q = op.linalg_qr(A)[0]
        grad_q = jnp.zeros_like(Q)
    return qr_backward(grad_q, jnp.triu(grad_r), Q, R)


def qr_backward(grad_q, grad_r, Q, R):
    """The gradient of `A = Q R`; see Roberts and Roberts, QR and LQ decomposition matrix
    backpropagation algorithms (2020).

    The skew-Hermitian `W = Q^H dQ` is determined by the part of `Q^H dA R^-1` below the diagonal,
    and by the imaginary part of its diagonal.
    """
    adjoint, rows, columns = matrices.hermitian_transpose, Q.shape[-2], R.shape[-1]
    if rows > columns:
        inner = matrices.product(grad_r, adjoint(R)) - matrices.product(adjoint(Q), grad_q)
        upper = jnp.triu(inner)
        inner = upper + adjoint(jnp.triu(inner, 1)) - _imaginary_diagonal(inner)
        right = grad_q + matrices.product(Q, inner)
        return matrices.product_with_inverse_adjoint(R, right)
    inner = matrices.product(adjoint(Q), grad_q) - matrices.product(grad_r, adjoint(R))
    skew = matrices.below_diagonal(inner - adjoint(inner)) + _imaginary_diagonal(inner)
    square = R[..., :rows]
    square = square if jnp.iscomplexobj(square) else factorization.with_last_one(square)
    skew = matrices.product_with_inverse_adjoint(square, skew)
    return matrices.product(Q, grad_r + factorization.zero_padded(skew, -1, columns))


def _imaginary_diagonal(matrix):
    if not jnp.iscomplexobj(matrix):
        return jnp.zeros_like(matrix)
    return matrix.imag * 1j * matrices.identity_like(matrix)


def geqrf(self):
    matrices.check_matrix("torch.geqrf", self, "input")
    matrices.check_kernel("geqrf_cpu", self)
    if not self.size:
        return self, jnp.zeros((*self.shape[:-2], min(self.shape[-2:])), self.dtype)
    turned, tau = jnp.linalg.qr(self, mode="raw")
    return jnp.swapaxes(turned, -1, -2), tau


INDEPENDENT = (
    "the first min(m, n) columns are independent, but for the last of a real matrix that is not "
    "tall"
)
for _function in (linalg_qr, qr, geqrf):
    _function.undefined = linalg_error.missing_derivative(_function.__name__, INDEPENDENT)


def geqrf_backward(grads, A, packed, tau):
    """The gradient of A, whose first min(m, n) columns must be independent.

    `1 - Q` is `V (T V_n^H)`, a unit lower times an upper triangle with tau on its diagonal: an LU
    factorization without exchanges. So a change of Q gives that of V and tau, and back.
    """
    grad_packed, grad_tau = grads
    count = tau.shape[-1]
    vectors = _vectors(packed, count)
    unit = op.linalg_householder_product(packed[..., :count], tau)
    square = matrices.identity_like(unit, *unit.shape[-2:]) - unit
    upper = jnp.triu(
        matrices.triangular_solution(
            vectors[..., :count, :], square[..., :count, :], False, unit=True
        )
    )
    grad_upper = grad_tau[..., None] * matrices.identity_like(upper)
    of_unit = factorization.linalg_lu_backward(
        grad_packed[..., :count], grad_upper, None, vectors, upper, False
    )
    of_triangle = jnp.triu(grad_packed[..., :count, :])
    return qr_backward(-of_unit, of_triangle, unit, jnp.triu(packed[..., :count, :]))


# products of reflections


def _vectors(packed, count):
    """The vectors of reflections: 1 on the diagonal, below it those elements of `packed`."""
    read = matrices.below_diagonal(packed[..., :count])
    return read + matrices.identity_like(packed, *read.shape[-2:])


def _inner(vectors, tau):
    """S, and the unit upper triangle `1 + D S`."""
    above = jnp.triu(matrices.product(matrices.hermitian_transpose(vectors), vectors), 1)
    return above, tau[..., None] * above + matrices.identity_like(above)


def _reflected(vectors, tau, right, adjoint=False):
    """`Q C`, or `Q^H C`."""
    solve, turned = matrices.triangular_solution, matrices.hermitian_transpose(vectors)
    _, triangle = _inner(vectors, tau)
    inner = matrices.product(turned, right)
    if adjoint:
        inner = jnp.conj(tau)[..., None] * solve(triangle, inner, True, adjoint=True, unit=True)
    else:
        inner = solve(triangle, tau[..., None] * inner, True, unit=True)
    return right - matrices.product(vectors, inner)


def linalg_householder_product(input, tau):
    name = "torch.linalg.householder_product"
    _check_reflections(name, input, tau)
    if tau.dtype != input.dtype:
        kinds = [dtypes.from_numpy(array.dtype).scalar_type for array in (tau, input)]
        raise RuntimeError(f"{name}: tau dtype {kinds[0]} does not match input dtype {kinds[1]}")
    matrices.check_numbers(name, input)
    vectors = _vectors(input, tau.shape[-1])
    return _reflected(vectors, tau, matrices.identity_like(input, *input.shape[-2:]))


def orgqr(self, input2):
    return linalg_householder_product(self, input2)


def _check_reflections(name, packed, tau):
    matrices.check_matrix(name, packed, "input")
    if packed.shape[-2] < packed.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1], got "
            f"{list(packed.shape)}"
        )
    if not tau.ndim or packed.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1], got "
            f"{list(packed.shape)} and {list(tau.shape)}"
        )
    if tau.shape[:-1] != packed.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.shape[:-1])}"
        )


def householder_product_backward(grad, packed, tau):
    """The gradients of the packed vectors and of tau."""
    columns = matrices.identity_like(packed, *packed.shape[-2:])
    return _reflections_backward(grad, columns, packed, tau)


def _reflections_backward(grad, right, packed, tau):
    """The gradients of the vectors and of tau by `<grad, Q C>`.

    With `X = V^H C`, `M = 1 + D S` and `Z = M^-1 D X`: `Q C = C - V Z`.
    """
    adjoint, solve, product = matrices.hermitian_transpose, matrices.triangular_solution, op.matmul
    vectors, factors = _vectors(packed, tau.shape[-1]), tau[..., None]
    above, triangle = _inner(vectors, tau)
    crossed = product(adjoint(vectors), right)
    solved = solve(triangle, factors * crossed, True, unit=True)
    of_scaled = solve(triangle, -product(adjoint(vectors), grad), True, adjoint=True, unit=True)
    of_triangle = -product(of_scaled, adjoint(solved))
    of_tau = (of_triangle * above.conj()).sum(-1) + (of_scaled * crossed.conj()).sum(-1)
    of_above = jnp.triu(factors.conj() * of_triangle, 1)
    of_vectors = (
        product(right, adjoint(factors.conj() * of_scaled))
        - product(grad, adjoint(solved))
        + product(vectors, of_above + adjoint(of_above))
    )
    below = matrices.below_diagonal(of_vectors)
    return factorization.zero_padded(below, -1, packed.shape[-1]), of_tau


def ormqr(self, input2, input3, left=True, transpose=False):
    matrices.check_matrix("torch.ormqr", self, "input")
    matrices.check_matrix("torch.ormqr", input3, "other")
    _check_batch("torch.ormqr", self, input2, input3)
    axis = -2 if left else -1
    if input3.shape[axis] != self.shape[-2]:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{axis}] must be equal to input.shape[-2], got "
            f"{list(input3.shape)} and {list(self.shape)}"
        )
    if not input2.ndim or input2.shape[-1] != min(self.shape[-2:]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{axis}], "
            f"input.shape[-1]), got {list(input2.shape)}, {list(input3.shape)} and "
            f"{list(self.shape)}"
        )
    matrices.check_numbers("torch.ormqr", self, input2)
    matrices.check_numbers("torch.ormqr", self, input3)
    vectors = _vectors(self, input2.shape[-1])
    if left:
        return _reflected(vectors, input2, input3, transpose)
    turned = matrices.hermitian_transpose(input3)
    return matrices.hermitian_transpose(_reflected(vectors, input2, turned, not transpose))


def _check_batch(name, matrix, tau, other):
    if tau.ndim != matrix.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.ndim} and input.ndim is equal to {matrix.ndim}"
        )
    if other.ndim != matrix.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other.ndim} and input.ndim is equal to {matrix.ndim}"
        )
    for which, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if batch != matrix.shape[:-2]:
            raise RuntimeError(
                f"{name}: Expected batch dimensions of {which} to be equal to input.shape[:-2], "
                f"but got {list(batch)}"
            )


def ormqr_backward(grad, packed, tau, other, left, transpose):
    """The gradients of the packed vectors, of tau, and of the other factor."""
    of_other = op.ormqr(packed, tau, grad, left, not transpose)
    # <grad, Q^H C> is <C, Q grad>, and a product from the right is one of transposes
    first, second = (other, grad) if left == transpose else (grad, other)
    if not left:
        first, second = map(matrices.hermitian_transpose, (first, second))
    return *_reflections_backward(first, second, packed, tau), of_other


# least squares


def pseudoinverse(A, rcond):
    """The inverse of the part of A whose singular values are above `rcond` times the greatest."""
    unit, values, other = _parts(A)
    inverses = _inverses(values, rcond).astype(A.dtype)
    turned = matrices.hermitian_transpose
    return matrices.product(turned(other) * inverses[..., None, :], turned(unit))


def _parts(matrix):
    if matrix.size:
        return tpu_kernels.svd(matrix, False)
    rows, columns = matrix.shape[-2:]
    count, batch = min(rows, columns), matrix.shape[:-2]
    values = jnp.zeros((*batch, count), matrix.real.dtype)
    shapes = (*batch, rows, count), (*batch, count, columns)
    return jnp.zeros(shapes[0], matrix.dtype), values, jnp.zeros(shapes[1], matrix.dtype)


def _large(values, rcond):
    if not values.shape[-1]:
        return values > 0
    return values > rcond * values[..., :1]


def _inverses(values, rcond):
    large = _large(values, rcond)
    return jnp.where(large, 1 / jnp.where(large, values, 1), 0)


def pseudoinverse_backward(grad, A, result):
    """See Golub and Pereyra, The differentiation of pseudo-inverses (1973); of constant rank.

    No product has the square of the number of rows, of a tall matrix, as its size.
    """
    turned, product = matrices.hermitian_transpose, matrices.product
    rows, columns = A.shape[-2:]
    if rows < columns:
        return turned(pseudoinverse_backward(turned(grad), turned(A), turned(result)))
    inverse, moved = turned(result), turned(grad)
    gradient = -product(inverse, product(grad, inverse))
    # the parts of the change outside of the range of A, and of that of A^H
    outside = moved - product(A, product(result, moved))
    gradient = gradient + product(outside, product(result, inverse))
    outside = moved - product(moved, product(result, A))
    return gradient + product(inverse, product(result, outside))


def linalg_lstsq(self, b, rcond=None, *, driver=None):
    name = "torch.linalg.lstsq"
    _check_least_squares(name, self, b, driver)
    is_vector = matrices.is_vector(self.shape, b.shape)
    right = b[..., None] if is_vector else b
    rows, columns = self.shape[-2:]
    unit, values, other = _parts(self)
    rcond = _default_rcond(self) if rcond is None else rcond
    turned = matrices.hermitian_transpose
    inverses = _inverses(values, rcond)[..., None].astype(self.dtype)
    solution = matrices.product(turned(other), inverses * matrices.product(turned(unit), right))
    kept = rows > columns and driver not in (None, "gelsy")
    residuals = _residuals(self, right, solution) if kept else jnp.zeros((0,), values.dtype)
    rank = _large(values, rcond).sum(-1).astype(jnp.int64)
    none = jnp.zeros((0,), values.dtype)
    rank = none.astype(jnp.int64) if driver == "gels" else rank
    values = values if driver in ("gelsd", "gelss") else none
    return (solution[..., 0] if is_vector else solution), residuals, rank, values


def _residuals(matrix, right, solution):
    left_over = matrices.product(matrix, solution) - right
    return (left_over * left_over.conj()).real.sum(-2)


def _default_rcond(matrix):
    return float(jnp.finfo(matrix.dtype).eps) * max(matrix.shape[-2:])


def _check_least_squares(name, matrix, right, driver):
    matrices.check_matrix(name, matrix, "input")
    if not right.ndim:
        raise RuntimeError(f"{name}: other must have at least 1 dimension, got shape []")
    matrices.check_numbers(name, matrix, right)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}"
        )
    if right.ndim not in (matrix.ndim - 1, matrix.ndim):
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - "
            f"other.dim()) <= 1, but they are {matrix.ndim} and {right.ndim}"
        )
    is_vector = matrices.is_vector(matrix.shape, right.shape)
    rows = right.shape[-1 if is_vector else -2]
    if rows != matrix.shape[-2]:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size({-1 if is_vector else -2}), got "
            f"{list(matrix.shape)} and {list(right.shape)}"
        )
    batch = right.shape[:-1] if is_vector else right.shape[:-2]
    promotion.broadcast_shapes(name, matrix.shape[:-2], batch)


def lstsq_backward(grads, A, right, solution, rcond):
    """The gradients of A, of constant rank, and of the right side."""
    grad, of_residuals, turned = grads[0], grads[1], matrices.hermitian_transpose
    is_vector = matrices.is_vector(A.shape, right.shape)
    if is_vector:
        grad, right, solution = grad[..., None], right[..., None], solution[..., None]
    rcond = _default_rcond(A) if rcond is None else rcond
    inverse = op._linalg_pseudoinverse(A, rcond=rcond)
    of_right = matrices.product(turned(inverse), grad)
    of_inverse = matrices.product(grad, turned(right))
    of_matrix = pseudoinverse_backward(of_inverse, A, inverse)
    if of_residuals.size:
        left_over = 2 * of_residuals[..., None, :] * (matrices.product(A, solution) - right)
        of_right = of_right - left_over
        of_matrix = of_matrix + matrices.product(left_over, turned(solution))
    return of_matrix, (of_right[..., 0] if is_vector else of_right)


def gels(self, A):
    """The solution above what is left over, and the factors of A, as LAPACK packs them."""
    matrices.check_matrix("gels", A)
    matrices.check_matrix("gels", self, "B")
    matrices.check_numbers("gels", A, self)
    rows, columns = A.shape[-2:]
    if self.shape[-2] != rows:
        raise RuntimeError(
            f"gels: Expected A and b to have same size at dim 0, but A has {rows} rows and B has "
            f"{self.shape[-2]} rows"
        )
    if rows >= columns:
        packed, tau = op.geqrf(A)
        turned = op.ormqr(packed, tau, self, True, True)
        solve = op.linalg_solve_triangular
        solution = solve(packed[..., :columns, :], turned[..., :columns, :], upper=True)
        return jnp.concatenate([solution, turned[..., columns:, :]], -2), packed
    packed, tau = op.geqrf(matrices.hermitian_transpose(A))
    lower = matrices.hermitian_transpose(packed[..., :rows, :])
    inner = op.linalg_solve_triangular(lower, self, upper=False)
    solution = op.ormqr(packed, tau, factorization.zero_padded(inner, -2, columns))
    return solution, matrices.hermitian_transpose(packed)
