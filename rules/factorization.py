"""Cholesky and LU factorizations, inverses, and systems of linear equations.

Where a matrix has no factorization the results hold NaN or infinity. Operators without an output
`info` have a postcondition, which raises LinAlgError then, if the values are known.
"""

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import matrices

from jaxgrad.core import device_axes, linalg_error

# Cholesky


def linalg_cholesky_ex(self, *, upper=False, check_errors=False):
    matrices.check_matrix("linalg.cholesky", self, square=True)
    matrices.check_kernel("cholesky_cpu", self, halves_only=True)
    matrices.check_numbers("linalg.cholesky", self)
    if not self.size:
        return self, jnp.zeros(self.shape[:-2], jnp.int32)
    lower = _cholesky(self, upper)
    failed = jnp.isnan(matrices.diagonal_of(lower)).any()
    none = jnp.zeros(self.shape[:-2], jnp.int32)
    # exact orders cost more than the factorization itself
    info = device_axes.cond(failed, lambda: _bad_minors(self, upper), lambda: none)
    return (matrices.hermitian_transpose(lower) if upper else lower), info


def _cholesky(matrix, upper):
    """The lower factor, from the triangle that is read; NaN if there is none."""
    read = matrices.hermitian_transpose(matrix) if upper else matrix
    return lax.linalg.cholesky(read, symmetrize_input=False) if matrix.size else matrix


def _bad_minors(matrix, upper):
    """The order of the first leading minor that is not positive, 0 if all are."""
    read = matrices.hermitian_transpose(matrix) if upper else matrix
    read = jnp.tril(read) + matrices.hermitian_transpose(matrices.below_diagonal(read))

    def eliminate(step, state):
        rest, info = state
        column = lax.dynamic_slice_in_dim(rest, step, 1, -1)
        row = lax.dynamic_slice_in_dim(rest, step, 1, -2)
        pivot = lax.dynamic_slice_in_dim(row, step, 1, -1)
        bad = ~(pivot[..., 0, 0].real > 0) & (info == 0)
        return rest - column * row / pivot, jnp.where(bad, step + 1, info)

    info = jnp.zeros(matrix.shape[:-2], jnp.int32)
    return device_axes.fori_loop(
        jnp.int32(0), jnp.int32(matrix.shape[-1]), eliminate, (read, info)
    )[1]


def _refuse_not_positive(results, self, upper, check_errors):
    if check_errors:
        matrices.raise_for_failures("linalg.cholesky_ex", results[1], matrices.NOT_POSITIVE)


linalg_cholesky_ex.postcondition = _refuse_not_positive


def cholesky(self, upper=False):
    matrices.check_matrix("cholesky", self, square=True)
    matrices.check_kernel("cholesky_cpu", self)
    lower = _cholesky(self, upper)
    return matrices.hermitian_transpose(lower) if upper else lower


def _refuse_indefinite(result, self, upper):
    if numpy.isnan(matrices.diagonal_of(numpy.asarray(result))).any():
        with jax.enable_x64(True):
            info = _bad_minors(self, upper)
        matrices.raise_for_failures("cholesky", info, matrices.NOT_POSITIVE)


cholesky.postcondition = _refuse_indefinite


def cholesky_backward(grad, factor, upper):
    """The Hermitian gradient; see Murray, Differentiation of the Cholesky decomposition (2016)."""
    adjoint = matrices.hermitian_transpose
    lower, grad = (adjoint(factor), adjoint(grad)) if upper else (factor, grad)
    inner = matrices.half_diagonal(matrices.product(adjoint(lower), grad))
    inner = matrices.triangular_solution(lower, inner, False, adjoint=True)
    gradient = matrices.triangular_solution(lower, inner, False, left=False)
    return (gradient + adjoint(gradient)) / 2


def cholesky_solve(self, input2, upper=False):
    _check_factor("cholesky_solve", self, input2)
    inner = matrices.triangular_solution(input2, self, upper, adjoint=upper)
    return matrices.triangular_solution(input2, inner, upper, adjoint=not upper)


