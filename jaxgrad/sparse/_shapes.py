"""Sparse tensors with their dimensions in another order, joined, and in parts."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core import dtypes
from ..tape.sparse_tensor import SparseTensor, is_sparse, sparse, values_of
from ..tape.tensor import Tensor, concrete
from . import _pattern, _refusals
from ._elements import counted, joined_padding, wrapped
from ._pattern import needed, nnz, sparse_dims


def _permuted(self, dims, operator, keeps_order: bool):
    """keeps_order: whether the result may count as coalesced, where the indices stay sorted."""
    count = sparse_dims(self)
    if any((old < count) != (new < count) for new, old in enumerate(dims)):
        raise RuntimeError(
            "transpose of a sparse tensor: transpositions between sparse and dense dimensions are "
            f"not allowed. Got {count} sparse dimensions of {self.ndim}, and the order {dims}"
        )
    values = values_of(self)
    inner = [0, *(dim - count + 1 for dim in dims[count:])]
    is_inner = inner != sorted(inner)
    values = ops.permute(values, inner) if is_inner else operator(values)
    order = _pattern.as_indices(dims[:count])
    indices = ops.index_select(self._indices_held, 0, order)
    is_sorted = keeps_order and (nnz(self) < 2 or dims[:count] == sorted(dims[:count]))
    is_kept = _pattern.if_kept(self, is_sorted)
    return sparse(values, indices, [self._sizes[dim] for dim in dims], is_kept)


def t(self) -> SparseTensor:
    """The transpose of a matrix."""
    if self.ndim > 2 or sparse_dims(self) > 2:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{sparse_dims(self)} sparse and {self.ndim - sparse_dims(self)} dense dimensions"
        )
    return self if self.ndim < 2 else _permuted(self, [1, 0], ops._coo_t, True)


def transpose(self, dim0, dim1) -> SparseTensor:
    """The tensor with two dimensions exchanged."""
    dims = list(range(self.ndim))
    first, second = wrapped(dim0, self.ndim), wrapped(dim1, self.ndim)
    dims[first], dims[second] = dims[second], dims[first]
    return _permuted(self, dims, ops._coo_transpose, True)


swapaxes = swapdims = transpose


def permute(self, *dims, **named) -> SparseTensor:
    """The tensor with its dimensions in another order."""
    dims = named.get("dims", dims)
    asked = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    if len(asked) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions: {self.ndim} and {len(asked)}"
        )
    dims = [wrapped(dim, self.ndim) for dim in asked]
    if len(set(dims)) < len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permuted(self, dims, ops._coo_permute, not asked or asked[0] == 0)


def movedim(self, source, destination) -> SparseTensor:
    """The tensor with dimensions moved to other places."""
    places = [[one] if isinstance(one, int) else list(one) for one in (source, destination)]
    origins, targets = ([wrapped(dim, self.ndim) for dim in dims] for dims in places)
    rest = iter([dim for dim in range(self.ndim) if dim not in origins])
    moved = dict(zip(targets, origins, strict=True))
    dims = [moved[place] if place in moved else next(rest) for place in range(self.ndim)]
    return _permuted(self, dims, ops._coo_permute, True)


def broadcast_to(self, size) -> SparseTensor:
    """The tensor with dimensions of extent 1 expanded; new ones in front are sparse."""
    self, size = counted(self, "broadcast_to()"), tuple(size)
    extra, count = len(size) - self.ndim, sparse_dims(self)
    origin = [1] * extra + list(self._sizes)
    if extra < 0 or any(a not in (1, b) for a, b in zip(origin, size, strict=True)):
        raise RuntimeError(
            f"input with sizes {list(self._sizes)} does not broadcast to output size {list(size)}"
        )
    front = extra + count
    copied = [new if old == 1 else 1 for old, new in zip(origin[:front], size, strict=False)]
    copies = math.prod(copied)
    grid = np.indices(copied).reshape(front, 1, copies)
    indices = _pattern.as_indices(np.zeros((extra, nnz(self)), np.int64))
    indices = ops.cat([indices, self._indices_held]).unsqueeze(2) + _pattern.as_indices(grid)
    count, dense = nnz(self) * copies, size[front:]
    values = values_of(self).unsqueeze(1).expand(nnz(self), copies, *dense)
    values, indices = values.reshape(count, *dense), indices.reshape(front, count)
    return sparse(values, indices, size, self._coalesced and copies == 1)


def _in_shape_of_other(name):
    """`expand_as` and the like, which take a sparse tensor for its shape alone."""

    def operator(self, other):
        if is_sparse(self):
            raise _refusals.refusal(f"{name}_as", self.layout)
        return getattr(ops, name)(self, tuple(other.shape))

    return operator


expand_as, view_as, reshape_as = map(_in_shape_of_other, ("expand", "view", "reshape"))


def view_as_complex(self) -> SparseTensor:
    """Complex numbers of pairs along the last dimension, which is dense."""
    if sparse_dims(self) == self.ndim:
        raise _refusals.refusal("view_as_complex", self.layout)
    values = ops.view_as_complex(values_of(self))
    return sparse(values, self._indices_held, self._sizes[:-1], self._coalesced)


def view_as_real(self) -> SparseTensor:
    """The real and imaginary parts of complex numbers along a new last dimension, a dense one."""
    values = ops.view_as_real(values_of(self))
    return sparse(values, self._indices_held, [*self._sizes, 2], self._coalesced)


def cat(tensors, dim=0) -> SparseTensor:
    """Sparse tensors joined along a dimension."""
    _check_sparse(tensors)
    first = tensors[0]
    dim, count, sizes = wrapped(dim, first.ndim), sparse_dims(first), list(first._sizes)
    for place, tensor in enumerate(tensors):
        _check_joined(first, tensor, place, dim)
    sizes[dim] = sum(tensor._sizes[dim] for tensor in tensors)
    starts = np.cumsum([0, *(tensor._sizes[dim] for tensor in tensors)])[:-1].tolist()
    values, indices = [], []
    for tensor, start in zip(tensors, starts, strict=True):
        shift = np.zeros((count, 1), np.int64)
        shift[dim : dim + 1] = start
        indices.append(tensor._indices_held + _pattern.as_indices(shift))
        values.append(values_of(tensor))
        if dim >= count:
            values[-1] = _in_extent(values[-1], dim - count + 1, start, sizes[dim])
    padding = tensors[0]._coalesced if len(tensors) == 1 else joined_padding(tensors)
    places = ops.cat(indices, 1)
    # one element is in order
    is_coalesced = places.shape[1] < 2 if padding is False else padding
    return sparse(ops.cat(values), places, sizes, is_coalesced)


def _check_sparse(tensors):
    dense = [place for place, tensor in enumerate(tensors) if not is_sparse(tensor)]
    if dense:
        raise RuntimeError(
            f"Concatenating sparse tensors, but a dense tensor was found at position {dense[0]}."
        )


def _in_extent(values, dim, start, extent) -> Tensor:
    """Values with zeros before and after them along a dense dimension, up to an extent."""
    before, after = list(values.shape), list(values.shape)
    before[dim], after[dim] = start, extent - start - values.shape[dim]
    zeros = values.detach().new_zeros
    return ops.cat([zeros(before), values, zeros(after)], dim)


def _check_joined(first, tensor, place, dim):
    dims = [(sparse_dims(one), one.ndim - sparse_dims(one)) for one in (first, tensor)]
    rest = [[*one._sizes[:dim], *one._sizes[dim + 1 :]] for one in (first, tensor)]
    if rest[0] != rest[1]:
        raise RuntimeError(
            f"All tensors must have the same shape: {list(first.shape)} (except in the "
            f"concatenating dimension), but found shape: {list(tensor.shape)} at position {place}"
        )
    if dims[0] != dims[1]:
        raise RuntimeError(
            "All tensors must have the same sparse_dim and dense_dim: "
            f"{dims[0][0]}, {dims[0][1]}, but tensor at position {place} has {dims[1][0]}, "
            f"{dims[1][1]}."
        )


def hstack(tensors) -> SparseTensor:
    """Sparse tensors joined along the second dimension, or the only one."""
    return cat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(tensors) -> SparseTensor:
    """Sparse tensors joined along the first dimension; those with one dimension are rows."""
    _check_sparse(tensors)
    return cat([unsqueeze(one, 0) if one.ndim == 1 else one for one in tensors], 0)


def select(self, dim, index) -> Tensor:
    """A slice across a dimension: sparse, or dense if no sparse dimension is left."""
    self = counted(self, "select()")
    dim, count, sizes = wrapped(dim, self.ndim), sparse_dims(self), list(self._sizes)
    size = sizes.pop(dim)
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self._sizes)} at "
            f"dimension {dim}"
        )
    index, values = index % size, values_of(self)
    if dim >= count:
        values = ops.select(values, dim - count + 1, index)
        return _sorted_if_short(values, self._indices_held, sizes)
    indices = needed(self, "select()")
    places = np.flatnonzero(indices[dim] == index)
    values = ops.index_select(values, 0, _pattern.as_indices(places))
    if count == 1:
        return ops.sum(values, 0, dtype=values.dtype)
    kept = np.delete(indices[:, places], dim, 0)
    return _sorted_if_short(values, _pattern.as_indices(kept), sizes)


def _sorted_if_short(values, indices, sizes) -> SparseTensor:
    """Elements that count as coalesced if there are none or one, as PyTorch has it for slices."""
    return sparse(values, indices, sizes, values.shape[0] < 2)


def unbind(self, dim=0) -> tuple[Tensor, ...]:
    """All slices across a dimension."""
    size = self._sizes[wrapped(dim, self.ndim)]
    return tuple([select(self, dim, index) for index in range(size)])


def unsqueeze(self, dim) -> SparseTensor:
    """The tensor with one more dimension, of extent 1; it is sparse up to the last sparse one."""
    self = counted(self, "unsqueeze()")
    dim, count, values = wrapped(dim, self.ndim + 1), sparse_dims(self), values_of(self)
    indices, sizes = self._indices_held, [*self._sizes[:dim], 1, *self._sizes[dim:]]
    if dim > count:
        values = ops.unsqueeze(values, dim - count + 1)
    else:
        indices = ops.cat([indices[:dim], indices.new_zeros(1, nnz(self)), indices[dim:]])
    return _sorted_if_short(values, indices, sizes)


def stack(tensors, dim=0) -> SparseTensor:
    """Sparse tensors of one shape, along a new sparse dimension."""
    _check_sparse(tensors)
    for place, tensor in enumerate(tensors):
        if tensor.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at "
                f"entry 0 and {list(tensor.shape)} at entry {place}"
            )
    return cat([unsqueeze(tensor, dim) for tensor in tensors], dim)


def index_select(self, dim, index) -> SparseTensor:
    """The slices across a dimension at some indices, which may be negative."""
    if is_sparse(index) or index.ndim != 1 or index.dtype is not dtypes.int64:
        raise IndexError(
            "index_select() argument index must be 1-D strided (non-sparse) long-tensor."
        )
    self = counted(self, "index_select()")
    dim, count = wrapped(dim, self.ndim), sparse_dims(self)
    chosen, size = np.asarray(concrete(index, "index_select()")), self._sizes[dim]
    wrong = chosen[(chosen < -size) | (chosen >= size)]
    if wrong.size:
        raise IndexError(
            f"index_select(): index contains {wrong[0]} that is out of range for tensor of size "
            f"{list(self._sizes)} at dimension {dim}"
        )
    chosen, sizes = chosen % max(size, 1), list(self._sizes)
    sizes[dim] = len(chosen)
    if dim >= count:
        place = _pattern.as_indices(chosen)
        values = ops.index_select(values_of(self), dim - count + 1, place)
        return sparse(values, self._indices_held, sizes, self._coalesced)
    indices = needed(self, "index_select()")
    order = np.argsort(indices[dim], kind="stable")
    begin, end = (np.searchsorted(indices[dim][order], chosen, side=s) for s in ("left", "right"))
    places, number = _pattern.members(begin, end)
    kept = indices[:, order[places]]
    kept[dim] = number
    return _at_places(self, order[places], kept, sizes)


def _at_places(self, places, indices, sizes) -> SparseTensor:
    """The elements at some places, with other indices; they count as coalesced if they are few."""
    values = ops._coo_ungroup(values_of(self), _pattern.as_indices(places))
    return _sorted_if_short(values, _pattern.as_indices(indices), sizes)


def narrow(self, dim, start, length) -> SparseTensor:
    """A range of slices across a dimension; negative dimensions and starts count from the end."""
    dim = wrapped(dim, self.ndim)
    start = start + self._sizes[dim] if start < 0 else start
    return narrow_copy(self, dim, start, length)


def narrow_copy(self, dim, start, length) -> SparseTensor:
    """A range of slices across a dimension."""
    self = counted(self, "narrow()")
    if not 0 <= dim < self.ndim:
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {self.ndim}.")
    if start < 0 or length < 0 or start + length > self._sizes[dim]:
        raise RuntimeError(
            "Invalid range to narrow. range(start, start+length) must be a subset of range(0, "
            f"{self._sizes[dim]})."
        )
    sizes, count = list(self._sizes), sparse_dims(self)
    sizes[dim] = length
    if dim >= count:
        values = ops.narrow(values_of(self), dim - count + 1, start, length)
        return sparse(values, self._indices_held, sizes, self._coalesced)
    indices = needed(self, "narrow()")
    places = np.flatnonzero((indices[dim] >= start) & (indices[dim] < start + length))
    kept = indices[:, places]
    kept[dim] -= start
    values = ops._coo_ungroup(values_of(self), _pattern.as_indices(places))
    return sparse(values, _pattern.as_indices(kept), sizes, self._coalesced)


def index(self, key) -> Tensor:
    """The part at an index of ints, slices, None, an ellipsis, and 1-D tensors of integers."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dims = self.ndim - len([part for part in parts if part is not None and part is not Ellipsis])
    if dims < 0:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    dim = 0
    for part in parts:
        if part is Ellipsis:
            dim += dims
            continue
        self = _indexed(self, dim, part)
        dim += not _is_number(part)
    return self


def _is_number(part) -> bool:
    return not isinstance(part, bool) and (
        isinstance(part, int)
        or (isinstance(part, Tensor) and not part.ndim and part.dtype is not dtypes.bool)
    )


def _indexed(self, dim, part) -> Tensor:
    """The part of a tensor at an index along one dimension."""
    if not is_sparse(self):
        return self[(slice(None),) * dim + (part,)]
    if part is None:
        return unsqueeze(self, dim)
    if _is_number(part):
        return select(self, dim, int(part))
    if isinstance(part, slice):
        start, stop, step = part.indices(self._sizes[dim])
        if step == 1:
            whole = start == 0 and stop >= self._sizes[dim]
            return self if whole else narrow(self, dim, start, max(stop - start, 0))
        part = _pattern.as_indices(np.arange(start, stop, step))
    if isinstance(part, Tensor) and part.ndim == 1 and part.dtype is dtypes.int64:
        return index_select(self, dim, part)
    raise NotImplementedError(
        "Could not run 'aten::index.Tensor' with arguments from the 'SparseCPU' backend: a sparse "
        f"tensor takes no index of type {type(part).__name__} here"
    )
