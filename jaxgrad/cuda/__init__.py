"""GPUs as JAX finds them, as torch.cuda.

XLA orders the work of a device by itself, so streams and events mark no order: a stream is a
block that changes nothing, and an event is a moment at which all work was done.

>>> jaxgrad.cuda.is_available() == (jaxgrad.cuda.device_count() > 0)
True
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import NamedTuple

import jax

from .. import random as default_random
from ..core.device import (
    as_device,
    current_index,
    devices_of,
    jax_device,
    set_current_index,
    wait_for,
)
from ..core.device import device as Device
from ..frontend.legacy_types import types_on
from ..frontend.random import initial_seed as initial_seed
from ..frontend.stream import Event as _Event
from ..frontend.stream import Stream as _Stream
from ..names.not_provided import names_of
from ..tape.tensor import Tensor
from . import amp as amp
from . import nvtx as nvtx

globals().update(types_on("cuda", "torch.cuda"))

# what XLA raises where memory is short, and for all else that fails while a program runs
OutOfMemoryError = AcceleratorError = jax.errors.JaxRuntimeError


def is_available() -> bool:
    """Return whether JAX has found a GPU.

    >>> where = "cuda" if jaxgrad.cuda.is_available() else "cpu"
    >>> jaxgrad.ones(2, device=where).sum().item()
    2.0
    """
    return device_count() > 0


def manual_seed(seed: int) -> None:
    """Set the seed of the default generator, which serves all devices, where there is a GPU.
    Without one nothing is done: the numbers of the CPU do not depend on it.

    >>> _ = jaxgrad.manual_seed(3)
    >>> jaxgrad.cuda.manual_seed(4)
    >>> jaxgrad.initial_seed() == (4 if jaxgrad.cuda.is_available() else 3)
    True
    """
    if is_available():
        default_random.manual_seed(seed)


def seed() -> None:
    """Set a seed that the operating system draws; see `manual_seed`.

    >>> jaxgrad.cuda.seed()
    """
    if is_available():
        default_random.seed()


manual_seed_all, seed_all = manual_seed, seed


def device_count() -> int:
    """Return how many GPUs JAX has found.

    >>> jaxgrad.cuda.device_count() >= 0
    True
    """
    return len(devices_of("cuda"))


def is_initialized() -> bool:
    """Return whether there is a GPU: JAX has found all devices at its start.

    >>> jaxgrad.cuda.is_initialized() == jaxgrad.cuda.is_available()
    True
    """
    return is_available()


def init():
    """Do nothing if there is a GPU. Raises RuntimeError if there is none.

    >>> if jaxgrad.cuda.is_available():
    ...     jaxgrad.cuda.init()
    """
    _jax_device_of(None)


def current_device() -> int:
    """Return the index of the GPU that `device("cuda")` stands for in this thread, 0 until
    `set_device`. Raises RuntimeError if there is none.

    >>> index = jaxgrad.cuda.current_device() if jaxgrad.cuda.is_available() else 0
    >>> index
    0
    """
    _jax_device_of(None)
    return current_index("cuda")


def set_device(device):
    """Let "cuda" without an index stand for a GPU in this thread; nothing for a negative index.
    Raises RuntimeError for a GPU that does not exist.

    >>> if jaxgrad.cuda.is_available():
    ...     jaxgrad.cuda.set_device(0)
    """
    if not isinstance(device, int) or device >= 0:
        set_current_index(_wanted(device))


def get_device_name(device=None) -> str:
    """Return the name of a GPU. Raises RuntimeError if it does not exist.

    >>> name = jaxgrad.cuda.get_device_name() if jaxgrad.cuda.is_available() else ""
    >>> isinstance(name, str)
    True
    """
    return _jax_device_of(device).device_kind


def get_device_properties(device=None) -> Properties:
    """Return what JAX tells of a GPU. Raises RuntimeError if it does not exist.

    >>> if jaxgrad.cuda.is_available():
    ...     properties = jaxgrad.cuda.get_device_properties()
    ...     name, memory = properties.name, properties.total_memory
    """
    gpu = _jax_device_of(device)
    counted = gpu.memory_stats() or {}
    return Properties(
        gpu.device_kind,
        *get_device_capability(device),
        counted.get("bytes_limit", 0),
        getattr(gpu, "core_count", 0),
    )


def get_arch_list() -> list[str]:
    """Return an empty list: XLA compiles for the GPU that it finds.

    >>> jaxgrad.cuda.get_arch_list()
    []
    """
    return []


def get_device_capability(device=None) -> tuple[int, int]:
    """Return the compute capability of a GPU; (0, 0) where JAX tells none, as for those of AMD.
    Raises RuntimeError if it does not exist.

    >>> pair = jaxgrad.cuda.get_device_capability() if jaxgrad.cuda.is_available() else (0, 0)
    >>> len(pair)
    2
    """
    # a GPU of AMD has a name in place of numbers, and other platforms have nothing
    number = getattr(_jax_device_of(device), "compute_capability", "")
    major, _, minor = number.partition(".") if number[:1].isdigit() else ("0", "", "0")
    return int(major), int(minor)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU: XLA computes bfloat16 on all of them.

    >>> jaxgrad.cuda.is_bf16_supported() == jaxgrad.cuda.is_available()
    True
    """
    return is_available()


