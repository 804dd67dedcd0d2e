"""Factorizations, inverses and solvers: torch.linalg.

A matrix without a factorization raises LinAlgError if its values are known. While JAX traces they
are not, and the results hold NaN or infinity; `info` of the functions that end in `_ex` tells.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core.result_tuple import result_tuple
from ..rules import matrices
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary, names_defaults
from ..tape.warn_once import warn_once
from .out import takes_exact_out, takes_out

linalg_solve_ex = result_tuple("linalg_solve_ex", ("result", "info"))
linalg_lu_factor = result_tuple("linalg_lu_factor", ("LU", "pivots"))
linalg_ldl_factor = result_tuple("linalg_ldl_factor", ("LD", "pivots"))


def _check(name, info, complaint):
    """Raise LinAlgError for the first matrix whose `info` is positive, if it is known."""
    if is_concrete(info):
        matrices.raise_for_failures(name, np.asarray(info._array), complaint)


@takes_exact_out
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factor L of a Hermitian positive-definite matrix, `A = L L^H`.

    input: (..., n, n), floating point or complex; only one triangle is read. upper: whether the
    upper triangle is read and U of `A = U^H U` returned. Returns (..., n, n). Raises LinAlgError if
    a matrix is not positive-definite, RuntimeError for a wrong shape or dtype.

    >>> jaxgrad.linalg.cholesky(jaxgrad.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    factor, info = ops.linalg_cholesky_ex(input, upper=upper)
    _check("linalg.cholesky", info, matrices.NOT_POSITIVE)
    return factor


@takes_exact_out
def inv(A: Tensor) -> Tensor:
    """Return the inverse of a square matrix.

    A: (..., n, n), floating point or complex. Returns (..., n, n). Raises LinAlgError for a
    singular matrix, RuntimeError for a wrong shape or dtype.

    >>> jaxgrad.linalg.inv(jaxgrad.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = ops.linalg_inv_ex(A)
    _check("linalg.inv", info, matrices.SINGULAR)
    return inverse


@takes_exact_out
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return the solution X of `A X = B`.

    A: (..., n, n), floating point or complex; B: (..., n, k), or (..., n) for vectors, of the dtype
    of A; left: False means `X A = B`. Batches broadcast. Returns a tensor of the shape of B. Raises
    LinAlgError for a singular A, RuntimeError for wrong shapes or dtypes.

    >>> jaxgrad.linalg.solve(jaxgrad.tensor([[2.0, 0.0], [0.0, 4.0]]), jaxgrad.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    solution, _, _, info = ops._linalg_solve_ex(A, B, left=left)
    _check("torch.linalg.solve", info, matrices.UNSOLVABLE)
    return solution


@takes_exact_out
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the solution X of `A X = B`, and the number of the first zero pivot of A.

    A: (..., n, n), floating point or complex; B: (..., n, k), or (..., n) for vectors, of the dtype
    of A; left: False means `X A = B`; check_errors: whether a singular A raises LinAlgError.
    Returns a named tuple: result, of the shape of B, and info, (...), int32, 0 for a solution.

    >>> zeros = jaxgrad.zeros(2, 2)
    >>> jaxgrad.linalg.solve_ex(zeros, jaxgrad.ones(2)).info
    tensor(1, dtype=torch.int32)
    """
    solution, _, _, info = ops._linalg_solve_ex(A, B, left=left)
    if check_errors:
        _check("torch.linalg.solve_ex", info, matrices.UNSOLVABLE)
    return linalg_solve_ex(solution, info)


@takes_exact_out
def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """Return the packed factors of `A = P L U`, for `lu_solve` and `lu_unpack`.

    A: (..., m, n), floating point or complex; pivot: whether rows are exchanged. Returns a named
    tuple: LU, (..., m, n), U and below its diagonal L, and pivots, (..., min(m, n)), int32, counted
    from 1. Raises LinAlgError for a zero pivot, RuntimeError for a wrong shape or dtype.

    >>> jaxgrad.linalg.lu_factor(jaxgrad.tensor([[2.0, 4.0], [4.0, 4.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    factors, pivots, info = ops.linalg_lu_factor_ex(A, pivot=pivot)
    _check("torch.linalg.lu_factor", info, matrices.LU_SINGULAR)
    return linalg_lu_factor(factors, pivots)


@takes_exact_out
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> tuple[Tensor, Tensor]:
    """Return the packed factors of `A = P L D L^T P^T`, for `ldl_solve`.

    input: (..., n, n), symmetric or Hermitian; only the lower triangle is read. hermitian:
    whether complex matrices are Hermitian. Returns a named tuple: LD, (..., n, n), and pivots,
    (..., n), int32. Raises LinAlgError for a zero pivot, RuntimeError for a wrong shape or dtype.

    >>> jaxgrad.linalg.ldl_factor(jaxgrad.tensor([[4.0, 2.0], [2.0, 3.0]])).pivots
    tensor([1, 2], dtype=torch.int32)
    """
    factors, pivots, info = ops.linalg_ldl_factor_ex(input, hermitian=hermitian)
    _check("torch.linalg.ldl_factor", info, matrices.ZERO_PIVOT)
    return linalg_ldl_factor(factors, pivots)


LU = (
    "torch.lu is deprecated in favor of torch.linalg.lu_factor, and of torch.linalg.lu_factor_ex "
    "for get_infos=True"
)


@names_defaults
@api_boundary
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out=None) -> tuple[Tensor, ...]:
    """Return the packed factors of `A = P L U` and their pivots; see `linalg.lu_factor_ex`.

    A: (..., m, n), floating point or complex; pivot: whether rows are exchanged; get_infos: whether
    the number of the first zero pivot of each matrix is returned too; out: tensors that receive the
    results. Raises RuntimeError for a wrong shape or dtype.

    >>> factors, pivots = jaxgrad.lu(jaxgrad.tensor([[2.0, 4.0], [4.0, 4.0]]))
    >>> pivots
    tensor([2, 2], dtype=torch.int32)
    """
    warn_once(LU)
    keywords = {} if out is None else {"out": out}
    return _lu(A, pivot, get_infos, **keywords)


@takes_out
def _lu(A, pivot, get_infos):
    return tuple(ops.linalg_lu_factor_ex(A, pivot=pivot))[: 3 if get_infos else 2]


@takes_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of the linear map that `tensordot(input, x, dims)` is.

    input: floating point or complex, with as many elements in the first `ind` dimensions as in the
    rest. Returns a tensor with these groups of dimensions exchanged. Raises LinAlgError for a
    singular map, RuntimeError for a wrong shape or dtype.

    >>> jaxgrad.linalg.tensorinv(2 * jaxgrad.eye(4).reshape(4, 2, 2), ind=1).shape
    torch.Size([2, 2, 4])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', got {ind}")
    first, second = input.shape[:ind], input.shape[ind:]
    if math.prod(first) != math.prod(second):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(second)} != {math.prod(first)}"
        )
    matrix = input.reshape(math.prod(first), math.prod(second))
    return inv(matrix).reshape(*second, *first)


@takes_out
def tensorsolve(input: Tensor, other: Tensor, dims: tuple[int, ...] | None = None) -> Tensor:
    """Return the solution X of `tensordot(input, X, X.ndim) = other`.

    input: floating point or complex, whose first dimensions are those of `other` and the rest those
    of X; other: of the dtype of input; dims: the dimensions of input to move behind the rest first.
    Raises LinAlgError for a singular map, RuntimeError for wrong shapes or dtypes.

    >>> jaxgrad.linalg.tensorsolve(2 * jaxgrad.eye(4).reshape(4, 2, 2), jaxgrad.ones(4))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if dims is not None:
        input = input.movedim(tuple(dims), tuple(range(input.ndim - len(dims), input.ndim)))
    shape, count = input.shape[other.ndim :], math.prod(other.shape)
    if math.prod(shape) != count:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {count}"
        )
    return solve(input.reshape(count, count), other.reshape(-1)).reshape(shape)


@api_boundary
def _lu_with_info(self, pivot=True, check_errors=True):
    """Return what `linalg.lu_factor_ex` returns, as a plain tuple."""
    return (*ops.linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors),)