def _check_factor(name, right, factor):
    for role, tensor in (("b", right), ("u", factor)):
        if tensor.ndim < 2:
            raise RuntimeError(
                f"{role} should have at least 2 dimensions, but has {tensor.ndim} dimensions "
                f"instead: {name} got a tensor of shape {list(tensor.shape)}"
            )
    matrices.check_system(name, factor, right)


def cholesky_solve_factor_backward(solved_grad, result, factor, upper):
    """The gradient of the factor, zero in the triangle that is not read; `solved_grad` is that of
    the right side.
    """
    half = matrices.product(solved_grad, matrices.hermitian_transpose(result))
    both = half + matrices.hermitian_transpose(half)
    gradient = matrices.product(factor, both) if upper else matrices.product(both, factor)
    return -matrices.as_triangle(gradient, upper)


def cholesky_inverse(self, upper=False):
    matrices.check_matrix("cholesky_inverse", self, square=True)
    matrices.check_kernel("cholesky_inverse_out_cpu", self)
    return cholesky_solve(matrices.identity_like(self), self, upper)


def potri(self, upper=True):
    return cholesky_inverse(self, upper)


def cholesky_inverse_backward(grad, factor, result, upper):
    """The gradient of the factor, zero in the triangle that is not read."""
    inner = matrices.product(result, grad, result)
    both = inner + matrices.hermitian_transpose(inner)
    triangle = matrices.as_triangle(factor, upper)
    gradient = matrices.product(triangle, both) if upper else matrices.product(both, triangle)
    return -matrices.as_triangle(gradient, upper)


def _refuse_zero_diagonal(result, self, upper):
    info = matrices.first_zero(numpy.diagonal(numpy.asarray(self), axis1=-2, axis2=-1))
    matrices.raise_for_failures("cholesky_inverse", info, matrices.SINGULAR)


cholesky_inverse.postcondition = potri.postcondition = _refuse_zero_diagonal


# pivoted Cholesky

FULL_RANK = "the matrix is positive definite: below full rank no near matrix has its rank"


def pstrf(self, upper=True, tol=-1):
    """The factor of `self` with rows and columns exchanged, and their order, counted from 1."""
    if self.ndim != 2:
        raise RuntimeError(f"pstrf: A should be 2 dimensional, got shape {list(self.shape)}")
    matrices.check_matrix("pstrf", self, square=True)
    matrices.check_kernel("pstrf_cpu", self)
    read = matrices.hermitian_transpose(self) if upper else self
    rest = jnp.tril(read) + matrices.hermitian_transpose(matrices.below_diagonal(read))
    size = self.shape[0]
    order = jnp.arange(size, dtype=jnp.int32)
    if not size:
        return self, order
    largest = matrices.diagonal_of(rest).real.max()
    default = size * jnp.finfo(largest.dtype).eps * largest
    limit = jnp.where(jnp.asarray(tol) < 0, default, tol).astype(largest.dtype)
    state = rest, jnp.zeros_like(rest), order, jnp.asarray(True)
    step = _pivoted_step(limit)
    _, lower, order, _ = device_axes.fori_loop(jnp.int32(0), jnp.int32(size), step, state)
    return (matrices.hermitian_transpose(lower) if upper else lower), order + 1


pstrf.undefined = linalg_error.missing_derivative("pstrf", FULL_RANK)


def _pivoted_step(limit):
    """One column of the factor: that of the greatest pivot, zero once none is above the limit."""

    def step(number, state):
        rest, lower, order, going = state
        places = jnp.arange(rest.shape[0], dtype=jnp.int32)
        diagonal = jnp.where(places < number, -jnp.inf, matrices.diagonal_of(rest).real)
        chosen = jnp.argmax(diagonal).astype(jnp.int32)
        going &= diagonal[chosen] > limit
        chosen = jnp.where(going, chosen, number)
        exchange = jnp.where(places == number, chosen, places)
        exchange = jnp.where(places == chosen, number, exchange)
        rest, lower, order = rest[exchange][:, exchange], lower[exchange], order[exchange]
        pivot = jnp.where(going, rest[number, number].real, 1)
        column = jnp.where((places >= number) & going, rest[:, number] / jnp.sqrt(pivot), 0)
        return (
            rest - column[:, None] * column.conj(),
            lower.at[:, number].set(column),
            order,
            going,
        )

    return step