def synchronize(device=None):
    """Wait until all work that has been begun on a GPU is done. Raises RuntimeError if it does not
    exist.

    >>> y = jaxgrad.ones(3) * 2
    >>> if jaxgrad.cuda.is_available():
    ...     jaxgrad.cuda.synchronize()  # now it has been computed
    """
    wait_for(_wanted(device))


class device:
    """A block in which a GPU is the current one, in this thread; None or a negative index changes
    nothing. Raises RuntimeError for a GPU that does not exist.

    >>> if jaxgrad.cuda.is_available():
    ...     with jaxgrad.cuda.device(0):
    ...         y = jaxgrad.ones(3, device="cuda")
    """

    def __init__(self, device):
        self.idx, self.prev_idx = -1 if device is None else device, -1
        if not isinstance(self.idx, int):
            self.idx = as_device(device).index
            self.idx = current_index("cuda") if self.idx is None else self.idx

    def __enter__(self):
        self.prev_idx = current_index("cuda")
        set_device(self.idx)

    def __exit__(self, *raised):
        if self.idx >= 0:
            set_device(self.prev_idx)


class device_of(device):
    """A block in which the GPU of a tensor is the current one; one of a tensor on a CPU changes
    nothing.

    >>> with jaxgrad.cuda.device_of(jaxgrad.ones(3)):
    ...     y = jaxgrad.ones(3) * 2
    """

    def __init__(self, obj):
        super().__init__(obj.device if obj.device.type == "cuda" else None)


class Properties(NamedTuple):
    """What is known of a GPU; total_memory in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


# ---- random numbers, whose one generator is on no device


def get_rng_state(device=None) -> Tensor:
    """Return the state of the generator of all devices, a tensor of bytes.

    >>> state = jaxgrad.cuda.get_rng_state()
    >>> state.dtype, bool((state == jaxgrad.get_rng_state()).all())
    (torch.uint8, True)
    """
    return default_random.get_rng_state()


def set_rng_state(new_state: Tensor, device=None):
    """Set the state of the generator of all devices.

    >>> state = jaxgrad.cuda.get_rng_state()
    >>> first = jaxgrad.rand(3)
    >>> jaxgrad.cuda.set_rng_state(state)
    >>> bool((jaxgrad.rand(3) == first).all())
    True
    """
    default_random.set_rng_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Return the state of the generator of all devices, once for each GPU.

    >>> len(jaxgrad.cuda.get_rng_state_all()) == jaxgrad.cuda.device_count()
    True
    """
    return [get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states):
    """Set the state of the generator of all devices, to the first of a list; do nothing for an
    empty one.

    >>> jaxgrad.cuda.set_rng_state_all(jaxgrad.cuda.get_rng_state_all())
    """
    for state in list(new_states)[:1]:
        set_rng_state(state)


# ---- memory, by the allocator of JAX


def memory_stats(device=None) -> dict:
    """Return what JAX's allocator counts, in bytes; empty where it counts nothing, and where there
    is no GPU. Raises RuntimeError for a GPU that does not exist beside others.

    >>> stats = jaxgrad.cuda.memory_stats()
    >>> stats.get("bytes_in_use", 0) >= 0
    True
    """
    return dict(_jax_device_of(device).memory_stats() or {}) if is_available() else {}


def memory_allocated(device=None) -> int:
    """Return the bytes in use on a GPU.

    >>> jaxgrad.cuda.memory_allocated() >= 0  # 0 where there is no GPU
    True
    """
    return memory_stats(device).get("bytes_in_use", 0)


def max_memory_allocated(device=None) -> int:
    """Return the most bytes that were in use on a GPU at one time since the start.

    >>> jaxgrad.cuda.max_memory_allocated() >= 0  # 0 where there is no GPU
    True
    """
    return memory_stats(device).get("peak_bytes_in_use", 0)


