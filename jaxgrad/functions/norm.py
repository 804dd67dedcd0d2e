"""Norms of tensors, of vectors and of matrices."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from .. import ops
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from . import linalg_norms
from .out import takes_exact_out


@names_defaults
@takes_exact_out
def norm(
    input: Tensor,
    p="fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype=None,
) -> Tensor:
    """Return the norm of order `p` of the elements, or of vectors or matrices along `dim`.

    input: of any shape, floating point or complex. p: a number, inf, -inf; "fro", which is 2;
    "nuc", the sum of the singular values of matrices; None means 2. dim: the dimensions to reduce,
    all without it. dtype: the input is converted to it first. The result is real; where it is 0 the
    gradient is 0. Raises RuntimeError for other orders and dtypes.

    >>> jaxgrad.norm(jaxgrad.tensor([3.0, 4.0]))
    tensor(5.)
    >>> jaxgrad.norm(jaxgrad.tensor([[1.0, -2.0], [3.0, 4.0]]), float("inf"), dim=0)
    tensor([3., 4.])
    """
    dims = [dim] if isinstance(dim, int) else dim
    is_vector = not isinstance(p, str) or (p == "fro" and (dims is None or len(dims) <= 2))
    if is_sparse(input) and p == "fro" and dtype is not None:
        raise ValueError("dtype argument is not supported in frobenius norm")
    if is_vector:
        order = 2 if p in (None, "fro") else p
        return ops.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype)
    dims = range(input.ndim) if dims is None else dims
    return linalg_norms.matrix_norm(input, p, tuple(dims), keepdim, dtype=dtype)


@takes_exact_out
def frobenius_norm(input: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """Return the root of the sum of the squares over one or two dimensions; deprecated, see `norm`.

    input: floating point or complex. dim: () means all. Raises RuntimeError for more dimensions.

    >>> jaxgrad.frobenius_norm(jaxgrad.tensor([[3.0, 0.0], [0.0, 4.0]]), (0, 1))
    tensor(5.)
    """
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return ops.norm(input, 2, dims, keepdim)


@takes_exact_out
def nuclear_norm(input: Tensor, dim: Sequence[int] = (0, 1), keepdim: bool = False) -> Tensor:
    """Return the sum of the singular values of a matrix; deprecated, see `linalg.matrix_norm`.

    input: floating point or complex, with the matrices in the two dimensions `dim`; without `dim`
    a matrix, and `keepdim` may be the second argument.
    Raises RuntimeError for other numbers of dimensions.

    >>> jaxgrad.nuclear_norm(jaxgrad.tensor([[-3.0]]))
    tensor(3.)
    """
    if isinstance(dim, bool):
        dim, keepdim = (0, 1), dim
    return linalg_norms.matrix_norm(input, "nuc", dim, keepdim)


@api_boundary
def native_norm(input: Tensor, p: float = 2, dim=None, keepdim: bool = False, dtype=None) -> Tensor:
    """Return the norm of order `p`: what `norm` is for numbers. PyTorch has it for sparse tensors.

    input: of any shape, floating point or complex. Raises RuntimeError for other dtypes.

    >>> jaxgrad.native_norm(jaxgrad.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return norm(input, p, dim, keepdim, dtype)


@api_boundary
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms of order `pow` over all dimensions but `dim`, which stay with extent 1.

    v: at least 1-D, floating point or complex. dim: from 0; -1 means that all are reduced, and none
    stays. Raises IndexError for another `dim`.

    >>> jaxgrad.norm_except_dim(jaxgrad.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5.],
            [1.]])
    """
    pow = operator.index(pow)
    if dim == -1:
        return ops.norm(v, pow)
    if v.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not 0 <= dim < v.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-v.ndim}, {v.ndim - 1}], but "
            f"got {dim})"
        )
    if 0 < dim < v.ndim - 1:
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    extent = v.shape[dim]
    rows = v.reshape(extent, -1) if dim == 0 else v.reshape(-1, extent)
    shape = [extent if n == dim else 1 for n in range(v.ndim)]
    return ops.norm(rows, pow, 1 if dim == 0 else 0).reshape(shape)
