"""Sums, products, quotients and powers of sparse tensors.

Each node has the name of the operator, as in PyTorch. Only outside of a trace does a pattern
change; in a trace a sum keeps the elements of both operands.
"""

from __future__ import annotations

import numbers

import numpy as np

from .. import ops
from ..core import promotion
from ..tape.sparse_tensor import Padding, is_sparse, sparse, values_of
from ..tape.tensor import Tensor
from . import _pattern, _refusals
from ._elements import (
    check_same_size,
    elementwise,
    is_coalesced,
    joined_padding,
    like,
    like_or_nothing,
    merged,
    ndim_of,
    padded,
    sums_at,
    to_dense,
)
from ._pattern import known, needed, nnz, sparse_sizes
from ._shapes import broadcast_to


def add(self, other, *, alpha=1, name="add"):
    """`self + alpha * other` for two sparse tensors, or a dense and a sparse one."""
    if not is_sparse(self):
        return _add_to_dense(self, other, alpha if name == "add" else -alpha)
    if not is_sparse(other):
        raise RuntimeError(
            f"{name}(sparse, dense) is not supported. Use {name}(dense, sparse) instead."
        )
    self, other = _with_equal_dims(self, other)
    check_same_size(name, self, other)
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


def _with_equal_dims(self, other):
    """Two tensors with equally many sparse dimensions, if one has no elements, which may have
    any.
    """
    if self.shape != other.shape or _pattern.sparse_dims(self) == _pattern.sparse_dims(other):
        return self, other
    if not nnz(self):
        return _without_elements_like(self, other), other
    return (self, _without_elements_like(other, self)) if not nnz(other) else (self, other)


def _without_elements_like(self, other):
    """A tensor without elements, with the sparse dimensions of another one of its shape."""
    count = _pattern.sparse_dims(other)
    values = values_of(self).reshape(0, *self._sizes[count:])
    return sparse(values, _pattern.as_indices(np.zeros((count, 0))), self._sizes, True)


def sub(self, other, *, alpha=1):
    """`self - alpha * other` for two sparse tensors, or a dense and a sparse one."""
    return add(self, other, alpha=alpha, name="sub")


def _united(self, other):
    """The `is_coalesced` or `Padding` of the sum of two tensors with the same indices."""
    if self._coalesced is other._coalesced:
        return self._coalesced
    if not any(map(_pattern.has_padding, (self, other))):
        return self._coalesced and other._coalesced
    present = _pattern.present(self) | _pattern.present(other)
    return Padding(present, all(map(is_coalesced, (self, other))))


def _add_to_dense(self, other, alpha):
    if not isinstance(self, Tensor) or self.shape != other.shape:
        shape = list(getattr(self, "shape", ()))
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {shape} while "
            f"other has size {list(other.shape)}: a sparse tensor never broadcasts"
        )
    dtype = promotion.promote_types(self.dtype, other.dtype)
    values = values_of(other).to(dtype)
    return ops._coo_add_to(self.to(dtype), values, other._indices_held, alpha)


def rsub(self, other, alpha=1):
    """`other - alpha * self`."""
    return sub(other, self, alpha=alpha)


def mul(self, other):
    """The product of each element with a number, or with the element of another tensor."""
    if not is_sparse(self):
        self, other = other, self
    if is_sparse(self) and is_sparse(other) and 0 in (self.ndim, other.ndim):
        self, other = (other, self) if self.ndim == 0 else (self, other)
        other = to_dense(other)
    if isinstance(other, numbers.Number) or (not is_sparse(other) and not ndim_of(other)):
        values = values_of(self)
        if not self.ndim and isinstance(other, Tensor):
            # its values have a dimension, and their dtype would prevail
            values = values.to(promotion.promote_types(self.dtype, other.dtype))
        return like_or_nothing(self, ops.mul(values, other))
    if not is_sparse(other):
        shape = promotion.broadcast_shapes("mul", self.shape, other.shape)
        self = self if self.shape == shape else broadcast_to(self, shape)
        at_indices = ops._coo_mask(ops.expand(other, shape), self._indices_held)
        return like_or_nothing(self, ops.mul(values_of(self), at_indices))
    self, other = _with_equal_extents(self, other)
    check_same_size("mul", self, other)
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


def _with_equal_extents(self, other):
    """Two tensors with their dense dimensions broadcast, if the sparse ones are equal."""
    if self.shape == other.shape or sparse_sizes(self) != sparse_sizes(other):
        return self, other
    shape = promotion.broadcast_shapes("mul", self.shape, other.shape)
    return broadcast_to(self, shape), broadcast_to(other, shape)


def _traced_product(self, other):
    """The product of the elements at common indices, where these are not known."""
    here, there = _pattern.present(self), _pattern.present(other)
    there = sums_at(other, there.to(self._indices_held.dtype), self) > 0
    values = ops.mul(values_of(self), sums_at(other, values_of(other), self))
    return padded(self, values, here & there)


def outer(self, vec2):
    """The products of the elements of a dense and a sparse vector."""
    if is_sparse(self):
        raise _refusals.refusal("outer", self.layout)
    for name, operand in (("self", self), ("vec2", vec2)):
        if operand.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {operand.ndim}-D")
    return mul(ops.unsqueeze(self, 1), vec2)


def div(self, other, *, rounding_mode=None):
    """The quotient of each element and a number."""
    _check_divisor("division", self, other)
    if rounding_mode is None:
        return like_or_nothing(self, ops.div(values_of(self), other))
    self = merged(self)
    return like_or_nothing(self, ops.div(values_of(self), other, rounding_mode=rounding_mode))


def floor_divide(self, other):
    """The quotient of each element and a number, rounded down."""
    _check_divisor("floor division", self, other)
    self = merged(self)
    return like_or_nothing(self, ops.floor_divide(values_of(self), other))


def _check_divisor(what, self, other):
    is_number = isinstance(other, numbers.Number) or (not is_sparse(other) and not ndim_of(other))
    if not is_sparse(self) or not is_number:
        raise RuntimeError(
            f"Sparse {what} requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(getattr(other, 'shape', ()))} for divisor)"
        )


def pow(self, exponent):
    """The power of each element with a positive number as exponent."""
    if not is_sparse(self) or not isinstance(exponent, numbers.Number):
        raise NotImplementedError(
            "Could not run 'aten::pow.Tensor_Tensor' with arguments from the 'SparseCPU' backend: "
            "a sparse tensor takes a number as exponent"
        )
    if not exponent > 0:
        raise RuntimeError(
            f"pow: a sparse tensor takes a positive exponent, not {exponent}: 0 ** {exponent} is "
            "not 0"
        )
    return elementwise("pow", self, exponent)
