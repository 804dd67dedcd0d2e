"""The operators on sparse tensors: compositions of operators on values and indices.

An operator of the table with the tag `sparse` is the function of its name here.

Each node has the name of the operator, as in PyTorch. Only outside of a trace does a pattern
change; in a trace a sum keeps the elements of both operands.
"""

from __future__ import annotations

import functools
import numbers

import numpy as np

from .. import ops
from ..core import promotion
from ..tape.sparse_tensor import Padding, SparseTensor, is_sparse, sparse, values_of
from ..tape.tensor import Tensor, concrete
from . import _pattern
from ._pattern import groups, known, needed, nnz, sparse_dims, sparse_sizes


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


def to_dense(self: SparseTensor) -> Tensor:
    """The dense tensor."""
    return ops._coo_to_dense(values_of(self), self._indices_held, tuple(self._sizes))


def detach(self: SparseTensor) -> SparseTensor:
    """The tensor without its history, on memory of its own."""
    return like(self, ops.clone(ops.detach(values_of(self))))


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


# ---- sums


def add(self, other, *, alpha=1, name="add"):
    """`self + alpha * other` for two sparse tensors, or a dense and a sparse one."""
    if not is_sparse(self):
        return _add_to_dense(self, other, alpha if name == "add" else -alpha)
    if not is_sparse(other):
        raise RuntimeError(
            f"{name}(sparse, dense) is not supported. Use {name}(dense, sparse) instead."
        )
    _check_same_size(name, self, other)
    dtype = promotion.promote_types(self.dtype, other.dtype)
    one, two = (values_of(operand).to(dtype) for operand in (self, other))
    if _pattern.is_same(self, other):
        total = getattr(ops, name)(one, two, alpha=alpha)
        return sparse(total, self._indices_held, self._sizes, _united(self, other))
    operator = ops._coo_add if name == "add" else ops._coo_sub
    are_merged = all(map(is_coalesced, (self, other)))
    if not are_merged or any(known(operand) is None for operand in (self, other)):
        joined = ops.cat([self._indices_held, other._indices_held], 1)
        padding = joined_padding([self, other])
        result = sparse(operator(one, two, None, 0, alpha), joined, self._sizes, padding)
        return merged(result) if are_merged else result
    patterns = known(self), known(other)
    kept, _, inverse = _pattern.distinct(np.concatenate(patterns, 1), sparse_sizes(self))
    values = operator(one, two, _pattern.as_indices(inverse), kept.shape[1], alpha)
    return sparse(values, _pattern.as_indices(kept), self._sizes, True)


def sub(self, other, *, alpha=1):
    """`self - alpha * other` for two sparse tensors, or a dense and a sparse one."""
    return add(self, other, alpha=alpha, name="sub")


def is_coalesced(self: SparseTensor) -> bool:
    """Whether the indices are sorted and distinct, or would be outside of a trace."""
    return bool(self._coalesced) or (_pattern.has_padding(self) and self._coalesced.is_coalesced)


def _united(self, other):
    """The `is_coalesced` or `Padding` of the sum of two tensors with the same indices."""
    if self._coalesced is other._coalesced:
        return self._coalesced
    if not any(map(_pattern.has_padding, (self, other))):
        return self._coalesced and other._coalesced
    present = _pattern.present(self) | _pattern.present(other)
    return Padding(present, all(map(is_coalesced, (self, other))))


def joined_padding(tensors):
    """The `is_coalesced` or `Padding` of joined elements of several tensors."""
    if not any(map(_pattern.has_padding, tensors)):
        return False
    return Padding(ops.cat(list(map(_pattern.present, tensors))), False)


def _add_to_dense(self, other, alpha):
    if not isinstance(self, Tensor) or self.shape != other.shape:
        shape = list(getattr(self, "shape", ()))
        raise RuntimeError(
            f"add: {shape} and {list(other.shape)}: a sparse tensor never broadcasts"
        )
    dtype = promotion.promote_types(self.dtype, other.dtype)
    values = values_of(other).to(dtype)
    return ops._coo_add_to(self.to(dtype), values, other._indices_held, alpha)


def _check_same_size(name, self, other):
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


def sum(self, dim=None, keepdim=False, *, dtype=None):
    """The sum over all dimensions, a dense tensor, or over some."""
    if keepdim:
        raise NotImplementedError("sum of a sparse tensor: keepdim=True is not supported")
    self = self if dtype is None else like(self, values_of(self).to(dtype))
    if dim is None:
        return ops.sum(values_of(self))
    return sum_over(self, dim)