def pstrf_backward(grad, factor, order, upper):
    """The gradient with the order of the pivots held constant; NaN below full rank."""
    inner = cholesky_backward(grad, factor, upper)
    places = jnp.argsort(order)
    return jnp.take(jnp.take(inner, places, 0), places, 1)


# LU


def linalg_lu_factor_ex(A, *, pivot=True, check_errors=False):
    matrices.check_matrix("torch.linalg.lu_factor", A)
    matrices.check_kernel("lu_cpu", A)
    packed, pivots = _factors(A, pivot)
    return packed, pivots + 1, matrices.first_zero(matrices.diagonal_of(packed))


def _factors(matrix, pivot=True):
    """The packed factors and the pivots, counted from 0."""
    count = min(matrix.shape[-2:])
    identity = jnp.broadcast_to(jnp.arange(count, dtype=jnp.int32), (*matrix.shape[:-2], count))
    if not matrix.size:
        return matrix, identity
    if not pivot:
        return _factors_in_order(matrix), identity
    packed, pivots, _ = lax.linalg.lu(matrix)
    return packed, pivots.astype(jnp.int32)


def _factors_in_order(matrix):
    """The packed factors without exchanges of rows, which PyTorch has on GPUs only."""
    rows, columns = (jnp.arange(size) for size in matrix.shape[-2:])

    def step(number, packed):
        column = lax.dynamic_slice_in_dim(packed, number, 1, -1)
        row = lax.dynamic_slice_in_dim(packed, number, 1, -2)
        pivot = lax.dynamic_slice_in_dim(row, number, 1, -1)
        below = (rows > number)[:, None]
        multipliers = jnp.where(below, column / pivot, 0)
        packed = jnp.where(below & (columns == number), multipliers, packed)
        return packed - multipliers * jnp.where(columns > number, row, 0)

    count = jnp.int32(min(matrix.shape[-2:]))
    return device_axes.fori_loop(jnp.int32(0), count, step, matrix)


def _refuse_singular_factors(results, A, pivot, check_errors):
    if check_errors:
        matrices.raise_for_failures("torch.linalg.lu_factor_ex", results[2], matrices.LU_SINGULAR)


linalg_lu_factor_ex.postcondition = _refuse_singular_factors


def btrifact_with_info(self, pivot=True):
    return linalg_lu_factor_ex(self, pivot=pivot)


def btrifact(self, pivot=True):
    return btrifact_with_info(self, pivot)[:2]


def _refuse_singular_batch(results, self, pivot):
    info = matrices.first_zero(numpy.diagonal(numpy.asarray(results[0]), axis1=-2, axis2=-1))
    matrices.raise_for_failures("btrifact", info, matrices.LU_SINGULAR)


btrifact.postcondition = _refuse_singular_batch


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    matrices.check_matrix("torch.lu_unpack", LU_data)
    if unpack_pivots and LU_pivots.dtype != jnp.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            f"dtype, got {LU_pivots.dtype}. Note: this function is intended to be used with the "
            "output produced by torch.linalg.lu_factor"
        )
    none = jnp.zeros((0,), LU_data.dtype)
    lower, upper = _unpacked(LU_data) if unpack_data else (none, none)
    return _permutation(LU_data, LU_pivots - 1) if unpack_pivots else none, lower, upper


