"""Singular values of matrices of low rank, from products with random vectors: Halko, Martinsson and
Tropp, "Finding structure with randomness", 2011, algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from .. import ops
from ..frontend import random
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


@api_boundary
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the largest singular values of matrices, and their vectors: A - M is near
    `U @ diag(S) @ V.mH` where its rank is at most `q`.

    A: (..., m, n), floating point or complex, dense or sparse; q: how many, 6 by default, at most m
    and n; niter: the products with A @ A.mH that make small singular values smaller; M: what is
    subtracted, of a shape that broadcasts to that of A. Returns U (..., m, q), S (..., q) and V
    (..., n, q). The vectors begin with random numbers, so they depend on the generator.

    Raises ValueError for a negative `q` or `niter`.

    >>> A = jaxgrad.outer(jaxgrad.arange(3.0), jaxgrad.ones(4))
    >>> U, S, V = jaxgrad.svd_lowrank(A, q=2)
    >>> jaxgrad.allclose(U @ S.diag() @ V.mT, A, atol=1e-5)
    True
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    _check("svd_lowrank", A, q, niter)
    q = min(q, *A.shape[-2:])
    matrix = A if M is None else A - M
    is_wide = A.shape[-2] < A.shape[-1]
    matrix = _adjoint(matrix) if is_wide else matrix
    basis = _basis(matrix, q, niter)
    U, S, Vh = ops.linalg_svd((_adjoint(matrix) @ basis).mH, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


@api_boundary
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the principal components of data, by `svd_lowrank` of their deviations.

    A: (..., m, n), m observations of n numbers; q: how many, by default the least of 6, m and n;
    center: whether the mean of the observations is subtracted first; niter: as for `svd_lowrank`.
    Returns U (..., m, q), S (..., q), and V (..., n, q), whose columns are the directions.

    Raises ValueError for a `q` beyond m or n, and a negative `niter`.

    >>> A = jaxgrad.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> _, S, V = jaxgrad.pca_lowrank(A, q=1)
    >>> jaxgrad.allclose(V.abs(), jaxgrad.full((2, 1), 0.5**0.5))
    True
    """
    q = min(6, *A.shape[-2:]) if q is None else q
    _check("pca_lowrank", A, q, niter)
    if q > min(A.shape[-2:]):
        raise ValueError(
            f"pca_lowrank: q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(A.shape[-2:])}"
        )
    data = A.to_dense()
    return svd_lowrank(data - data.mean(-2, keepdim=True) if center else data, q, niter)


def _check(name: str, A: Tensor, q: int, niter: int):
    if A.dim() < 2:
        raise ValueError(f"{name}: A is a matrix, or a batch of matrices, not {[*A.shape]}")
    for argument, value in (("q", q), ("niter", niter)):
        if not isinstance(value, int) or value < 0:
            raise ValueError(f"{name}: {argument}(={value}) must be non-negative integer")


def _basis(matrix: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal vectors whose span is near that of the columns of matrices."""
    vectors = random.randn(matrix.shape[-1], q, dtype=matrix.dtype, device=matrix.device)
    basis, _ = ops.linalg_qr(matrix @ vectors)
    for _ in range(niter):
        basis, _ = ops.linalg_qr(_adjoint(matrix) @ basis)
        basis, _ = ops.linalg_qr(matrix @ basis)
    return basis


def _adjoint(matrix: Tensor) -> Tensor:
    return matrix.t().conj() if matrix.is_sparse else matrix.mH