def sum_over(self: SparseTensor, dim) -> Tensor:
    """The sum over dimensions: sparse, or dense if no sparse dimension is left."""
    dims = [_wrapped(place, self.ndim) for place in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        most = max(dims, key=dims.count)
        raise RuntimeError(f"dim {most} appears multiple times in the list of dims")
    dims, count = set(dims or range(self.ndim)), sparse_dims(self)
    values = values_of(self)
    inner = [place - count + 1 for place in dims if place >= count]
    values = values.sum(inner) if inner else values
    kept = [place for place in range(count) if place not in dims]
    sizes = tuple(size for place, size in enumerate(self._sizes) if place not in dims)
    if not kept:
        return ops._coo_sum(values, None, 0)
    indices = ops.index_select(self._indices_held, 0, _pattern.as_indices(kept))
    if known(self) is None or len(kept) == count:
        held = _pattern.as_indices(np.arange(nnz(self)))
        is_kept = _pattern.if_kept(self, len(kept) == count)
        result = sparse(ops._coo_sum(values, held, nnz(self)), indices, sizes, is_kept)
        return result if len(kept) == count else merged(result)
    pattern, _, inverse = _pattern.distinct(known(self)[kept], [self._sizes[i] for i in kept])
    values = ops._coo_sum(values, _pattern.as_indices(inverse), pattern.shape[1])
    return sparse(values, _pattern.as_indices(pattern), sizes, True)


def _wrapped(dim, ndim):
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{dim})"
        )
    return dim % ndim


# ---- products


def mul(self, other):
    """The product of each element with a number, or with the element of another tensor."""
    if not is_sparse(self):
        self, other = other, self
    if isinstance(other, numbers.Number) or (not is_sparse(other) and not _ndim(other)):
        return like_or_nothing(self, ops.mul(values_of(self), other))
    if not is_sparse(other):
        _check_same_shape("mul", self, other)
        at_indices = ops._coo_mask(other, self._indices_held)
        return like_or_nothing(self, ops.mul(values_of(self), at_indices))
    _check_same_size("mul", self, other)
    is_one = self is other
    self = merged(self)
    other = self if is_one else merged(other)
    if _pattern.is_same(self, other) and self._coalesced is other._coalesced:
        return like(self, ops.mul(values_of(self), values_of(other)))
    if not all(map(_pattern.is_known, (self, other))):
        return _traced_product(self, other)
    indices = needed(self, "mul of sparse tensors")
    places = _pattern.positions(other, indices)
    common = np.flatnonzero(places < nnz(other))
    one = ops._coo_ungroup(values_of(self), _pattern.as_indices(common))
    two = ops._coo_ungroup(values_of(other), _pattern.as_indices(places[common]))
    return sparse(ops.mul(one, two), _pattern.as_indices(indices[:, common]), self._sizes, True)


def _traced_product(self, other):
    """The product of the elements at common indices, where these are not known."""
    here, there = _pattern.present(self), _pattern.present(other)
    there = sums_at(other, there.to(self._indices_held.dtype), self) > 0
    values = ops.mul(values_of(self), sums_at(other, values_of(other), self))
    return padded(self, values, here & there)


def div(self, other, *, rounding_mode=None):
    """The quotient of each element and a number."""
    is_number = isinstance(other, numbers.Number) or (not is_sparse(other) and not _ndim(other))
    if not is_sparse(self) or not is_number:
        raise RuntimeError("div: a sparse tensor can only be divided by a number or a 0-d tensor")
    if rounding_mode is None:
        return like_or_nothing(self, ops.div(values_of(self), other))
    self = merged(self)
    return like_or_nothing(self, ops.div(values_of(self), other, rounding_mode=rounding_mode))


def pow(self, exponent):
    """The power of each element with a positive number as exponent."""
    if not is_sparse(self) or not isinstance(exponent, numbers.Number) or not exponent > 0:
        raise RuntimeError("pow: a sparse tensor takes a positive number as exponent")
    self = merged(self)
    return like(self, ops.pow(values_of(self), exponent))


def _ndim(value):
    return value.ndim if isinstance(value, Tensor) else 1


def _check_same_shape(name, self, other):
    if not isinstance(other, Tensor) or self.shape != other.shape:
        shape = list(getattr(other, "shape", ()))
        raise RuntimeError(
            f"{name}: a sparse tensor of shape {list(self.shape)} needs an operand of that shape "
            f"or a number, not shape {shape}"
        )


def check_matrix(name: str, self: SparseTensor, columns=None):
    """Raise RuntimeError for a tensor that is no sparse matrix, or has other columns."""
    if self.ndim != 2 or sparse_dims(self) != 2:
        raise RuntimeError(
            f"{name}: expected a sparse matrix, with 2 sparse dimensions, but got "
            f"{sparse_dims(self)} sparse and {self.ndim - sparse_dims(self)} dense dimensions"
        )
    if columns is not None and self.shape[1] != columns[0]:
        raise RuntimeError(
            f"{name}: Expected dim 0 size {self.shape[1]}, got {columns[0]}: shapes "
            f"{list(self.shape)} and {list(columns)} cannot be multiplied"
        )


