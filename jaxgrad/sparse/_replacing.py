"""Writes that give a sparse tensor other elements: on its pattern, or with a new one."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..storage.alias import assign, detached
from ..tape import interception
from ..tape.mode import RECORD, current_mode
from ..tape.sparse_tensor import SparseTensor, sparse, values_of
from ..tape.tensor import (
    current,
    has_tangent,
    is_tracked,
    known_leaf_state,
    node_or_mark,
    restore_state,
    set_tracked,
    state_of,
)
from ..tape.version_counter import counter_of
from . import _pattern


def replace(target: SparseTensor, source: SparseTensor, on_memory: bool = False):
    """Give a sparse tensor the elements of another one of its shape.

    on_memory: whether the write shows in tensors that share the memory of the target.
    """
    is_recorded = current_mode.get() is RECORD
    if is_recorded and is_tracked(target) and not is_tracked(source):
        raise NotImplementedError(
            "a constant is written into a sparse tensor that requires grad: write in no_grad()"
        )
    why = unchangeable(target, is_recorded)
    if source._indices_held is target._indices_held and (on_memory or why):
        assign(target, values_of(source), is_recorded)
        return
    if why:
        raise RuntimeError(f"a write in place changes the pattern of a sparse tensor {why}")
    write_pattern(target, source)


def unchangeable(target: SparseTensor, is_recorded: bool) -> str | None:
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
    if unchangeable(target, False) or target.grad_fn is not None:
        detached(target).zero_()
    else:
        write_pattern(target, empty)
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
    stays_leaf = is_tracked(target) and not is_tracked(source)
    restore_state(target, state_of(source))
    target._indices_held, target._coalesced = source._indices_held, source._coalesced
    target._sizes, target._kind = source._sizes, source._kind
    if stays_leaf:
        set_tracked(target, True)


def write_pattern(target: SparseTensor, source: SparseTensor):
    """`give_pattern`, which counts as a write."""
    give_pattern(target, source)
    counter_of(target).count()


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


def resized(self: SparseTensor, size, sparse_dim: int) -> SparseTensor:
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


def without_elements(self: SparseTensor, size, sparse_dim: int) -> SparseTensor:
    values = values_of(self).detach().new_zeros(0, *size[sparse_dim:])
    return sparse(values, _pattern.as_indices(np.zeros((sparse_dim, 0), np.int64)), size, True)
