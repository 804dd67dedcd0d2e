"""Sparse tensors in coordinate format as wholes: their elements added, detached, compared, without
padding. The operators are made of these functions and of operators on values and indices.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..storage.alias import detached
from ..tape.sparse_tensor import Padding, SparseTensor, in_kind, is_sparse, sparse, values_of
from ..tape.tensor import Tensor, concrete
from . import _pattern
from ._pattern import groups, needed, nnz, sparse_dims, sparse_sizes


def like(tensor: SparseTensor, values: Tensor) -> SparseTensor:
    """Other values at the indices of a tensor."""
    return sparse(values, tensor._indices_held, tensor._sizes, tensor._coalesced)


def elementwise(name: str, self, *args, **kwargs):
    """An operator that maps 0 to 0, on the values."""
    self = self if "sparse_linear" in ops.library.tags(name) else merged(self)
    return like(self, getattr(ops, name)(values_of(self), *args, **kwargs))


def coalesce(self: SparseTensor) -> SparseTensor:
    """The tensor with sorted and distinct indices; elements at equal indices are added."""
    if self._coalesced:
        return self
    indices = needed(self, "coalesce()")
    if _pattern.has_padding(self):
        return coalesce(without_padding(self))
    kept, _, inverse = _pattern.distinct(indices, sparse_sizes(self))
    values = ops._coo_group(values_of(self), _pattern.as_indices(inverse), kept.shape[1])
    return sparse(values, _pattern.as_indices(kept), self._sizes, True)


def merged(self: SparseTensor) -> SparseTensor:
    """The tensor with elements at equal indices added: coalesced, or in a trace where the indices
    are not known coalesced but for padding at the end.
    """
    if is_coalesced(self):
        return self
    if _pattern.is_known(self):
        return coalesce(self)
    if self._indices_held.is_meta:
        needed(self, "coalesce()")  # raises
    kept, _, inverse, present = _pattern.traced_distinct(self)
    values = ops._coo_group(values_of(self), inverse, kept.shape[1])
    return sparse(values, kept, self._sizes, Padding(present, True))


def padded(self: SparseTensor, values: Tensor, present: Tensor) -> SparseTensor:
    """The elements that are present, at distinct ones of the indices of a tensor."""
    return sparse(
        at_present(values, present), self._indices_held, self._sizes, Padding(present, True)
    )


def at_present(values: Tensor, present: Tensor) -> Tensor:
    """Values with 0 where there is padding."""
    return ops.where(present.reshape(-1, *[1] * (values.ndim - 1)), values, 0)


def like_or_nothing(self: SparseTensor, values: Tensor) -> SparseTensor:
    """`like` for an operator that gives no 0 for the 0 of padding, such as a product with inf."""
    if _pattern.has_padding(self):
        values = at_present(values, self._coalesced.present)
    return like(self, values)


def counted(self, what: str):
    """The tensor for `what` depends on the number of its elements. Raises RuntimeError in a trace
    where that is not known.
    """
    if not (is_sparse(self) and _pattern.has_padding(self)):
        return self
    needed(self, what)  # raises
    return without_padding(self)


def without_padding(self: SparseTensor) -> SparseTensor:
    """The tensor as it would be outside of a trace, where its indices are known."""
    padding, indices = self._coalesced, needed(self, "a sparse tensor without its padding")
    present = concrete(padding.present, "a sparse tensor without its padding")
    places = np.flatnonzero(np.asarray(present))
    if padding.is_coalesced:
        order = _pattern.distinct(indices[:, places], sparse_sizes(self))[1]
        places = places[order]
    values = ops._coo_ungroup(values_of(self), _pattern.as_indices(places))
    kept = _pattern.as_indices(indices[:, places])
    return sparse(values, kept, self._sizes, padding.is_coalesced)


def from_dense(self: Tensor, sparse_dim: int | None = None, block=None) -> SparseTensor:
    """The elements of a dense tensor that are not zero. Raises RuntimeError for a number of sparse
    dimensions that it has not, and in a trace.

    block: the extents of the blocks of its matrices: all elements of a block that is not zero.
    """
    wanted = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= wanted <= self.ndim or (wanted == 0 and self.ndim):
        raise RuntimeError(
            f"sparse_dim argument must be in >0 and <={self.ndim} range, but {wanted} is given"
        )
    array = np.asarray(concrete(self, "to_sparse()"))
    is_kept = (array != 0).any(tuple(range(wanted, self.ndim)))
    if block is not None:
        is_kept = _of_blocks(is_kept, *block)
    indices = np.stack(np.nonzero(is_kept)) if wanted else np.zeros((0, int(is_kept)), np.int64)
    indices = _pattern.as_indices(indices)
    operator = ops._coo_to_sparse if sparse_dim is None else ops._coo_to_sparse_dim
    return sparse(operator(self, indices), indices, self.shape, True)


def _of_blocks(is_kept, height, width):
    """Whether the block of an element of matrices has an element that is kept."""
    *batch, rows, columns = is_kept.shape
    parts = is_kept.reshape(*batch, rows // height, height, columns // width, width)
    kept = np.broadcast_to(parts.any((-3, -1), keepdims=True), parts.shape)
    return kept.reshape(is_kept.shape)


def to_dense(self: SparseTensor) -> Tensor:
    """The dense tensor."""
    return ops._coo_to_dense(values_of(self), self._indices_held, tuple(self._sizes))


def detach(self: SparseTensor) -> SparseTensor:
    """The tensor without its history, on the same memory."""
    return like(self, in_kind(self, detached(self)))


def all_elements(self: SparseTensor) -> SparseTensor:
    """The tensor with an element at every index, 0 where it has none."""
    sizes = sparse_sizes(self)
    whole = np.ones(sizes, bool).nonzero() if sizes else np.zeros((0, 1), np.int64)
    zeros = (
        values_of(self).detach().new_zeros(np.shape(whole)[1], *self._sizes[sparse_dims(self) :])
    )
    mask = sparse(
        zeros, _pattern.as_indices(np.stack(whole) if sizes else whole), self._sizes, True
    )
    return like(mask, elements_at(self, mask))


def elements_at(self: SparseTensor, mask: SparseTensor) -> Tensor:
    """The values of a tensor at the indices of another one, 0 where it has no element."""
    if _pattern.is_same(self, mask) and self._coalesced:
        return values_of(self)
    if not all(map(_pattern.is_known, (self, mask))):
        return sums_at(self, values_of(self), mask)
    self = coalesce(self)
    places = _pattern.positions(self, needed(mask, "a comparison of sparse patterns"))
    values = values_of(self)
    nothing = ops.narrow(values, 0, 0, 0).new_zeros(1, *values.shape[1:])
    return ops._coo_ungroup(ops.cat([values, nothing]), _pattern.as_indices(places))


def sums_at(self: SparseTensor, values: Tensor, mask: SparseTensor) -> Tensor:
    """The sums of values at the indices of a tensor, at those of another one: in a trace, where the
    indices are not known.
    """
    joined = ops.cat([self._indices_held, mask._indices_held], 1)
    numbers, count = groups(
        sparse(joined.new_zeros(joined.shape[1]), joined, sparse_sizes(self), False),
        list(range(sparse_dims(self))),
    )
    sums = ops._coo_group(values, numbers[: nnz(self)], count)
    return ops._coo_ungroup(sums, numbers[nnz(self) :])


def is_coalesced(self: SparseTensor) -> bool:
    """Whether the indices are sorted and distinct, or would be outside of a trace."""
    return bool(self._coalesced) or (_pattern.has_padding(self) and self._coalesced.is_coalesced)


def joined_padding(tensors):
    """The `is_coalesced` or `Padding` of joined elements of several tensors."""
    if not any(map(_pattern.has_padding, tensors)):
        return False
    return Padding(ops.cat(list(map(_pattern.present, tensors))), False)


def wrapped(dim, ndim):
    """A dimension counted from the first one. Raises IndexError if there is none."""
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


def zero(self) -> SparseTensor:
    """A tensor of the same shape without elements."""
    values = values_of(self).detach().new_zeros(0, *self._sizes[sparse_dims(self) :])
    indices = _pattern.as_indices(np.zeros((sparse_dims(self), 0), np.int64))
    return sparse(values, indices, self._sizes, True)


def copy(self, src, non_blocking=False) -> SparseTensor:
    """The elements of another sparse tensor, in the dtype of this one."""
    if not (is_sparse(self) and is_sparse(src)):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    check_same_size("copy_", self, src)
    return like(src, ops.clone(values_of(src).to(self.dtype)))


def ndim_of(value) -> int:
    """The number of dimensions of a tensor; 1 for what is none."""
    return value.ndim if isinstance(value, Tensor) else 1


def check_same_size(name, self, other):
    """Raise RuntimeError for two sparse tensors of other sizes or sparse dimensions."""
    if self.shape != other.shape:
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != "
            f"{list(other.shape)}"
        )
    if sparse_dims(self) != sparse_dims(other):
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same number of sparse dimensions, but "
            f"{sparse_dims(self)} != {sparse_dims(other)}"
        )