def _check_operands(name, self, other, ndim=2):
    if not isinstance(other, Tensor) or other.ndim != ndim:
        shape = list(getattr(other, "shape", ()))
        raise RuntimeError(f"{name}: expected a {ndim}-D tensor as operand, but got shape {shape}")
    if self.dtype is not other.dtype:
        raise RuntimeError(
            f"{name}: expected both operands to have the same dtype, but got {self.dtype} and "
            f"{other.dtype}"
        )


def mm(self, mat2) -> Tensor:
    """The product of two matrices, of which one or both are sparse."""
    if not is_sparse(self):
        return ops.t(mm(t(mat2), ops.t(self)))
    _check_operands("mm", self, mat2)
    check_matrix("mm", self, tuple(mat2.shape))
    if is_sparse(mat2):
        return _sparse_product(self, mat2)
    return ops._coo_mm(values_of(self), self._indices_held, self.shape[0], mat2)


def _sparse_product(self, other):
    check_matrix("mm", other)
    self, other = coalesce(self), coalesce(other)
    (row, middle), (first, column) = (
        needed(operand, "mm of sparse matrices") for operand in (self, other)
    )
    begin, end = np.searchsorted(first, middle), np.searchsorted(first, middle, side="right")
    left = np.repeat(np.arange(len(row)), end - begin)
    offset = np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
    right = np.arange(len(left)) - offset + begin[left]
    sizes = self.shape[0], other.shape[1]
    kept, _, inverse = _pattern.distinct(np.stack([row[left], column[right]]), sizes)
    pairs = [_pattern.as_indices(positions) for positions in (left, right, inverse)]
    values = ops._coo_matmul(values_of(self), values_of(other), *pairs, kept.shape[1])
    return sparse(values, _pattern.as_indices(kept), sizes, True)


def mv(self, vec) -> Tensor:
    """The product of a sparse matrix and a vector."""
    if not is_sparse(self) or is_sparse(vec):
        raise RuntimeError("mv: the matrix may be sparse, the vector not")
    _check_operands("mv", self, vec, 1)
    check_matrix("mv", self)
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"mv: size mismatch, got {self.shape[0]}x{self.shape[1]} and {vec.shape[0]}"
        )
    return ops._coo_mv(values_of(self), self._indices_held, self.shape[0], vec)


def matmul(self, other) -> Tensor:
    """The product of a sparse matrix with a dense or sparse matrix or a vector."""
    if is_sparse(self) and _ndim(other) == 1 and isinstance(other, Tensor):
        return mv(self, other)
    if not is_sparse(self) and _ndim(self) == 1 and isinstance(self, Tensor):
        return mv(t(other), self)
    return mm(self, other)


def linear(input, weight, bias=None) -> Tensor:
    """`input @ weight.t() + bias` with a sparse weight."""
    product = mm(input, t(weight) if is_sparse(weight) else ops.t(weight))
    return product if bias is None else product + bias


