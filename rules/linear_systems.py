"""Inverses, and systems of linear equations by factors, triangles, and least squares."""

import jax
import jax.numpy as jnp
import numpy
from jaxgrad.rules import factorization, matrices

from jaxgrad.core import promotion
from jaxgrad.core.primitive import op

# by LU factors


def solution_by_factors(packed, pivots, right, left=True, adjoint=False):
    """Solve `A X = B` by the packed factors of A and their pivots, counted from 1."""
    if not left:  # X A = B is A^H X^H = B^H
        turned = solution_by_factors(
            packed, pivots, matrices.hermitian_transpose(right), True, not adjoint
        )
        return matrices.hermitian_transpose(turned)
    solve = matrices.triangular_solution
    order = factorization.row_order(packed, pivots - 1)
    if not adjoint:
        inner = solve(packed, _rows(right, order), False, unit=True)
        return solve(packed, inner, True)
    inner = solve(packed, right, True, adjoint=True)
    inner = solve(packed, inner, False, adjoint=True, unit=True)
    return _rows(inner, jnp.argsort(order, -1))


def _rows(matrix, order):
    """The rows of a matrix in this order; batches broadcast."""
    batch = promotion.broadcast_shapes("solve", matrix.shape[:-2], order.shape[:-1])
    matrix = jnp.broadcast_to(matrix, batch + matrix.shape[-2:])
    order = jnp.broadcast_to(order[..., None], (*batch, order.shape[-1], 1))
    return jnp.take_along_axis(matrix, order, -2)


def solution_and_factors(A, B, left=True):
    matrices.check_matrix("linalg.solve", A, square=True)
    is_vector = matrices.is_vector(A.shape, B.shape)
    if is_vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    right = B[..., None] if is_vector else B
    matrices.check_system("linalg.solve", A, right, left)
    packed, pivots, info = factorization.linalg_lu_factor_ex(A)
    solution = solution_by_factors(packed, pivots, right, left)
    return (solution[..., 0] if is_vector else solution), packed, pivots, info


def linalg_solve_backward(grad, A, packed, pivots, result, right_shape, left):
    """The gradients of A and B."""
    is_vector = matrices.is_vector(A.shape, right_shape)
    if is_vector:
        grad, result = grad[..., None], result[..., None]
    of_right = op._linalg_solve_by_factors(A, packed, pivots, grad, left=left, adjoint=True)
    of_matrix = _outer_gradient(of_right, result, left, False)
    return of_matrix, (of_right[..., 0] if is_vector else of_right)


def _outer_gradient(of_right, result, left, adjoint):
    """The gradient of A in `A X = B`, from that of B, which is `A^-H` times that of X."""
    first, second = (of_right, result) if left != adjoint else (result, of_right)
    if left:
        return -matrices.product(first, matrices.hermitian_transpose(second))
    return -matrices.product(matrices.hermitian_transpose(first), second)


def solve_by_factors_backward(grad, A, packed, pivots, result, left, adjoint):
    """The gradients of A and B; those of the factors are in that of A."""
    of_right = op._linalg_solve_by_factors(A, packed, pivots, grad, left=left, adjoint=not adjoint)
    return _outer_gradient(of_right, result, left, adjoint), of_right


def linalg_inv_ex(A, *, check_errors=False):
    inverse, info = _inverse("linalg.inv", A)
    return inverse, info


def _inverse(name, matrix):
    matrices.check_matrix(name, matrix, square=True)
    matrices.check_numbers(name, matrix)
    packed, pivots, info = factorization.linalg_lu_factor_ex(matrix)
    return solution_by_factors(packed, pivots, matrices.identity_like(matrix)), info


def _refuse_singular_input(results, A, check_errors):
    if check_errors:
        matrices.raise_for_failures("linalg.inv_ex", results[1], matrices.SINGULAR)


linalg_inv_ex.postcondition = _refuse_singular_input


def inverse(self):
    return _inverse("linalg.inv", self)[0]


def _refuse_infinite(result, self):
    if not numpy.isfinite(numpy.asarray(result)).all():
        with jax.enable_x64(True):
            info = factorization.linalg_lu_factor_ex(self)[2]
        matrices.raise_for_failures("linalg.inv", info, matrices.SINGULAR)


inverse.postcondition = _refuse_infinite