def _check_pivots(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    if unpack_pivots:
        matrices.check_pivots("lu_unpack", LU_data, numpy.asarray(LU_pivots), "lu_factor")


lu_unpack.precondition = _check_pivots


def _unpacked(packed):
    """The factors L and U of packed ones."""
    count = min(packed.shape[-2:])
    lower = matrices.below_diagonal(packed)[..., :count]
    lower = lower + matrices.identity_like(packed, *lower.shape[-2:])
    return lower, jnp.triu(packed)[..., :count, :]


def _permutation(packed, pivots):
    """The matrix P of `A = P L U`."""
    order = row_order(packed, pivots)
    rows = jnp.arange(packed.shape[-2])
    return (order[..., None, :] == rows[:, None]).astype(packed.dtype)


def row_order(packed, pivots):
    """Which row of A is each row of `L U`."""
    rows = packed.shape[-2]
    if not pivots.shape[-1]:
        return jnp.broadcast_to(jnp.arange(rows), (*pivots.shape[:-1], rows))
    return lax.linalg.lu_pivots_to_permutation(pivots, rows)


def lu_unpack_backward(grad_lower, grad_upper, shape, unpack_data):
    """The gradient of packed factors, in the shape of theirs."""
    rows, columns = shape[-2:]
    if not unpack_data:
        return jnp.zeros(shape, grad_lower.dtype)
    lower, upper = matrices.below_diagonal(grad_lower), jnp.triu(grad_upper)
    return zero_padded(lower, -1, columns) + zero_padded(upper, -2, rows)


def zero_padded(matrix, axis, extent):
    """A matrix with zeros behind its rows or columns."""
    padding = [(0, 0)] * matrix.ndim
    padding[axis] = (0, extent - matrix.shape[axis])
    return jnp.pad(matrix, padding)


def linalg_lu(A, *, pivot=True):
    matrices.check_matrix("linalg.lu", A)
    matrices.check_kernel("lu_cpu", A)
    packed, pivots = _factors(A, pivot)
    permutation = _permutation(packed, pivots) if pivot else jnp.zeros((0,), A.dtype)
    return permutation, *_unpacked(packed)


def linalg_lu_backward(grad_lower, grad_upper, permutation, lower, upper, pivot):
    """The gradient of a matrix from those of its factors.

    With `F = L1^-1 P^T dA`: `dL1 = L1 S` with S strictly below the diagonal of `F1 U1^-1`, and
    `dU = F - S U`; the rows of L below the square follow from `L2 = A2 U^-1`. The last pivot does
    not enter where the matrix is not tall, so that it may be 0.
    """
    rows, columns = lower.shape[-2], upper.shape[-1]
    count, adjoint, solve = (
        min(rows, columns),
        matrices.hermitian_transpose,
        matrices.product_with_inverse_adjoint,
    )
    square, grad_upper = lower[..., :count, :], jnp.triu(grad_upper)
    below = None
    if rows > count:
        below = solve(upper, grad_lower[..., count:, :])
        grad_upper = grad_upper - jnp.triu(matrices.product(adjoint(lower[..., count:, :]), below))
    inner = matrices.product(adjoint(square), matrices.below_diagonal(grad_lower[..., :count, :]))
    inner = inner - matrices.product(grad_upper, adjoint(upper))
    strict = solve(with_last_one(upper[..., :count]), matrices.below_diagonal(inner))
    gradient = grad_upper + zero_padded(strict, -1, columns)
    gradient = matrices.triangular_solution(square, gradient, False, adjoint=True, unit=True)
    gradient = gradient if below is None else jnp.concatenate([gradient, below], -2)
    return matrices.product(permutation, gradient) if pivot else gradient


def with_last_one(upper):
    """A triangle with 1 for its last pivot."""
    size = upper.shape[-1]
    last = jnp.arange(size) == size - 1
    return jnp.where(last & last[:, None], 1, upper)


def lu_factor_backward(grad, packed, pivots, pivot=True):
    """The gradient of a matrix from that of its packed factors."""
    count = min(packed.shape[-2:])
    lower, upper = _unpacked(packed)
    permutation = _permutation(packed, pivots - 1)
    grad_lower, grad_upper = grad[..., :count], grad[..., :count, :]
    return linalg_lu_backward(grad_lower, grad_upper, permutation, lower, upper, pivot)


PIVOTS = "no pivot is zero, but for the last of a matrix that is not tall"
for _function in (linalg_lu_factor_ex, linalg_lu, btrifact, btrifact_with_info):
    _function.undefined = linalg_error.missing_derivative(_function.__name__, PIVOTS)