def addmm(self, mat1, mat2, *, beta=1, alpha=1, operator="_coo_addmm") -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)` with a sparse `mat1`."""
    if is_sparse(self) or is_sparse(mat2) or not is_sparse(mat1):
        raise NotImplementedError(
            "Could not run 'aten::addmm' with arguments from the 'SparseCPU' backend: only mat1 may"
            " be sparse"
        )
    _check_operands("addmm", mat1, mat2)
    check_matrix("addmm", mat1, tuple(mat2.shape))
    return getattr(ops, operator)(
        self, values_of(mat1), mat1._indices_held, mat1.shape[0], mat2, beta=beta, alpha=alpha
    )


# ---- shapes


def _permuted(self, dims, operator):
    count = sparse_dims(self)
    if any((old < count) != (new < count) for new, old in enumerate(dims)):
        raise RuntimeError(
            "transpose of a sparse tensor: can't permute sparse with dense dimensions"
        )
    values = values_of(self)
    inner = [0, *(dim - count + 1 for dim in dims[count:])]
    is_inner = inner != sorted(inner)
    values = ops.permute(values, inner) if is_inner else operator(values)
    order = _pattern.as_indices(dims[:count])
    indices = ops.index_select(self._indices_held, 0, order)
    is_kept = _pattern.if_kept(self, dims[:count] == sorted(dims[:count]))
    return sparse(values, indices, [self._sizes[dim] for dim in dims], is_kept)


def t(self) -> SparseTensor:
    """The transpose of a matrix."""
    if self.ndim > 2 or sparse_dims(self) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse dimensions, but got {self.ndim}")
    return self if self.ndim < 2 else _permuted(self, [1, 0], ops._coo_t)


def transpose(self, dim0, dim1) -> SparseTensor:
    """The tensor with two dimensions exchanged."""
    dims = list(range(self.ndim))
    first, second = _wrapped(dim0, self.ndim), _wrapped(dim1, self.ndim)
    dims[first], dims[second] = dims[second], dims[first]
    return _permuted(self, dims, ops._coo_transpose)


def permute(self, *dims) -> SparseTensor:
    """The tensor with its dimensions in another order."""
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    dims = [_wrapped(dim, self.ndim) for dim in dims]
    if sorted(dims) != list(range(self.ndim)):
        raise RuntimeError(f"permute(): {dims} is no order of the dimensions")
    return _permuted(self, dims, ops._coo_permute)


def cat(tensors, dim=0) -> SparseTensor:
    """Sparse tensors joined along a sparse dimension."""
    first = tensors[0]
    if not all(map(is_sparse, tensors)):
        raise RuntimeError("cat: all tensors must be sparse, or none")
    dim, sizes, offset, indices = _wrapped(dim, first.ndim), list(first._sizes), 0, []
    if dim >= sparse_dims(first):
        raise NotImplementedError("cat of sparse tensors along a dense dimension")
    for tensor in tensors:
        rest = [size for place, size in enumerate(tensor._sizes) if place != dim]
        if rest != sizes[:dim] + sizes[dim + 1 :] or sparse_dims(tensor) != sparse_dims(first):
            raise RuntimeError("All tensors must have the same shape, except in the joined one")
        shift = np.zeros((sparse_dims(first), 1), np.int64)
        shift[dim], offset = offset, offset + tensor._sizes[dim]
        indices.append(tensor._indices_held + _pattern.as_indices(shift))
    sizes[dim] = offset
    values = ops.cat([values_of(tensor) for tensor in tensors])
    return sparse(values, ops.cat(indices, 1), sizes, joined_padding(tensors))


# ---- slices


def select(self, dim, index) -> Tensor:
    """A slice across a dimension: sparse, or dense if no sparse dimension is left."""
    self = counted(self, "select()")
    dim, count, sizes = _wrapped(dim, self.ndim), sparse_dims(self), list(self._sizes)
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
    size = self._sizes[_wrapped(dim, self.ndim)]
    return tuple([select(self, dim, index) for index in range(size)])


def unsqueeze(self, dim) -> SparseTensor:
    """The tensor with one more dimension, of extent 1; it is sparse up to the last sparse one."""
    self = counted(self, "unsqueeze()")
    dim, count, values = _wrapped(dim, self.ndim + 1), sparse_dims(self), values_of(self)
    indices, sizes = self._indices_held, [*self._sizes[:dim], 1, *self._sizes[dim:]]
    if dim > count:
        values = ops.unsqueeze(values, dim - count + 1)
    else:
        indices = ops.cat([indices[:dim], indices.new_zeros(1, nnz(self)), indices[dim:]])
    return _sorted_if_short(values, indices, sizes)


def stack(tensors, dim=0) -> SparseTensor:
    """Sparse tensors of one shape, along a new sparse dimension."""
    return cat([unsqueeze(tensor, dim) for tensor in tensors], dim)


# ---- of the rest


def softmax(self, dim, operator) -> SparseTensor:
    """A softmax along a dimension over the elements that are stored."""
    self, dim = coalesce(self), _wrapped(dim, self.ndim)
    count = sparse_dims(self)
    if dim >= count:
        dense = ops.softmax if operator == "_coo_softmax" else ops.log_softmax
        return like(self, dense(values_of(self), dim - count + 1))
    held, number = groups(self, [place for place in range(count) if place != dim])
    return like(self, getattr(ops, operator)(values_of(self), held, number))


def zero(self) -> SparseTensor:
    """A tensor of the same shape without elements."""
    values = values_of(self).detach().new_zeros(0, *self._sizes[sparse_dims(self) :])
    indices = _pattern.as_indices(np.zeros((sparse_dims(self), 0), np.int64))
    return sparse(values, indices, self._sizes, True)


def copy(self, src, non_blocking=False) -> SparseTensor:
    """The elements of another sparse tensor, in the dtype of this one."""
    if not (is_sparse(self) and is_sparse(src)):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    _check_same_size("copy_", self, src)
    return like(src, ops.clone(values_of(src).to(self.dtype)))


@functools.cache
def operator(name: str):
    """An operator on sparse tensors, which the tags of the table tell; None if it takes none."""
    tags = ops.library.tags(name)
    if "sparse" in tags:
        return globals()[name]
    is_elementwise = not tags.isdisjoint(("sparse_linear", "sparse_zero_to_zero"))
    return functools.partial(elementwise, name) if is_elementwise else None
