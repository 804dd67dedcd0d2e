"""Norms of vectors and matrices in torch.linalg, composed of `linalg.vector_norm` and `svdvals`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .. import ops
from ..tape.tensor import Tensor
from .out import takes_exact_out

INF = float("inf")
_REFUSAL = "linalg.{} expected out tensor dtype {{expected}} but got: {{dtype}}"
_ORDERS = (1, -1, 2, -2, INF, -INF, "fro", "nuc")


@functools.partial(takes_exact_out, refusal=_REFUSAL.format("matrix_norm"))
def matrix_norm(
    input: Tensor, ord="fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype=None
) -> Tensor:
    """Return the norm of a matrix, or of each matrix of a batch.

    input: (..., n, m), floating point or complex. ord: "fro" (the root of the sum of squares),
    "nuc" (the sum of the singular values), 2 and -2 (the greatest and the least singular value),
    1 and -1 (the greatest and the least sum of a column), inf and -inf (of a row). dim: the two
    dimensions of the matrices. dtype: the input is converted to it first. The result is real.
    Raises RuntimeError for other orders, dimensions and dtypes.

    >>> jaxgrad.linalg.matrix_norm(jaxgrad.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    dims = _matrix_dims(input, ord, dim, dtype)
    if ord == "fro":
        return _vector_norm(input, 2, dims, keepdim, dtype)
    if ord in (2, -2, "nuc"):
        return _spectral(input if dtype is None else input.to(dtype), ord, dims, keepdim)
    summed, compared = dims if abs(ord) == 1 else dims[::-1]
    sums = _vector_norm(input, 1, summed, keepdim, dtype)
    return _extremum(sums, compared - (not keepdim and summed < compared), ord, keepdim)


def _extremum(values, dim, ord, keepdim=False):
    """The greatest or least value along `dim`; if there is none, 0 is the greatest."""
    if ord > 0 and values.shape[dim] == 0:
        return values.sum(dim, keepdim)
    return values.amax(dim, keepdim) if ord > 0 else values.amin(dim, keepdim)


def _vector_norm(input, ord, dim, keepdim, dtype):
    return ops.linalg_vector_norm(input, ord, dim, keepdim, dtype=dtype)


def _matrix_dims(input, ord, dim, dtype):
    """The two dimensions of the matrices, from the front."""
    if isinstance(dim, int) or not (isinstance(ord, str | int | float)):
        raise TypeError(
            "linalg_matrix_norm() received an invalid combination of arguments: ord must be a "
            "Number or str, and dim a tuple of ints"
        )
    if not input.is_floating_point() and not input.is_complex():
        raise RuntimeError(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.scalar_type}"
        )
    if dtype is not None and dtype.is_complex and not input.is_complex():
        raise RuntimeError(
            f"linalg.matrix_norm: dtype should be real for real inputs, but got {dtype.scalar_type}"
        )
    if ord not in _ORDERS:
        raise RuntimeError(f"linalg.matrix_norm: Order {_shown(ord)} not supported.")
    if input.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    if len(dim) != 2:
        listed = " ".join(map(str, dim))
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {listed}")
    dims = tuple(_wrapped(axis, input.ndim) for axis in dim)
    if dims[0] == dims[1]:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {dims}")
    return dims


def _shown(ord):
    return ord if isinstance(ord, str) else f"{ord:g}"


def _wrapped(dim, ndim):
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def _spectral(input, ord, dims, keepdim):
    """A norm that is made of the singular values."""
    others = [n for n in range(input.ndim) if n not in dims]
    values = ops.linalg_svdvals(input.permute([*others, *dims]))
    norms = values.sum(-1) if ord == "nuc" else _extremum(values, -1, ord)
    shape = [1 if n in dims else extent for n, extent in enumerate(input.shape)]
    return norms.reshape(shape) if keepdim else norms


@functools.partial(takes_exact_out, refusal=_REFUSAL.format("norm"))
def norm(
    input: Tensor,
    ord=None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype=None,
) -> Tensor:
    """Return the norm of a vector or a matrix.

    input: of any shape, floating point or complex. ord: the order; None means 2 over all elements.
    dim: one dimension for norms of vectors, two for those of matrices; without it the input is one
    vector or, with an order, must have 1 or 2 dimensions. See `vector_norm` and `matrix_norm` for
    the orders. Raises RuntimeError for other orders, dimensions and dtypes.

    >>> jaxgrad.linalg.norm(jaxgrad.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}"
        )
    if dims is None and ord is not None and input.ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{input.ndim}D."
        )
    if ord is not None and (isinstance(ord, str) or len(dims or input.shape) == 2):
        return matrix_norm(input, ord, dims or tuple(range(input.ndim)), keepdim, dtype=dtype)
    return _vector_norm(input, 2 if ord is None else ord, dims, keepdim, dtype)
