"""Sparse gradients of `gather(sparse_grad=True)`."""

from __future__ import annotations

from ... import ops
from ...ops import dispatch
from .sparse_gradient import give


def _prepare_gather(call):
    """Let calls of `gather` with sparse_grad=True send sparse gradients to leaves."""
    _, dim, _, sparse_grad = call.structure
    if sparse_grad:
        call.attach = lambda leaves, results: give(
            results[0], "GatherBackward0", of_gather(leaves, dim)
        )


def install():
    """Prepare the calls of `gather`."""
    dispatch.prepare_calls("gather", _prepare_gather)


def of_gather(leaves, dim: int):
    """What computes the sparse gradient of `gather(leaves[0], dim, leaves[1])`."""
    shape, index = leaves[0].shape, leaves[1].detach()

    def of_lookup(gradient):
        dims = range(len(shape))
        if not len(shape):
            return shape, index.new_zeros(0, 1), gradient.reshape(1), False
        rows = [index if axis == dim % len(shape) else _positions(index, axis) for axis in dims]
        indices = ops.stack([row.reshape(-1).long() for row in rows])
        return shape, indices, gradient.reshape(-1), False

    return of_lookup


def _positions(index, dim):
    """The position of each element of `index` along a dimension."""
    return ops.cumsum(index.new_ones(index.shape), dim) - 1