def inverse_backward(grad, result):
    turned = matrices.hermitian_transpose(result)
    return -matrices.product(turned, grad, turned)


def gesv(self, A):
    matrices.check_matrix("gesv", A, square=True)
    matrices.check_system("gesv", A, self)
    solution, packed, _, _ = solution_and_factors(A, self)
    return solution, packed


def _refuse_singular(results, self, A):
    info = matrices.first_zero(numpy.diagonal(numpy.asarray(results[1]), axis1=-2, axis2=-1))
    matrices.raise_for_failures("gesv", info, matrices.UNSOLVABLE)


gesv.postcondition = _refuse_singular


def gesv_backward(grad, A, result, right_shape):
    """The gradients of B and A."""
    of_right = op._linalg_solve_ex(matrices.hermitian_transpose(A), grad)[0]
    return of_right, -matrices.product(of_right, matrices.hermitian_transpose(result))


def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False):
    matrices.check_system("linalg.lu_solve", LU, B, left)
    if pivots.dtype != jnp.int32:
        raise RuntimeError(
            "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32, got "
            f"{pivots.dtype}: convert with .int()"
        )
    if pivots.shape != LU.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
            f"matrix, got {list(pivots.shape)} for {list(LU.shape)}"
        )
    return solution_by_factors(LU, pivots, B, left, adjoint)


def _check_pivots(LU, pivots, *options, **named):
    matrices.check_pivots("lu_solve", LU, numpy.asarray(pivots), "lu_factor")


linalg_lu_solve.precondition = _check_pivots


def lu_solve(self, LU_data, LU_pivots):
    return linalg_lu_solve(LU_data, LU_pivots, self)


lu_solve.precondition = lambda self, LU_data, LU_pivots: _check_pivots(LU_data, LU_pivots)


def linalg_lu_solve_backward(grad, packed, pivots, result, left=True, adjoint=False):
    """The gradients of the packed factors and of B."""
    of_right = op.linalg_lu_solve(packed, pivots, grad, left=left, adjoint=not adjoint)
    of_matrix = _outer_gradient(of_right, result, left, adjoint)
    # P^T A = L U
    rows = _rows(of_matrix, factorization.row_order(packed, pivots - 1))
    strict = matrices.below_diagonal(packed)
    lower = strict + matrices.identity_like(packed)
    turned = matrices.hermitian_transpose
    of_lower = matrices.product(rows, turned(jnp.triu(packed)))
    of_upper = matrices.product(turned(lower), rows)
    return matrices.below_diagonal(of_lower) + jnp.triu(of_upper), of_right


# triangles


def linalg_solve_triangular(self, B, *, upper, left=True, unitriangular=False):
    matrices.check_kernel("triangular_solve_cpu", self)
    matrices.check_system("linalg.solve_triangular", self, B, left)
    return matrices.triangular_solution(self, B, upper, left=left, unit=unitriangular)


def solve_triangular_backward(grad, A, result, upper, left, unitriangular):
    """The gradients of A, zero where it is not read, and of B."""
    turned = matrices.hermitian_transpose(A)
    of_right = op.linalg_solve_triangular(
        turned, grad, upper=not upper, left=left, unitriangular=unitriangular
    )
    of_matrix = _outer_gradient(of_right, result, left, False)
    return matrices.as_triangle(of_matrix, upper, unitriangular), of_right


def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):
    matrices.check_kernel("triangular_solve_cpu", A)
    matrices.check_system("triangular_solve", A, self)
    solution = _triangular(self, A, upper, transpose, unitriangular)
    return solution, jnp.broadcast_to(A, solution.shape[:-2] + A.shape[-2:])


def _triangular(right, matrix, upper, transpose, unitriangular):
    if transpose:
        matrix, upper = jnp.swapaxes(matrix, -1, -2), not upper
    return matrices.triangular_solution(matrix, right, upper, unit=unitriangular)


def triangular_solve_backward(grads, A, solution, upper, transpose, unitriangular):
    """The gradients of B and A; A has that of its copy too."""
    grad, of_copy = grads
    read = jnp.swapaxes(A, -1, -2) if transpose else A
    reads_upper = upper != transpose
    of_matrix, of_right = solve_triangular_backward(
        grad, read, solution, reads_upper, True, unitriangular
    )
    of_matrix = jnp.swapaxes(of_matrix, -1, -2) if transpose else of_matrix
    return of_right, of_matrix + of_copy
