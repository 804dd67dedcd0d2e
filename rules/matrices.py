"""Helpers for the operators of linear algebra: checks of matrices, triangles, triangular systems.

Matrices are the last two dimensions of an array; those before are batches.
"""

import jax.numpy as jnp
import numpy
from jax import lax

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.linalg_error import LinAlgError
from jaxgrad.core.primitive import op

# checks


def check_matrix(name, matrix, role="A", square=False):
    """Refuse what is no matrix or batch of them, or not square; RuntimeError as in PyTorch."""
    if matrix.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {role} must have at least 2 dimensions, got shape "
            f"{list(matrix.shape)}"
        )
    rows, columns = matrix.shape[-2:]
    if square and rows != columns:
        raise RuntimeError(
            f"{name}: {role} must be batches of square matrices, but they are {rows} by {columns} "
            "matrices"
        )


def check_numbers(name, *matrices):
    """Refuse integers, booleans, half precision, and dtypes that differ: RuntimeError."""
    kinds = [dtypes.from_numpy(matrix.dtype) for matrix in matrices]
    first = kinds[0]
    if first.category < dtypes.FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{first.scalar_type}: convert with .to(dtype)"
        )
    if _is_half(first):
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {first.scalar_type}: convert with "
            ".float()"
        )
    for other in kinds[1:]:
        if other is not first:
            raise RuntimeError(
                f"{name}: Expected A and B to have the same dtype, but found A of type "
                f"{first.scalar_type} and B of type {other.scalar_type} instead: convert one with "
                ".to(dtype)"
            )


def _is_half(dtype):
    return dtype.itemsize // (1 + dtype.is_complex) < 4


def check_kernel(kernel, matrix, halves_only=False):
    """NotImplementedError for dtypes that PyTorch refuses with the name of a kernel."""
    dtype = dtypes.from_numpy(matrix.dtype)
    refused = _is_half(dtype) if dtype.category >= dtypes.FLOATING else not halves_only
    if refused:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{dtype.scalar_type}': convert with .to(dtype)"
        )


def check_system(name, matrix, right, left=True):
    """Check the shapes of a square system `A X = B`, or `X A = B`, whose batches broadcast."""
    check_matrix(name, matrix, square=True)
    check_matrix(name, right, "B")
    check_numbers(name, matrix, right)
    if right.shape[-2 if left else -1] != matrix.shape[-1]:
        sizes = "x".join(map(str, matrix.shape[-2:])), "x".join(map(str, right.shape[-2:]))
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({sizes[0]} and "
            f"{sizes[1]})"
        )
    promotion.broadcast_shapes(name, matrix.shape[:-2], right.shape[:-2])


def is_vector(matrix_shape, right_shape):
    """Whether the right side of `A x = b` is a vector, or a batch of them, and no matrix."""
    matrix_shape, right_shape = tuple(matrix_shape), tuple(right_shape)
    return len(right_shape) == 1 or right_shape == matrix_shape[:-1]


# failures: the number of the first bad pivot of each matrix, counted from 1, or 0


def raise_for_failures(name, info, complaint):
    """Raise LinAlgError for the first matrix whose `info` is positive; `complaint` is a text with
    `{}` in the place of that number.
    """
    info = numpy.asarray(info)
    failed = numpy.flatnonzero(info)
    if failed.size:
        element = f"(Batch element {failed[0]}): " if info.ndim else ""
        raise LinAlgError(f"{name}: {element}{complaint.format(info.ravel()[failed[0]])}")


NOT_POSITIVE = (
    "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {} is not positive-definite)."
)
SINGULAR = (
    "The diagonal element {} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)
LU_SINGULAR = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still "
    "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)"
)
ZERO_PIVOT = "D[{0},{0}] is zero: a solution by these factors would divide by zero."
UNSOLVABLE = "The solver failed because the input matrix is singular (its pivot {} is zero)."


def first_zero(diagonal):
    """The number of the first zero on each diagonal, counted from 1; 0 if there is none."""
    if not diagonal.shape[-1]:
        return jnp.zeros(diagonal.shape[:-1], jnp.int32)
    zero = diagonal == 0
    return jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0).astype(jnp.int32)


# parts of matrices


def hermitian_transpose(matrix):
    return jnp.conj(jnp.swapaxes(matrix, -1, -2))


def below_diagonal(matrix):
    return jnp.tril(matrix, -1)


def diagonal_of(matrix):
    return jnp.diagonal(matrix, axis1=-2, axis2=-1)


def identity_like(matrix, rows=None, columns=None):
    rows = matrix.shape[-1] if rows is None else rows
    return jnp.eye(rows, columns, dtype=matrix.dtype)


def half_diagonal(matrix):
    """The lower triangle with half of the diagonal."""
    return jnp.tril(matrix) - _on_diagonal(diagonal_of(matrix)) / 2


def _on_diagonal(values):
    return values[..., None] * jnp.eye(values.shape[-1], dtype=values.dtype)


def as_triangle(matrix, upper, unit=False):
    """The elements that a triangular matrix is read from; without the diagonal if it is ones."""
    return jnp.triu(matrix, int(unit)) if upper else jnp.tril(matrix, -int(unit))


def product(*factors):
    """The matrix product; batches broadcast."""
    result = factors[0]
    for factor in factors[1:]:
        result = op.matmul(result, factor)
    return result


# triangular systems


def triangular_solution(matrix, right, upper, *, left=True, adjoint=False, unit=False):
    """Solve `T X = B`, with T the upper or lower triangle of a matrix, or its conjugate transpose;
    `X T = B` if not `left`.
    """
    batch = promotion.broadcast_shapes("solve_triangular", matrix.shape[:-2], right.shape[:-2])
    matrix = jnp.broadcast_to(matrix, batch + matrix.shape[-2:])
    right = jnp.broadcast_to(right, batch + right.shape[-2:])
    if 0 in matrix.shape or 0 in right.shape:
        return right
    return lax.linalg.triangular_solve(
        matrix,
        right,
        left_side=left,
        lower=not upper,
        transpose_a=adjoint,
        conjugate_a=adjoint,
        unit_diagonal=unit,
    )


def product_with_inverse_adjoint(upper, right):
    """`B U^-H` for an upper triangle U."""
    return triangular_solution(upper, right, True, left=False, adjoint=True)


def check_pivots(name, packed, pivots, source):
    """Raise RuntimeError for pivots that are no rows of a packed matrix, counted from 1. source:
    the function that makes both.
    """
    rows = packed.shape[-2]
    if ((pivots < 1) | (pivots > rows)).any():
        raise RuntimeError(
            f"pivots passed to {name} must be between 1 and LU.size(-2) inclusive, which is "
            f"{rows}. Did you properly pass the result of {source}?"
        )
