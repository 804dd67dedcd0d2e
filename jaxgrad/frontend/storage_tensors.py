"""Tensors on the memory of a storage, and the memory as a row of all its elements, which can be
resized.
"""

from __future__ import annotations

import jax

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core import strides as layouts
from ..core.aval import Aval, is_concrete, strides_of
from ..core.view_ops import plain
from ..storage.alias import Alias, Storage, detached, settle
from ..tape import handle_lock
from ..tape.tensor import Tensor, abstract_value, alias_of, held, set_alias, wrap


@no_grad()
def row_of(storage, dtype: dtypes.dtype | None = None) -> Tensor:
    """All elements of a storage as a tensor on its memory, in their order there.

    storage: as users see it (storages.py). dtype: how its bytes are read, that of the storage by
    default.

    >>> from jaxgrad.frontend.storage_tensors import row_of
    >>> x = jaxgrad.arange(4.0).reshape(2, 2).t()
    >>> row = row_of(x.storage())
    >>> row[0] = 9
    >>> x
    tensor([[9., 2.],
            [1., 3.]])
    """
    dtype = dtype or storage.dtype
    row, part = memory_row(storage._storage, dtype), storage._part
    if part is None:
        return row
    if part.start % dtype.itemsize:
        raise RuntimeError(
            f"a slice of a storage from byte {part.start} on has no elements of {dtype}, of "
            f"{dtype.itemsize} bytes: take its clone()"
        )
    start = part.start // dtype.itemsize
    return detached(row[start : start + len(part) // dtype.itemsize])


def elements_of(storage, dtype: dtypes.dtype | None, named: str = "{}") -> Tensor:
    """The elements of a storage as a tensor of a dtype: the bytes of an untyped storage are read as
    numbers of it. If it is None, it is that of the storage, and int64 for an untyped one. Raises
    RuntimeError for a storage of another dtype; `named` is the end of its text.
    """
    wanted = dtype or (storage.dtype if storage._is_typed else dtypes.int64)
    if storage._is_typed and storage.dtype is not wanted:
        raise RuntimeError(
            f"Expected a Storage of type {wanted.scalar_type} or an UntypedStorage, but got "
            + named.format(storage.dtype.scalar_type)
        )
    return row_of(storage, wanted)


@no_grad()
def memory_row(memory: Storage, dtype: dtypes.dtype, count: int | None = None) -> Tensor:
    """All elements of a memory as a tensor on it. dtype: how its bytes are read; what is left over
    at the end is not part of the row. count: resize the memory to so many elements of its dtype;
    new ones are 0.
    """
    with handle_lock.lock:
        settle(memory)
        if not _is_row(memory.aval) or count not in (None, memory.aval.shape[0]):
            _relay(memory, count)
        row = wrap(memory.array, memory.aval)
        set_alias(row, Alias(memory))
    if row.dtype is not dtype:
        itemsize = row.dtype.itemsize
        whole = row.numel() * itemsize // dtype.itemsize * dtype.itemsize
        row = (row if whole == row.numel() * itemsize else row[: whole // itemsize]).view(dtype)
    return detached(row)


def _is_row(shown: Aval) -> bool:
    return shown.ndim == 1 and shown.strides is None


def _relay(memory: Storage, count: int | None):
    shown = memory.aval
    row = in_memory_order(wrap(memory.array, shown))
    _, step = memory.owner or (None, alias_of(row.as_strided(shown.shape, strides_of(shown))).steps)
    if count is not None and count < row.numel():
        row = row[:count].clone()
    elif count is not None:
        row = ops.cat([row, row.new_zeros(count - row.numel())])
    if is_concrete(shown.mode) and isinstance(held(row), jax.core.Tracer):
        raise RuntimeError(
            f"the memory of a tensor of shape {list(shown.shape)} from outside of the function "
            "that is being compiled would be laid out anew: resize it outside, or pass a clone()"
        )
    memory.relay(held(row), plain(abstract_value(row)), step)


@no_grad()
def in_memory_order(tensor: Tensor) -> Tensor:
    """The elements in memory from the first to the last of a tensor, as a row; gaps are 0."""
    shape, strides = tensor.shape, strides_of(abstract_value(tensor))
    if layouts.is_dense(shape, strides):
        order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
        return tensor.permute(order).reshape(-1).detach()
    gaps = tensor.new_zeros(layouts.reach(shape, strides))
    return ops.as_strided_scatter(gaps, tensor, shape, strides, 0)
