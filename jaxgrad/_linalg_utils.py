"""Products with matrices that may be sparse or None, which PyTorch's `lobpcg` is made of."""

from __future__ import annotations

from . import linalg as dense
from .core import dtypes
from .functions import removed
from .names.missing import missing_in
from .tape.tensor import Tensor

lstsq, matrix_rank, solve = removed.lstsq, removed.matrix_rank, removed.solve


def is_sparse(A) -> bool:
    """Whether a tensor is sparse, in coordinates. Raises TypeError for other objects."""
    if isinstance(A, Tensor):
        return A.is_sparse
    raise TypeError(f"expected Tensor, but got {type(A)}")


def get_floating_dtype(A: Tensor) -> dtypes.dtype:
    """The dtype of `A` if that is floating point, else float32."""
    is_floating = A.dtype in (dtypes.float16, dtypes.float32, dtypes.float64)
    return A.dtype if is_floating else dtypes.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """`A @ B`; `B` if `A` is None, which stands for the identity."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form `X.mT @ A @ Y`."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form `S.mT @ A @ S`."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """Orthonormal columns that span those of `A`."""
    return dense.qr(A).Q


__getattr__ = missing_in(__name__)
