"""Methods of every tensor about sparse layouts: conversions and parts."""

from __future__ import annotations

from .. import ops
from ..core.device import layout as layouts
from ..core.device import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..core.tracebacks import shows_users_frames
from ..storage.alias import detached
from ..tape.record import finish
from ..tape.sparse_tensor import SparseTensor, in_kind, is_compressed, is_sparse, values_of
from ..tape.tensor import Tensor, current, held, is_tracked
from . import _compressed, _elements, _layouts, _pattern, _refusals


def _needs_sparse(name: str, tensor: Tensor, layout="sparse coordinate tensor layout"):
    if is_compressed(tensor):
        layout = "sparse coordinate tensor layout"
    if not is_sparse(tensor) or is_compressed(tensor):
        raise RuntimeError(f"{name} expected {layout} but got {_compressed.name_of(tensor)}")


@shows_users_frames
def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout=None, blocksize=None, dense_dim=None
) -> Tensor:
    """Return the tensor in a sparse layout, with the elements that are not zero.

    sparse_dim: the number of sparse dimensions in layout `sparse_coo`, by default all; the other
    dimensions stay dense. layout: `sparse_coo` if it is None, or a compressed one: `sparse_csr`,
    `sparse_csc`, `sparse_bsr`, `sparse_bsc`; then `blocksize` are the sizes of blocks, and
    `dense_dim` the number of dense dimensions. The gradient of the result lies on its pattern.
    Raises RuntimeError for a number of dimensions that the tensor has not, for blocks that do not
    fit, and in a trace, where the number of elements is not known: use `sparse_mask` there.

    >>> jaxgrad.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    if isinstance(sparse_dim, layouts):
        sparse_dim, layout = None, sparse_dim
    if layout is strided:
        return to_dense(self)
    if layout in _layouts.LAYOUTS:
        return _compressed.convert(self, layout, blocksize, dense_dim)
    if layout not in (None, sparse_coo):
        raise RuntimeError(f"to_sparse: there is no layout {layout!r}")
    if blocksize is not None:
        raise RuntimeError(
            f"to_sparse: conversion from {_compressed.name_of(self)} to Sparse with blocksize "
            "argument given is not supported"
        )
    if is_compressed(self):
        coo = _elements.coalesce(_compressed.as_coo(self))
        if sparse_dim not in (None, 2):
            raise RuntimeError(
                f"sparse_compressed_to_sparse: conversion from {_compressed.name_of(self)} to "
                "Sparse with sparse_dim argument !=2 is not supported"
            )
        return coo
    if is_sparse(self):
        if sparse_dim not in (None, _pattern.sparse_dims(self)):
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                "!=self.sparse_dim() is not supported"
            )
        return self
    return _elements.from_dense(self, sparse_dim)


@shows_users_frames
def to_sparse_coo(self: Tensor) -> Tensor:
    """Return the tensor in layout `sparse_coo`; see `to_sparse`.

    >>> jaxgrad.tensor([0.0, 2.0]).to_sparse_coo().values()
    tensor([2.])
    """
    return to_sparse(self)


@shows_users_frames
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed rows; see `to_sparse`.

    >>> jaxgrad.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(self, layout=sparse_csr, dense_dim=dense_dim)


@shows_users_frames
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed columns; see `to_sparse`.

    >>> jaxgrad.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(self, layout=sparse_csc, dense_dim=dense_dim)


@shows_users_frames
def to_sparse_bsr(self: Tensor, blocksize=None, dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed rows of blocks; see `to_sparse`.

    >>> jaxgrad.eye(2).to_sparse_bsr((2, 2)).values()
    tensor([[[1., 0.],
             [0., 1.]]])
    """
    return to_sparse(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@shows_users_frames
def to_sparse_bsc(self: Tensor, blocksize=None, dense_dim: int | None = None) -> Tensor:
    """Return the tensor with compressed columns of blocks; see `to_sparse`.

    >>> jaxgrad.eye(2).to_sparse_bsc((2, 2)).row_indices()
    tensor([0])
    """
    return to_sparse(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@shows_users_frames
def crow_indices(self: Tensor) -> Tensor:
    """Return where each row of a CSR or BSR tensor begins among its elements.

    >>> jaxgrad.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return _index_part("crow_indices", self, "row", True)


@shows_users_frames
def col_indices(self: Tensor) -> Tensor:
    """Return the columns of the elements of a CSR or BSR tensor.

    >>> jaxgrad.eye(2).to_sparse_csr().col_indices()
    tensor([0, 1])
    """
    return _index_part("col_indices", self, "row", False)


@shows_users_frames
def ccol_indices(self: Tensor) -> Tensor:
    """Return where each column of a CSC or BSC tensor begins among its elements.

    >>> jaxgrad.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    return _index_part("ccol_indices", self, "column", True)


@shows_users_frames
def row_indices(self: Tensor) -> Tensor:
    """Return the rows of the elements of a CSC or BSC tensor.

    >>> jaxgrad.eye(2).to_sparse_csc().row_indices()
    tensor([0, 1])
    """
    return _index_part("row_indices", self, "column", False)


def _index_part(name, tensor, line, is_compression):
    wanted = _layouts.ROWS if line == "row" else tuple(map(_layouts.TURNED.get, _layouts.ROWS))
    if tensor.layout not in wanted:
        raise RuntimeError(
            f"{name} expected sparse {line} compressed tensor layout but got "
            f"{_compressed.name_of(tensor)}"
        )
    return (tensor._coalesced.indices if is_compression else tensor._indices_held).detach()


@shows_users_frames
def to_dense(self: Tensor, dtype=None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor in layout `strided`; a dense tensor itself.

    dtype: converts a dense tensor, unless it is None. masked_grad: without effect, since the
    gradient of a sparse tensor always lies on its pattern. Elements at equal indices are added.

    >>> jaxgrad.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)).to_dense()
    tensor([0., 5., 0.])
    """
    if dtype is not None and is_sparse(self):
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    if is_compressed(self):
        dense = _compressed.to_dense(self)
    else:
        dense = _elements.to_dense(self) if is_sparse(self) else self
    return dense if dtype is None else dense.to(dtype)


@shows_users_frames
def coalesce(self: Tensor) -> Tensor:
    """Return the sparse tensor with sorted and distinct indices, where equal ones are added.

    Raises RuntimeError for a dense tensor. In a trace, where the number of elements depends on
    indices that are not known, `values()`, `indices()` and the like of the result raise it.

    >>> jaxgrad.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,)).coalesce().values()
    tensor([5.])
    """
    _needs_sparse("coalesce", self)
    return _elements.merged(self)


@shows_users_frames
def is_coalesced(self: Tensor) -> bool:
    """Return whether the indices are known to be sorted and distinct.

    Raises RuntimeError for a dense tensor.

    >>> jaxgrad.eye(2).to_sparse().is_coalesced()
    True
    """
    _needs_sparse("is_coalesced", self)
    return _elements.is_coalesced(self)


@shows_users_frames
def indices(self: Tensor) -> Tensor:
    """Return the indices of a coalesced tensor, int64, of shape (sparse dimensions, elements).

    Raises RuntimeError for a tensor that is dense or not coalesced.

    >>> jaxgrad.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    _needs_sparse("indices", self, "sparse tensor layout")
    self = _needs_coalesced("indices", self)
    return self._indices_held.detach()


