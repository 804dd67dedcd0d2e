"""Operators on sparse tensors under their names in early PyTorch, with its arguments."""

from __future__ import annotations

from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from . import _products, _reductions, _refusals, _shapes
from ._construction import sparse_coo_tensor
from ._tensor_methods import _coordinates
from ._tensor_methods import _indices as _indices
from ._tensor_methods import _nnz as _nnz
from ._tensor_methods import _values as _values
from ._tensor_methods import coalesce as coalesce
from ._tensor_methods import indices as indices
from ._tensor_methods import sparse_mask as sparse_mask
from ._tensor_methods import to_dense as to_dense
from ._tensor_methods import values as values


@api_boundary
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix, with the rows that the sparse one has.

    mat1: (n, m), sparse; mat2: (m, p), dense, of the same dtype. Returns a tensor (n, p) with one
    sparse dimension. Raises RuntimeError for other layouts, shapes and dtypes.

    >>> jaxgrad.hspmm(jaxgrad.eye(2).to_sparse(), jaxgrad.ones(2, 1)).sparse_dim()
    1
    """
    return _products.hspmm(mat1, mat2)


hsmm = hspmm


@api_boundary
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix as a sparse matrix.

    input: (n, m), sparse; mat: (m, p), dense, of the same dtype. Raises RuntimeError for other
    layouts, shapes and dtypes.

    >>> jaxgrad.smm(jaxgrad.eye(2).to_sparse(), jaxgrad.ones(2, 1)).layout
    torch.sparse_coo
    """
    return _products.smm(input, mat)


@api_boundary
@_products.takes_old_sspaddmm
def sspaddmm(input: Tensor | float, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)` as a sparse matrix.

    input: (n, p), sparse; mat1: (n, m), sparse; mat2: (m, p), dense; all of one dtype. Raises
    RuntimeError for other layouts, shapes and dtypes.

    >>> sparse = jaxgrad.eye(2).to_sparse()
    >>> jaxgrad.sspaddmm(sparse, sparse, jaxgrad.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    return _products.sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


saddmm = sspaddmm


@api_boundary
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix, as `torch.mm`.

    >>> jaxgrad.dsmm(jaxgrad.eye(2).to_sparse(), jaxgrad.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return input.mm(mat2)


spmm = dsmm


@api_boundary
def _sparse_coo_tensor_with_dims_and_tensors(
    sparse_dim: int, dense_dim: int, size, indices, values, options=None
) -> Tensor:
    """A sparse tensor of the given numbers of dimensions; see `sparse_coo_tensor`.

    options: a dict of its keyword arguments.
    """
    if len(size) != sparse_dim + dense_dim or indices.shape[0] != sparse_dim:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), "
            f"but got {len(size)}"
        )
    return sparse_coo_tensor(indices, values, size, **(options or {}))


@api_boundary
def _sparse_addmm(self, sparse, dense, *, beta=1, alpha=1) -> Tensor:
    """`beta * self + alpha * (sparse @ dense)`; see `jaxgrad.sparse.addmm`."""
    operator = "_coo_sparse_addmm"
    return _products.addmm(self, sparse, dense, beta=beta, alpha=alpha, operator=operator)


@api_boundary
def _sparse_sum(self, dim=None) -> Tensor:
    """The sum over dimensions; see `jaxgrad.sparse.sum`."""
    return _reductions.sum_in_dtype(self, dim)


@api_boundary
def _sparse_broadcast_to(input: Tensor, size) -> Tensor:
    """Return a sparse tensor with its dimensions of extent 1 expanded to a size.

    size: may have more dimensions than the tensor; these are sparse. Raises RuntimeError for a size
    to which the tensor does not broadcast.

    >>> jaxgrad._sparse_broadcast_to(jaxgrad.ones(1, 2).to_sparse(), (3, 2)).shape
    torch.Size([3, 2])
    """
    name = "_sparse_broadcast_to"
    _refusals.need_sparse(name, _coordinates(name, input))
    return _shapes.broadcast_to(input, size)


def _copy_of(name):
    """A function with a copy of what a method shows."""

    @api_boundary
    def function(input: Tensor) -> Tensor:
        return getattr(input, name)().clone()

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"Return a copy of `input.{name}()`; raise what that raises."
    return function


values_copy, indices_copy = _copy_of("values"), _copy_of("indices")
crow_indices_copy, col_indices_copy = _copy_of("crow_indices"), _copy_of("col_indices")
ccol_indices_copy, row_indices_copy = _copy_of("ccol_indices"), _copy_of("row_indices")
_values_copy, _indices_copy = _copy_of("_values"), _copy_of("_indices")


@api_boundary
def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a sparse tensor the sizes of another one; see `Tensor.resize_as_sparse_`."""
    return input.resize_as_sparse_(the_template)
