"""Sums, norms and softmax of sparse tensors."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import dtypes
from ..tape.sparse_tensor import SparseTensor, is_sparse, sparse, values_of
from ..tape.tensor import Tensor
from . import _pattern, _refusals
from ._elements import coalesce, like, merged, to_dense, wrapped
from ._pattern import groups, known, nnz, sparse_dims
from ._shapes import unsqueeze


def sum(self, dim=None, keepdim=False, *, dtype=None):
    """The sum over all dimensions, a dense tensor, or over some."""
    self = self if dtype is None else like(self, values_of(self).to(dtype))
    if dim is None:
        return ops.sum(values_of(self))
    if not isinstance(dim, int) and not len(dim):
        return like(self, _summed(values_of(self)))
    total = sum_over(self, dim)
    if not keepdim:
        return total
    dims = [dim] if isinstance(dim, int) else dim
    for place in sorted(wrapped(one, self.ndim) for one in dims):
        total = unsqueeze(total, place) if is_sparse(total) else ops.unsqueeze(total, place)
    return total


def sum_in_dtype(self, dim=None, dtype=None):
    """The sum over dimensions, which adds integers in their dtype where the result is sparse."""
    total = sum(self, dim, dtype=dtype)
    if not is_sparse(total):
        return total
    dense_dims = [tensor.ndim - sparse_dims(tensor) for tensor in (self, total)]
    return total.to(dtype or self.dtype) if len({*dense_dims}) == 1 else total


def _summed(values):
    """Values in the dtype of their sums."""
    is_inexact = values.dtype.is_floating_point or values.dtype.is_complex
    return ops.alias(values) if is_inexact else values.to(dtypes.int64)


def any(self, dim=None, keepdim=False) -> Tensor:
    """Whether an element is not 0."""
    if dim is not None:
        raise _refusals.refusal("any.dim", self.layout)
    return ops.any(values_of(merged(self)))


def linalg_vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """The norm of all elements that are stored."""
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    dims = range(self.ndim) if dim is None else [wrapped(place, self.ndim) for place in dim]
    if len(dims) and set(dims) != set(range(self.ndim)):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
            f"contain all dimensions of the input, not {list(dims)}"
        )
    if dtype is not None:
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    return ops.linalg_vector_norm(values_of(merged(self)), ord)


def dist(self, other, p=2) -> Tensor:
    """The norm of the difference of two sparse tensors, or of a dense and a sparse one."""
    return ops.linalg_vector_norm(ops.sub(self, other), p)


def l1_loss(self, target, reduction=1) -> Tensor:
    """The absolute differences, and with `reduction` 2 their sum; of dense tensors the mean too."""
    differences = ops.abs(ops.sub(self, target))
    return (lambda x: x, ops.mean, ops.sum)[reduction](differences)


def kl_div(self, target, reduction=1, *, log_target=False) -> Tensor:
    """The divergence of dense tensors of the same numbers."""
    return ops.kl_div(_dense(self), _dense(target), reduction, log_target=log_target)


def soft_margin_loss(self, target, reduction=1) -> Tensor:
    """The loss of dense tensors of the same numbers."""
    return ops.soft_margin_loss(_dense(self), _dense(target), reduction)


def cross_entropy_loss(self, target, *arguments, **options) -> Tensor:
    """The loss of dense logits and sparse probabilities."""
    if is_sparse(self):
        raise _refusals.refusal("_log_softmax", self.layout)
    return ops.cross_entropy_loss(self, _dense(target), *arguments, **options)


def _dense(value):
    return to_dense(value) if is_sparse(value) else value


def sum_over(self: SparseTensor, dim) -> Tensor:
    """The sum over dimensions: sparse, or dense if no sparse dimension is left."""
    dims = [wrapped(place, self.ndim) for place in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        most = max(dims, key=dims.count)
        raise RuntimeError(f"dim {most} appears multiple times in the list of dims")
    dims, count = set(dims or range(self.ndim)), sparse_dims(self)
    values = _summed(values_of(self))
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


def softmax(self, dim, operator) -> SparseTensor:
    """A softmax along a dimension over the elements that are stored."""
    self, dim = coalesce(self), wrapped(dim, self.ndim)
    count = sparse_dims(self)
    if dim >= count:
        dense = ops.softmax if operator == "_coo_softmax" else ops.log_softmax
        return like(self, dense(values_of(self), dim - count + 1))
    held, number = groups(self, [place for place in range(count) if place != dim])
    return like(self, getattr(ops, operator)(values_of(self), held, number))