@shows_users_frames
def values(self: Tensor) -> Tensor:
    """Return the values of a coalesced tensor, a view of shape (elements, *dense sizes).

    Gradients flow back to the sparse tensor. Raises RuntimeError for a tensor that is dense or not
    coalesced.

    >>> jaxgrad.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    if not is_compressed(self):
        _needs_sparse("values", self, "sparse tensor layout")
        self = _needs_coalesced("values", self)
    # on the sparse handle itself: the view shares its memory
    program, _ = ops._coo_values.operator.bind((values_of(self),), {})
    values = finish(program, [self], (held(current(self)),), (is_tracked(self),))
    return in_kind(self, values)


def _needs_coalesced(name, tensor) -> SparseTensor:
    if _elements.is_coalesced(tensor):
        return _elements.counted(tensor, f"{name}()")
    raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


@shows_users_frames
def _indices(self: Tensor) -> Tensor:
    """Return the indices of a sparse tensor, also of one that is not coalesced."""
    _refusals.need_sparse("_indices", _coordinates("_indices", self))
    return _elements.counted(self, "_indices()")._indices_held.detach()


@shows_users_frames
def _values(self: Tensor) -> Tensor:
    """Return the values of a sparse tensor without their history, on its memory."""
    _refusals.need_sparse("_values", _coordinates("_values", self))
    return in_kind(self, detached(_elements.counted(self, "_values()")))


@shows_users_frames
def _nnz(self: Tensor) -> int:
    """Return the number of elements that a sparse tensor stores."""
    _refusals.need_sparse("_nnz", self)
    if is_compressed(self):
        return self._indices_held.shape[-1]
    return _pattern.nnz(_elements.counted(self, "_nnz()"))


def _coordinates(name, tensor):
    """The tensor. Raises NotImplementedError in a compressed layout."""
    return _refusals.refused(name)(tensor) if is_compressed(tensor) else tensor


@shows_users_frames
def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions, 0 for a dense tensor.

    >>> jaxgrad.eye(2).to_sparse().sparse_dim(), jaxgrad.eye(2).sparse_dim()
    (2, 0)
    """
    if is_compressed(self):
        return 2
    return _pattern.sparse_dims(self) if is_sparse(self) else 0


@shows_users_frames
def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: those of each value.

    >>> jaxgrad.eye(2).to_sparse(1).dense_dim(), jaxgrad.eye(2).dense_dim()
    (1, 2)
    """
    batch = _compressed.batch_dims(self) if is_compressed(self) else 0
    return self.ndim - batch - sparse_dim(self)


_dimI, _dimV = sparse_dim, dense_dim


@shows_users_frames
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of a tensor at the indices of a sparse one.

    mask: a sparse tensor of this shape; only its indices count. The gradient of a dense tensor is
    dense. Raises RuntimeError for another shape, NotImplementedError for a mask that is dense.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.sparse_mask(jaxgrad.eye(2).to_sparse()).values()
    tensor([1., 4.])
    """
    _refusals.need_sparse("sparse_mask", mask)
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    if is_compressed(mask):
        source = _compressed.like(mask, values_of(mask).detach())
        return _compressed.like(mask, _compressed.at_pattern(source, self))
    if self is mask:
        return self
    if is_compressed(self):
        self = to_sparse(self)
    if is_sparse(self) and _pattern.sparse_dims(self) != _pattern.sparse_dims(mask):
        raise RuntimeError(
            "sparse_mask(): the number of sparse dimensions in `self` should match that of the "
            f"`mask`. Got {_pattern.sparse_dims(self)} and {_pattern.sparse_dims(mask)}"
        )
    if is_sparse(self):
        elements = _elements.elements_at(self, mask)
    else:
        elements = ops._coo_mask(self, mask._indices_held)
    return _elements.like_or_nothing(mask, elements)
