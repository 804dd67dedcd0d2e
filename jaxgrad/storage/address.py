"""The addresses of storages: where their bytes are.

JAX's arrays never change, and a write makes another array elsewhere. So once code asks for the
address of a storage, the storage keeps the memory at that address, its home. If code asks again
after a write, the new values are copied to the home, and the address stays the same. The home of a
small storage on the host is a copy made for this purpose, so its address always stays. The home of
another storage is one of its arrays, and its address stays while nothing else reads that array.
"""

from __future__ import annotations

import functools
import operator
import types
import weakref
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..core import strides as layouts
from ..core.aval import META, strides_of
from ..core.jax_state import keeps_jax_state
from ..core.pending import value_of
from ..core.reference_counts import Held


class Home(NamedTuple):
    """The memory at the address of a storage: the memory of an array. source: a weak reference to
    the array of the storage whose values it has.
    """

    memory: jax.Array | np.ndarray
    source: weakref.ref


# The home of a storage of at most so many bytes is a copy.
COPIED = 1 << 20

# the storage whose home is at an address, since different storages may have one array
_owners: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


def address_of(storage) -> int:
    """The address of the bytes of a storage that has no write pending: of its elements in the order
    of its strides. It is valid until the next write, or the end of the storage, and the bytes are
    those of the storage at this moment. 0 if there are no bytes, as on the device meta. The caller
    holds the lock.

    Raises RuntimeError if no single memory has the bytes: under a trace, and for an array that is
    on several devices.
    """
    shown = storage.aval
    if shown.mode == META or not layouts.reach(shown.shape, strides_of(shown)):
        return 0
    array = value_of(storage.array)
    check_address(array)
    if storage.home is None or storage.home.source() is not array:
        memory = array if _is_in_order(shown) else _ordered(array, strides_of(shown))
        if storage.home is not None:
            memory = _moved(storage, memory)
        elif memory.nbytes <= COPIED and _is_on_host(memory):
            memory = np.array(memory)
        if _is_home_of_another(storage, _pointer(memory)):
            memory = _copied(memory)
        storage.home = Home(jax.block_until_ready(memory), weakref.ref(array))
        _owners[_pointer(memory)] = storage
    return _pointer(storage.home.memory)


def check_address(array):
    """Raise RuntimeError if no one memory has the bytes of an array."""
    if isinstance(array, jax.core.Tracer):
        raise RuntimeError(
            "data_ptr() inside of a function that is being traced: there is no memory yet. Call it "
            "outside; x.is_set_to(y) and x._is_view() tell what shares memory"
        )
    if isinstance(array, jax.Array) and len(array.sharding.device_set) > 1:
        raise RuntimeError(
            f"data_ptr() of an array on {len(array.sharding.device_set)} devices: it has no one "
            "address. to_local() gives the part of this process"
        )


def in_memory_order(values: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """The elements of an array as memory holds them that has these strides; gaps are 0."""
    if layouts.is_dense(values.shape, strides):
        outermost_first = sorted(range(values.ndim), key=lambda dim: -strides[dim])
        return values.transpose(outermost_first).reshape(-1)
    memory = np.zeros(layouts.reach(values.shape, strides), values.dtype)
    shown = np.lib.stride_tricks.as_strided(
        memory, values.shape, [step * values.itemsize for step in strides]
    )
    shown[...] = values
    return memory


def _is_home_of_another(storage, pointer: int) -> bool:
    owner = _owners.get(pointer, storage)
    home = None if owner is storage else owner.home
    return home is not None and _pointer(home.memory) == pointer


def _is_in_order(shown) -> bool:
    return shown.strides is None or layouts.is_contiguous(shown.shape, shown.strides)


def _is_on_host(memory) -> bool:
    return isinstance(memory, np.ndarray) or next(iter(memory.devices())).platform == "cpu"


def _pointer(memory) -> int:
    if isinstance(memory, np.ndarray):
        return memory.ctypes.data
    return memory.unsafe_buffer_pointer()


@keeps_jax_state
def _ordered(array, strides):
    values = in_memory_order(np.asarray(array, order="C"), strides)
    if isinstance(array, np.ndarray):
        return values
    with jax.enable_x64(True):
        return jax.device_put(values, array.sharding)


@keeps_jax_state
def _copied(memory):
    if isinstance(memory, np.ndarray):
        return memory.copy()
    with jax.enable_x64(True):
        return jnp.array(memory, copy=True)


_MEMORY = Held(
    operator.attrgetter("home.memory"),
    types.SimpleNamespace(home=types.SimpleNamespace(memory=object())),
)


def _moved(storage, memory):
    """The values of a memory, moved to the home of a storage; the memory itself if others read the
    home, or it has another form.
    """
    is_free = _MEMORY.is_sole(storage)
    home = storage.home.memory
    if (home.shape, home.dtype) != (memory.shape, memory.dtype):
        return memory
    if isinstance(home, np.ndarray):
        np.copyto(home, memory)
        return home
    storage.home = None
    return _move(home, memory) if is_free and home.sharding == memory.sharding else memory


@keeps_jax_state
def _move(home, memory):
    with jax.enable_x64(True):
        return _moving()(home, memory)


@functools.cache
def _moving():
    def move(home, memory):
        return lax.dynamic_update_slice(home, memory, (0,) * memory.ndim)

    # XLA gives the result the memory of what is donated
    return jax.jit(move, donate_argnums=0)