def memory_reserved(device=None) -> int:
    """Return the bytes that JAX has taken of a GPU's memory.

    >>> jaxgrad.cuda.memory_reserved() >= 0  # 0 where there is no GPU
    True
    """
    stats = memory_stats(device)
    return stats.get("pool_bytes", stats.get("bytes_reserved", memory_allocated(device)))


def mem_get_info(device=None) -> tuple[int, int]:
    """Return the bytes that JAX may still take, and all that it may take. Raises RuntimeError if
    the GPU does not exist.

    >>> free, total = jaxgrad.cuda.mem_get_info() if jaxgrad.cuda.is_available() else (0, 0)
    >>> 0 <= free <= total
    True
    """
    stats = _jax_device_of(device).memory_stats() or {}
    limit = stats.get("bytes_limit", 0)
    return limit - stats.get("bytes_in_use", 0), limit


def max_memory_reserved(device=None) -> int:
    """Return the most bytes that JAX has taken of a GPU's memory.

    >>> jaxgrad.cuda.max_memory_reserved() >= 0  # 0 where there is no GPU
    True
    """
    return memory_stats(device).get("peak_pool_bytes", memory_reserved(device))


def reset_peak_memory_stats(device=None):
    """Do nothing: JAX counts the peak from the start of the process.

    >>> jaxgrad.cuda.reset_peak_memory_stats()
    """


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_summary(device=None, abbreviated: bool = False) -> str:
    """Return what JAX's allocator counts, as text. Raises RuntimeError if the GPU does not exist.

    >>> text = jaxgrad.cuda.memory_summary() if jaxgrad.cuda.is_available() else ""
    >>> isinstance(text, str)
    True
    """
    counted = _jax_device_of(device).memory_stats() or {}
    return "\n".join(f"{name:32}{number:>20,}" for name, number in sorted(counted.items()))


def empty_cache():
    """Collect garbage: JAX keeps its memory for later arrays.

    >>> jaxgrad.cuda.empty_cache()
    """
    gc.collect()


def ipc_collect():
    """Do nothing: arrays are not shared between processes.

    >>> jaxgrad.cuda.ipc_collect()
    """


# ---- streams and events


class Stream(_Stream):
    """A block that changes nothing: XLA orders the work of a GPU.

    >>> with jaxgrad.cuda.Stream() as stream:
    ...     y = jaxgrad.ones(3) * 2
    >>> stream.device
    device(type='cuda')
    """

    @staticmethod
    def _device(device) -> Device:
        return _wanted(device)


class Event(_Event):
    """A moment at which all work of the first GPU was done.

    >>> first, second = [jaxgrad.cuda.Event(enable_timing=True) for _ in range(2)]
    >>> if jaxgrad.cuda.is_available():
    ...     first.record(), second.record()
    ...     milliseconds = first.elapsed_time(second)
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        super().__init__("cuda")


def stream(stream: Stream | None) -> Stream:
    """Return a block that changes nothing: the stream itself, a new one for None.

    >>> with jaxgrad.cuda.stream(jaxgrad.cuda.Stream()):
    ...     y = jaxgrad.ones(3) * 2
    """
    return Stream() if stream is None else stream


def current_stream(device=None) -> Stream:
    """Return a stream of a GPU.

    >>> jaxgrad.cuda.current_stream().device
    device(type='cuda')
    """
    return Stream(device)


default_stream = current_stream
StreamContext = stream


def set_stream(stream: Stream):
    """Do nothing: the work of a device is in order.

    >>> jaxgrad.cuda.set_stream(jaxgrad.cuda.Stream())
    """


def is_current_stream_capturing() -> bool:
    """Return False: a compiled function is one program, which no stream records.

    >>> jaxgrad.cuda.is_current_stream_capturing()
    False
    """
    return False


def _wanted(device) -> Device:
    if device is None:
        return Device("cuda")
    target = Device("cuda", device) if isinstance(device, int) else as_device(device)
    if target.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {target}")
    return target


def _jax_device_of(device) -> jax.Device:
    return jax_device(_wanted(device))


# PyTorch's modules of these names have some of the functions of this one
memory = random = streams = sys.modules[__name__]

_find, __dir__ = names_of(__name__)


def __getattr__(name):
    if name == "_initialized":  # programs look at it before they save the random state of GPUs
        return is_initialized()
    if name == "default_generators":  # one for each GPU: JAX has one for all of them
        return (default_random.default_generator,) * device_count()
    if name == "jiterator":  # few programs use it
        return importlib.import_module(f"{__name__}.jiterator")
    return _find(name)
