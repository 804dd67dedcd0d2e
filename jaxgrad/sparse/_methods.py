"""Methods of tensors about sparse layouts: those that every tensor has, and those that a sparse
tensor has in place of a dense one's. A method that reads the array of a dense tensor is refused.
"""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..autograd._engine.tensor_hooks import HookMethods
from ..core import dtypes
from ..core.device import (
    device_of,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ..core.device import layout as layouts
from ..core.tracebacks import shows_users_frames
from ..frontend.printing import arrays as printing
from ..frontend.to import CONVERSIONS
from ..storage.alias import assign, detached
from ..storage.inplace_check import permit
from ..tape import interception
from ..tape.mode import RECORD, current_mode
from ..tape.record import finish
from ..tape.sparse_tensor import (
    SparseTensor,
    gradient_of,
    is_compressed,
    is_sparse,
    sparse,
    values_for,
    values_of,
)
from ..tape.tensor import (
    Tensor,
    current,
    has_tangent,
    held,
    is_concrete,
    is_tracked,
    known_counter,
    known_leaf_state,
    name_of_node,
    node_or_mark,
    restore_state,
    set_node,
    set_tracked,
    state_of,
)
from . import _compressed, _elements, _layouts, _pattern, _products, _refusals, _shapes, _types


def _needs_sparse(name: str, tensor: Tensor, layout="sparse coordinate tensor layout"):
    if is_compressed(tensor):
        layout = "sparse coordinate tensor layout"
    if not is_sparse(tensor) or is_compressed(tensor):
        raise RuntimeError(f"{name} expected {layout} but got {_compressed.name_of(tensor)}")


# ---- of every tensor


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
    return finish(program, [self], (held(current(self)),), (is_tracked(self),))


def _needs_coalesced(name, tensor) -> SparseTensor:
    if _elements.is_coalesced(tensor):
        return _elements.counted(tensor, f"{name}()")
    raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


@shows_users_frames
def _indices(self: Tensor) -> Tensor:
    """Return the indices of a sparse tensor, also of one that is not coalesced."""
    _needs_layout("_indices", _coordinates("_indices", self))
    return _elements.counted(self, "_indices()")._indices_held.detach()


@shows_users_frames
def _values(self: Tensor) -> Tensor:
    """Return the values of a sparse tensor without their history, on its memory."""
    _needs_layout("_values", _coordinates("_values", self))
    return detached(_elements.counted(self, "_values()"))


@shows_users_frames
def _nnz(self: Tensor) -> int:
    """Return the number of elements that a sparse tensor stores."""
    _needs_layout("_nnz", self)
    if is_compressed(self):
        return self._indices_held.shape[-1]
    return _pattern.nnz(_elements.counted(self, "_nnz()"))


def _coordinates(name, tensor):
    """The tensor. Raises NotImplementedError in a compressed layout."""
    return refused(name)(tensor) if is_compressed(tensor) else tensor


def _needs_layout(name, tensor):
    if not is_sparse(tensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: the tensor is "
            "dense"
        )


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
    _needs_layout("sparse_mask", mask)
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    if is_compressed(mask):
        source = _compressed.like(mask, values_of(mask).detach())
        return _compressed.like(mask, _compressed.at_pattern(source, self))
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


# ---- of sparse tensors, in place of those of dense ones


def replace(target: SparseTensor, source: SparseTensor, on_memory: bool = False):
    """Give a sparse tensor the elements of another one of its shape.

    on_memory: whether the write shows in tensors that share the memory of the target.
    """
    is_recorded = current_mode.get() is RECORD
    if is_recorded and is_tracked(target) and not is_tracked(source):
        raise NotImplementedError(
            "a constant is written into a sparse tensor that requires grad: write in no_grad()"
        )
    why = _unchangeable(target, is_recorded)
    if source._indices_held is target._indices_held and (on_memory or why):
        assign(target, values_of(source), is_recorded)
        return
    if why:
        raise RuntimeError(f"a write in place changes the pattern of a sparse tensor {why}")
    give_pattern(target, source)


def _unchangeable(target: SparseTensor, is_recorded: bool) -> str | None:
    """Why the pattern of a tensor cannot change, or None."""
    if target._is_grad:
        return "of a .grad: assign the new gradient to .grad"
    if is_tracked(target) and not is_recorded and _has_uses(target):
        return "that requires grad, and its gradients lie on it: make a new tensor"
    if interception.read is not None or has_tangent(target):
        return "in a trace, or of one with a tangent: use the operator that returns a new tensor"
    return None


def clear(target: SparseTensor, empty: SparseTensor) -> SparseTensor:
    """Set the elements of a tensor to 0, by leaving them out where its pattern may change."""
    if _unchangeable(target, False) or target.grad_fn is not None:
        detached(target).zero_()
    else:
        give_pattern(target, empty)
    return target


def _has_uses(target: SparseTensor) -> bool:
    """Whether a graph or a gradient knows the pattern of a tensor that requires grad."""
    state = known_leaf_state(target)
    is_used = state is not None and (state.grad is not None or state.node() is not None)
    return is_used or node_or_mark(target) is not None


def give_pattern(target: SparseTensor, source: SparseTensor):
    """Give a sparse tensor the indices, the values, the sizes and the history of another one; a
    leaf that requires grad stays one.
    """
    current(source)
    counter, stays_leaf = known_counter(target), is_tracked(target) and not is_tracked(source)
    restore_state(target, state_of(source))
    target._indices_held, target._coalesced = source._indices_held, source._coalesced
    target._sizes = source._sizes
    if stays_leaf:
        set_tracked(target, True)
    if counter is not None:
        counter.count()


def check_resize(self: SparseTensor, size, sparse_dim: int, dense_dim: int, may_shrink=False):
    """Raise RuntimeError if a tensor with elements cannot get other sizes."""
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
            f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    count = _pattern.sparse_dims(self)
    if not _pattern.nnz(self):
        return
    for what, before, after in (
        ("sparse", count, sparse_dim),
        ("dense", self.ndim - count, dense_dim),
    ):
        if before != after:
            raise RuntimeError(
                f"changing the number of {what} dimensions (from {before} to {after}) on a "
                "non-empty sparse tensor is not supported."
            )
    pairs = list(zip(self._sizes, size, strict=True))
    for what, part in (("sparse", pairs[:count]), ("dense", pairs[count:])):
        if not may_shrink and any(after < before for before, after in part):
            raise RuntimeError(
                f"shrinking the size of {what} dimensions (from "
                f"{[before for before, _ in part]} to {[after for _, after in part]}) on a "
                "non-empty sparse tensor is not supported."
            )


def _resized(self: SparseTensor, size, sparse_dim: int) -> SparseTensor:
    """A tensor of other sizes with the same elements, if it has some; where dense parts grow, the
    values stay in order, with zeros after them, as in `resize_` of a dense tensor.
    """
    values, indices = values_of(self), self._indices_held
    inner = tuple(size[sparse_dim:])
    if not _pattern.nnz(self):
        values = values.detach().new_zeros(0, *inner)
        indices = _pattern.as_indices(np.zeros((sparse_dim, 0), np.int64))
    elif values.shape[1:] != inner:
        count = values.shape[0] * math.prod(inner)
        flat = values.reshape(-1)[:count]
        zeros = flat.detach().new_zeros(count - flat.shape[0])
        values = ops.cat([flat, zeros]).reshape(values.shape[0], *inner)
    return sparse(values, indices, size, self._coalesced)


def _without_elements(self: SparseTensor, size, sparse_dim: int) -> SparseTensor:
    values = values_of(self).detach().new_zeros(0, *size[sparse_dim:])
    return sparse(values, _pattern.as_indices(np.zeros((sparse_dim, 0), np.int64)), size, True)


class SparseMethods:
    """Methods of `SparseTensor`."""

    __hash__ = object.__hash__
    device = property(lambda self: device_of(held(current(self))))
    T = property(lambda self: _shapes.permute(self, range(self.ndim)[::-1]))
    mT = property(lambda self: _shapes.transpose(self, -2, -1))
    mH = property(lambda self: ops.conj(_shapes.transpose(self, -2, -1)))
    H = property(lambda self: ops.conj(_shapes.t(self)))
    real = property(lambda self: _elements.elementwise("real", self) if self.is_complex() else self)
    imag = property(lambda self: _elements.elementwise("imag", self))
    is_sparse_csr = is_nested = property(lambda self: False)
    _base = property(lambda self: None)

    def _is_view(self) -> bool:
        return False

    @shows_users_frames
    def clone(self, *, memory_format=None):
        if memory_format is not None:
            raise RuntimeError(f"unsupported memory format option {memory_format}")
        return _elements.elementwise("clone", self)

    @shows_users_frames
    def detach(self):
        return _elements.detach(self)

    @shows_users_frames
    def detach_(self):
        if is_tracked(self) and node_or_mark(self) is not None:
            set_node(self, None)
        set_tracked(self, False)
        return self

    @shows_users_frames
    def to(self, *args, **kwargs):
        source = values_of(self)
        if kwargs.get("memory_format", preserve_format) not in (None, preserve_format):
            raise RuntimeError(
                "to(options): COO only supports memory format Preserve, but got "
                f"{kwargs.pop('memory_format')} instead."
            )
        if args and is_sparse(args[0]):
            args = (args[0].device, args[0].dtype, *args[1:])
        values = source.to(*args, **kwargs)
        if values.is_meta != source.is_meta:
            raise NotImplementedError(
                "to(): a sparse tensor moves to the device meta in no version yet: to_dense() first"
            )
        return self if values is source else _elements.like(self, values)

    @shows_users_frames
    def requires_grad_(self, requires_grad: bool = True):
        Tensor.requires_grad_(self, requires_grad)
        return self

    @shows_users_frames
    def register_hook(self, hook):
        def on_values(gradient):
            replacement = hook(gradient_of(self, gradient))
            return None if replacement is None else values_for(self, replacement)

        if not callable(hook):
            return HookMethods.register_hook(self, hook)
        return HookMethods.register_hook(self, on_values)

    @property
    def data(self):
        """The tensor without its history, on the same memory."""
        return _elements.detach(self)

    @data.setter
    def data(self, source):
        if not is_sparse(source) or source.layout is not self.layout:
            raise RuntimeError(
                "set_data: a sparse tensor takes the data of a tensor of its layout, not of layout "
                f"{getattr(source, 'layout', type(source).__name__)}"
            )
        self._set_pattern("data=", source.detach())

    def _set_pattern(self, name, source):
        """Give the tensor other elements and sizes."""
        why = _unchangeable(self, current_mode.get() is RECORD and is_tracked(source))
        if why:
            raise RuntimeError(f"{name} changes the pattern of a sparse tensor {why}")
        give_pattern(self, source)
        return self

    @shows_users_frames
    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Give the tensor other sizes: it keeps its elements, whose numbers of dimensions must be
        the same.
        """
        check_resize(self, size, sparse_dim, dense_dim)
        return self._set_pattern("sparse_resize_", _resized(self.detach(), size, sparse_dim))

    @shows_users_frames
    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Give the tensor other sizes and numbers of dimensions, and no elements."""
        if len(size) != sparse_dim + dense_dim:
            check_resize(self, size, sparse_dim, dense_dim)
        return self._set_pattern("sparse_resize_", _without_elements(self, size, sparse_dim))

    @shows_users_frames
    def resize_as_sparse_(self, other):
        """Give the tensor the sizes of another sparse one; it keeps its elements."""
        _needs_layout("resize_as_sparse_", other)
        count = _pattern.sparse_dims(other)
        return self.sparse_resize_(tuple(other._sizes), count, other.ndim - count)

    resize_as_ = resize_as_sparse_

    @shows_users_frames
    def _coalesced_(self, coalesced):
        """Set whether the indices count as sorted and distinct, which is not checked."""
        self._coalesced = bool(coalesced)
        return self

    @shows_users_frames
    def t_(self):
        return self._set_pattern("t_", _shapes.t(self))

    @shows_users_frames
    def transpose_(self, dim0, dim1):
        return self._set_pattern("transpose_", _shapes.transpose(self, dim0, dim1))

    swapaxes_ = swapdims_ = transpose_

    @shows_users_frames
    def narrow_copy(self, dim, start, length):
        return _shapes.narrow_copy(self, dim, start, length)

    @shows_users_frames
    def smm(self, mat):
        return _products.smm(self, mat)

    @shows_users_frames
    def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
        return _products.sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)

    saddmm = sspaddmm

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            return f"torch.sparse.{self.dtype.scalar_type}Tensor"
        if isinstance(dtype, str) and dtype.startswith("torch.sparse."):
            dtype = _types.TYPES[dtype.removeprefix("torch.sparse.")]
        return self.to(getattr(dtype, "dtype", dtype))

    @shows_users_frames
    def new(self, *arguments, device=None):
        return _types.make(self.dtype, *arguments, device=device)

    @property
    def nbytes(self):
        raise RuntimeError(
            "nbytes is not defined for sparse tensors: add those of indices() and values()"
        )

    def stride(self, dim=None):
        return (0,) * self.ndim if dim is None else 0

    def storage_offset(self):
        return 0

    def __dlpack__(self, **arguments):
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def is_conj(self):
        return False

    is_neg = is_pinned = is_conj

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    @shows_users_frames
    def copy_(self, src, non_blocking=False):
        permit("copy_", self, self.requires_grad or getattr(src, "requires_grad", False))
        replace(self, _elements.copy(self, src))
        return self

    @shows_users_frames
    def zero_(self):
        permit("zero_", self, self.requires_grad)
        return clear(self, _elements.zero(self))

    def is_contiguous(self, memory_format=None):
        return False

    def contiguous(self, memory_format=None):
        raise RuntimeError(
            "contiguous: unsupported memory format option Contiguous: tensors of layout "
            f"{self.layout} have no strides"
        )

    @shows_users_frames
    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def __bool__(self):
        if self.numel() != 1:
            count = "more than one value" if self.numel() else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
        return bool(_elements.to_dense(self))

    @shows_users_frames
    def __iter__(self):
        return iter(_shapes.unbind(self))

    @shows_users_frames
    def __getitem__(self, index):
        return _shapes.index(self, index)

    @shows_users_frames
    def select(self, dim, index):
        return _shapes.select(self, dim, index)

    @shows_users_frames
    def item(self):
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return _elements.to_dense(self.detach()).item()

    def __deepcopy__(self, memo):
        if self.grad_fn is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
        clone = _elements.like(self, ops.clone(values_of(self).detach()))
        memo[id(self)] = clone.requires_grad_(self.requires_grad)
        if self.grad is not None:
            clone.grad = self.grad.detach()
        return clone

    def __copy__(self):
        return _elements.like(self, values_of(self))

    def __reduce_ex__(self, protocol):
        part = self.detach()
        parts = part._indices(), part._values(), tuple(self._sizes), self.is_coalesced()
        return _rebuilt, (*parts, self.requires_grad)

    def __repr__(self):
        if not (is_concrete(values_of(self)) and is_concrete(self._indices_held)):
            unknown = "<no data, on meta>" if values_of(self).is_meta else "<traced>"
            return (
                f"tensor({unknown}, shape={list(self.shape)}, dtype={self.dtype}, "
                "layout=torch.sparse_coo)"
            )
        values, size = np.asarray(held(current(self))), tuple(self.shape)
        parts = {"indices": (np.asarray(self._indices_held._array), dtypes.int64)}
        return printing.sparse_tensor_str(
            parts | {"values": (values, self.dtype)},
            self.dtype,
            size,
            self.layout,
            self._indices_held.shape[1],
            self._requires_grad,
            name_of_node(self),
        )

    def _repr_html_(self):
        return None  # the text is enough


