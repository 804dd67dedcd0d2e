"""Tensors on the memory of a storage."""

from __future__ import annotations

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..storage.alias import Alias, settle
from ..tape import handle_lock
from ..tape.tensor import Tensor, set_alias, wrap
from .storages import ReadOnlyStorage


@no_grad()
def row_of(storage: ReadOnlyStorage, dtype: dtypes.dtype | None = None) -> Tensor:
    """All elements of a storage as a tensor on its memory, in their order there.

    dtype: how its bytes are read, that of the storage by default.

    >>> from jaxgrad.frontend.storage_tensors import row_of
    >>> x = jaxgrad.arange(4.0).reshape(2, 2).t()
    >>> row = row_of(x.storage())
    >>> row[0] = 9
    >>> x
    tensor([[9., 2.],
            [1., 3.]])
    """
    shared = storage._storage
    with handle_lock.lock:
        settle(shared)
        owner = wrap(shared.array, shared.aval)
        set_alias(owner, Alias(shared))
    row = owner.as_strided((storage.nbytes() // owner.dtype.itemsize,), (1,), 0)
    dtype = dtype or storage.dtype
    return (row if row.dtype is dtype else row.view(dtype)).detach()
