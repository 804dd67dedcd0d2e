# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True)
_Number: TypeAlias = _bool | _int | _float | _complex

from jaxgrad import (
    Tensor,
    dtype as _dtype,
    matrix_power as matrix_power,
)
from jaxgrad.ops import (
    matmul as matmul,
    matrix_exp as matrix_exp,
)
class LinAlgError(RuntimeError):
    ...
def cholesky(input: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor: ...
class _linalg_cholesky_ex_result(NamedTuple):
    L: Tensor
    info: Tensor
def cholesky_ex(input: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_cholesky_ex_result:
    """Cholesky factor L of a Hermitian positive-definite matrix, `A = L L^H`, and the order of the first minor that is not positive; the gradient is Hermitian."""
def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor: ...
def cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Cross product of vectors of three elements along `dim`."""
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Determinant of square matrices; the gradient is the matrix of cofactors, of singular matrices too."""
def diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor: ...
class _linalg_eig_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
def eig(input: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _linalg_eig_result:
    """Eigenvalues of square matrices, and unit eigenvectors as columns; a loss must not depend on their phase."""
class _linalg_eigh_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor
def eigh(input: Tensor, UPLO: _str = 'L', *, out: tuple[Tensor, ...] | None = None) -> _linalg_eigh_result:
    """Eigenvalues of Hermitian matrices in ascending order, and eigenvectors as columns; a loss must not depend on their phase."""
def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of square matrices; one of several equal eigenvalues has no derivative."""
def eigvalsh(input: Tensor, UPLO: _str = 'L', *, out: Tensor | None = None) -> Tensor:
    """Eigenvalues of Hermitian matrices in ascending order; the gradient of equal ones is one of the possible ones."""
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """First n columns of a product of reflections `1 - tau v v^H`, as `torch.geqrf` packs them."""
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
class _linalg_inv_ex_result(NamedTuple):
    inverse: Tensor
    info: Tensor
def inv_ex(A: Tensor, *, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_inv_ex_result:
    """Inverse of a square matrix, with the number of the first pivot that is zero in place of an error."""
def ldl_factor(input: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
class _linalg_ldl_factor_ex_result(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor
def ldl_factor_ex(input: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_ldl_factor_ex_result:
    """Packed factors of `A = P L D L^T P^T`, or with `L^H` if Hermitian, where D has blocks of one or two rows; the gradient is symmetric or Hermitian."""
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` by the packed factors that `torch.linalg.ldl_factor` returns."""
class _linalg_lstsq_result(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
def lstsq(input: Tensor, b: Tensor, rcond: _float | None = None, *, driver: _str | None = None, out: tuple[Tensor, ...] | None = None) -> _linalg_lstsq_result:
    """Solution of least norm among those that minimize the norm of `A X - B`; the gradient is that of constant rank."""
class _linalg_lu_result(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor
def lu(A: Tensor, *, pivot: _bool = True, out: tuple[Tensor, ...] | None = None) -> _linalg_lu_result:
    """Factors of `A = P L U`, a permutation, a unit lower triangle and an upper one; the last pivot may be zero for a gradient, unless A is tall."""
def lu_factor(A: Tensor, *, pivot: _bool = True, out: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
class _linalg_lu_factor_ex_result(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor
def lu_factor_ex(A: Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: tuple[Tensor, ...] | None = None) -> _linalg_lu_factor_ex_result:
    """Packed factors of `A = P L U`, and the number of the first zero pivot; the last pivot may be zero for a gradient, unless A is tall."""
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: _bool = True, adjoint: _bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B`, or `A^H X = B`, by the packed factors of A."""
def matrix_norm(input: Tensor, ord: _str = 'fro', dim: Sequence[_int] = ..., keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
def matrix_rank(A: Tensor, tol: Any = None, hermitian: _bool = False, *, atol: Any = None, rtol: Any = None, out: Tensor | None = None) -> Tensor: ...
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def norm(input: Tensor, ord: Any = None, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def pinv(input: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """Pseudoinverse of matrices; the gradient is that along which the rank stays the same."""
@overload
def pinv(input: Tensor, *, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False, out: Tensor | None = None) -> Tensor: ...
@overload
def pinv(input: Tensor, rcond: _float, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def pinv(input: Tensor, rcond: Tensor, hermitian: _bool = False, *, out: Tensor | None = None) -> Tensor: ...
class _linalg_qr_result(NamedTuple):
    Q: Tensor
    R: Tensor
def qr(A: Tensor, mode: _str = 'reduced', *, out: tuple[Tensor, ...] | None = None) -> _linalg_qr_result:
    """Factors of `A = Q R`, orthonormal columns and an upper triangle, with LAPACK's signs; the first min(m, n) columns must be independent for a gradient."""
class _linalg_slogdet_result(NamedTuple):
    sign: Tensor
    logabsdet: Tensor
def slogdet(A: Tensor, *, out: tuple[Tensor, ...] | None = None) -> _linalg_slogdet_result:
    """Sign of the determinant, of complex matrices its phase, and logarithm of its absolute value, -inf for singular matrices."""
def solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor: ...
def solve_ex(A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
def solve_triangular(input: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None) -> Tensor:
    """Solution X of `A X = B` with a triangular matrix; the gradient of A is 0 where it is not read."""
class _linalg_svd_result(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor
def svd(A: Tensor, full_matrices: _bool = True, *, driver: _str | None = None, out: tuple[Tensor, ...] | None = None) -> _linalg_svd_result:
    """Singular value decomposition `U diag(S) Vh`; a loss must not depend on the phase of singular vectors."""
def svdvals(A: Tensor, *, driver: _str | None = None, out: Tensor | None = None) -> Tensor:
    """Singular values, in descending order; the gradient of equal or zero singular values is one of the possible ones."""
def tensorinv(input: Tensor, ind: _int = 2, *, out: Tensor | None = None) -> Tensor: ...
def tensorsolve(input: Tensor, other: Tensor, dims: tuple[_int, ...] | None = None, *, out: Tensor | None = None) -> Tensor: ...
def vander(x: Tensor, *, N: _int | None = None) -> Tensor: ...
def vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor: ...
def vector_norm(input: Tensor, ord: _float = 2, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Norm of order `ord` of the elements, of all or over the dimensions `dim`; where it is 0 the gradient is 0."""