for _name, _dtype in CONVERSIONS.items():
    setattr(SparseMethods, _name, lambda self, dtype=_dtype: self.to(dtype))


def _rebuilt(indices, values, size, is_coalesced, requires_grad):
    """A sparse tensor of what was pickled."""
    tensor = sparse(values, indices, size, is_coalesced)
    return tensor.requires_grad_() if requires_grad else tensor


# methods of dense tensors that hold for sparse ones: they read neither the array nor the strides
KEPT = frozenset(
    [
        "size",
        "dim",
        "ndimension",
        "numel",
        "nelement",
        "element_size",
        "itemsize",
        "is_floating_point",
        *("new_zeros", "new_empty", "new_ones", "new_full", "new_tensor", "is_quantized", "is_xpu"),
        *("is_ipu", "is_maia", "is_mkldnn", "is_mps", "is_mtia", "is_vulkan", "is_xla"),
        *("__float__", "__int__", "__complex__", "__index__", "cuda"),
        "is_complex",
        "is_signed",
        "is_inference",
        "__len__",
        "__rtruediv__",
        "__rpow__",
        "__rmatmul__",
        "_version",
        "is_cpu",
        "is_cuda",
        "is_meta",
        "get_device",
        "is_leaf",
        "layout",
        "is_sparse",
        "retain_grad",
        "register_post_accumulate_grad_hook",
        "__format__",
        "_backward_hooks",
        "_post_accumulate_grad_hooks",
        "cpu",
        "type_as",
        "name",
    ]
)


def refused(name):
    """A method that refuses a tensor of a sparse layout."""

    def refuse(self, *args, **kwargs):
        raise _refusals.refusal(name, self.layout)

    return refuse


def install(sources):
    """Give `SparseTensor` its methods, and refuse those that read the array of a dense tensor.

    sources: the classes with the methods of dense tensors.
    """
    names = {name for name in vars(SparseMethods) if name not in vars(type("", (), {}))}
    names |= {"__hash__", "__repr__"}
    for source in sources:
        for name, member in vars(source).items():
            if name in KEPT or name in names or name in vars(SparseTensor):
                continue
            if name in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
                continue
            refusal = refused(name)
            setattr(SparseTensor, name, refusal if callable(member) else property(refusal))
    for name in names:
        setattr(SparseTensor, name, vars(SparseMethods)[name])
    SparseTensor._array = property(refused("_array"))
