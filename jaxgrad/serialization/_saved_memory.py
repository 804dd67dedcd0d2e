"""The memory that a saved tensor shows: tensors that share memory share it in the file too."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from ..core import strides as layouts
from ..core.aval import Aval, strides_of
from ..core.copy_slices import in_order
from ..core.device import device_of
from ..core.pending import value_of
from ..core.view_ops import has_layout
from ..frontend.memory_methods import offset_of
from ..frontend.storages import in_memory_order
from ..storage.alias import flags_of, settle
from ..tape import handle_lock, mode
from ..tape.tensor import Tensor, abstract_value, alias_of, concrete
from ._memory import Place

DIFFERENT_DTYPES = (
    "Cannot save multiple tensors or storages that view the same data as different types: {} and "
    "{}. Save a clone() of one of them"
)


class SavedMemory(NamedTuple):
    """The memory of saved tensors. key: tensors with the same one share it."""

    key: int
    array: jax.Array
    shown: Aval

    def elements(self, dtype) -> np.ndarray:
        """All elements, in PyTorch's order, as a flat array."""
        values = np.asarray(self.array, order="C")
        return in_memory_order(values, strides_of(self.shown)).view(dtype.numpy)

    def count(self, dtype) -> int:
        """The number of elements of a dtype."""
        shown = self.shown
        size = layouts.reach(shown.shape, strides_of(shown)) * shown.dtype.itemsize
        return size // dtype.itemsize

    @property
    def location(self) -> str:
        """The device, in PyTorch's words."""
        device = device_of(self.array)
        return str(device) if device.type == "cuda" else "cpu"


class HeldBytes(NamedTuple):
    """Elements that belong to one tensor alone."""

    key: int
    array: np.ndarray
    location: str = "cpu"

    def elements(self, dtype) -> np.ndarray:
        """All bytes."""
        return self.array.reshape(-1).view(np.uint8)

    def count(self, dtype) -> int:
        """The number of bytes."""
        return self.array.nbytes


def memory_of(tensor: Tensor) -> tuple[SavedMemory, Place]:
    """The memory of a tensor, and what the tensor shows of it. Raises RuntimeError under a trace.

    It is the tensor's own if the tensor shows it in a way that no file can express.
    """
    array, alias, shown = concrete(tensor, "save"), alias_of(tensor), abstract_value(tensor)
    flags = None
    # under a trace the memory may hold more than the trace has captured
    if alias is not None and mode.scope.get() is None:
        flags = flags_of(alias.place) if _has_layout(alias.place) else None
    if flags is None:
        place = Place(shown.dtype, 0, tuple(shown.shape), strides_of(shown))
        return SavedMemory(id(tensor), array, shown), place
    with handle_lock.lock:
        settle(alias.storage)
        memory = SavedMemory(id(alias.storage), value_of(alias.storage.array), alias.storage.aval)
    place = Place(shown.dtype, offset_of(tensor), tuple(shown.shape), strides_of(shown), *flags)
    return memory, place


def memory_of_storage(storage) -> SavedMemory:
    """The memory of a storage."""
    shared = (storage if storage._part is None else storage.clone())._storage
    with handle_lock.lock:
        settle(shared)
        return SavedMemory(storage._cdata, value_of(shared.array), shared.aval)


def _has_layout(place) -> bool:
    return all(has_layout(call) for call, _ in in_order(place))
