"""GPUs as JAX finds them, as torch.cuda.

XLA orders the work of a device by itself, so streams and events mark no order: a stream is a
block that changes nothing, and an event is a moment at which all work was done.

>>> jaxgrad.cuda.is_available() == (jaxgrad.cuda.device_count() > 0)
True
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import warnings
from typing import NamedTuple

import jax

from .. import random as default_random
from ..core import fork
from ..core.device import (
    as_device,
    current_index,
    devices_of,
    jax_device,
    set_current_index,
    wait_for,
)
from ..core.device import device as Device
from ..core.out_of_memory import OutOfMemoryError as OutOfMemoryError
from ..core.tracebacks import users_stacklevel
from ..frontend.legacy_types import CUDA_TYPES
from ..frontend.memory_stats import nested, summary_of, with_pytorch_names
from ..frontend.random import initial_seed as initial_seed
from ..frontend.stream import Event as _Event
from ..frontend.stream import Stream as _Stream
from ..names.not_provided import names_of
from ..tape.tensor import Tensor
from . import _utils as _utils
from . import amp as amp
from . import nvtx as nvtx
from ._sensors import clock_rate as clock_rate
from ._sensors import device_memory_used as device_memory_used
from ._sensors import list_gpu_processes as list_gpu_processes
from ._sensors import memory_usage as memory_usage
from ._sensors import power_draw as power_draw
from ._sensors import temperature as temperature
from ._sensors import utilization as utilization

globals().update(CUDA_TYPES)

# what XLA raises for all that fails while a program runs
AcceleratorError = jax.errors.JaxRuntimeError


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


def _is_in_bad_fork() -> bool:
    return fork.is_forked and is_available()


def _lazy_call(function):
    """Call a function where there is a GPU: all are there from the start."""
    if is_available():
        function()


def init():
    """Do nothing if there is a GPU. Raises RuntimeError if there is none.

    >>> if jaxgrad.cuda.is_available():
    ...     jaxgrad.cuda.init()
    """
    _jax_device_of(None)


_lazy_init = init


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


def get_gencode_flags() -> str:
    """Return an empty text: XLA compiles for the GPU that it finds.

    >>> jaxgrad.cuda.get_gencode_flags()
    ''
    """
    return ""


def can_device_access_peer(device, peer_device) -> bool:
    """Return whether JAX tells that a GPU reads the memory of another: False. Raises RuntimeError
    if one of them does not exist.

    >>> if jaxgrad.cuda.device_count() > 1:
    ...     direct = jaxgrad.cuda.can_device_access_peer(0, 1)  # False
    """
    for place in device, peer_device:
        _jax_device_of(place)
    return False


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


def is_tf32_supported() -> bool:
    """Return whether the current GPU multiplies in TF32, as those of NVIDIA do from 8.0 on.

    >>> jaxgrad.cuda.is_tf32_supported() == (
    ...     jaxgrad.cuda.is_available() and jaxgrad.cuda.get_device_capability() >= (8, 0)
    ... )
    True
    """
    return is_available() and get_device_capability() >= (8, 0)


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
            self.idx = _wanted(device).index
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
    """Return what JAX's allocator counts, in bytes, under its names and PyTorch's, such as
    "allocated_bytes.all.current"; empty where it counts nothing, and where there is no GPU. Raises
    RuntimeError for a GPU that does not exist beside others.

    >>> stats = jaxgrad.cuda.memory_stats()
    >>> stats.get("bytes_in_use", 0) >= 0
    True
    """
    return with_pytorch_names(_jax_device_of(device).memory_stats()) if is_available() else {}


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


def memory_stats_as_nested_dict(device=None) -> dict:
    """Return `memory_stats` with a dict for each part of a name.

    >>> stats = jaxgrad.cuda.memory_stats_as_nested_dict()
    >>> stats.get("allocated_bytes", {}).get("all", {}).get("current", 0) >= 0
    True
    """
    return nested(memory_stats(device))


def host_memory_stats() -> dict:
    """Return an empty dict: JAX counts no memory of the host.

    >>> jaxgrad.cuda.host_memory_stats()
    {}
    """
    return {}


host_memory_stats_as_nested_dict = host_memory_stats


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


def reset_peak_host_memory_stats():
    """Do nothing: JAX counts no memory of the host.

    >>> jaxgrad.cuda.reset_peak_host_memory_stats()
    """


reset_accumulated_host_memory_stats = reset_peak_host_memory_stats


def memory_cached(device=None) -> int:
    """`memory_reserved`; warns that this name is deprecated."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device=None) -> int:
    """`max_memory_reserved`; warns that this name is deprecated."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def _renamed(old, new):
    warnings.warn(
        f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`",
        FutureWarning,
        stacklevel=users_stacklevel(),
    )


def get_per_process_memory_fraction(device=None) -> float:
    """Return the part of a GPU's memory that JAX takes at its start: that of the environment
    variable XLA_PYTHON_CLIENT_MEM_FRACTION, 0.75 without it. Raises RuntimeError if the GPU does
    not exist.

    >>> if jaxgrad.cuda.is_available():
    ...     part = jaxgrad.cuda.get_per_process_memory_fraction()
    """
    _jax_device_of(device)
    return float(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.75"))


def set_per_process_memory_fraction(fraction: float, device=None):
    """Warn where JAX has taken another part of the memory, which it does at its start.

    Set the environment variable XLA_PYTHON_CLIENT_MEM_FRACTION before. Raises TypeError for
    anything but a float, ValueError for one outside of 0 to 1, RuntimeError if the GPU does not
    exist.

    >>> if jaxgrad.cuda.is_available():
    ...     jaxgrad.cuda.set_per_process_memory_fraction(0.75)
    """
    before = get_per_process_memory_fraction(device)
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    if fraction != before:
        warnings.warn(
            f"JAX has taken {before} of the memory of the GPU at its start: set the environment "
            f"variable XLA_PYTHON_CLIENT_MEM_FRACTION={fraction} before",
            stacklevel=users_stacklevel(),
        )


def get_allocator_backend() -> str:
    """Return "xla": JAX's allocator has the memory.

    >>> jaxgrad.cuda.get_allocator_backend()
    'xla'
    """
    return "xla"


def get_sync_debug_mode() -> int:
    """Return what `set_sync_debug_mode` has set. Raises RuntimeError if there is no GPU.

    >>> mode = jaxgrad.cuda.get_sync_debug_mode() if jaxgrad.cuda.is_available() else 0
    >>> mode
    0
    """
    _jax_device_of(None)
    guard = jax.config.jax_transfer_guard_device_to_host
    return _SYNC_GUARDS.index(guard) if guard in _SYNC_GUARDS else 0


def set_sync_debug_mode(debug_mode: int | str):
    """Let a read of numbers of a GPU, such as `item()`, be reported: JAX's guard of transfers from
    devices.

    debug_mode: 0 or "default"; 1 or "warn", which JAX logs; 2 or "error", which raises. Raises
    RuntimeError if there is no GPU, and for another mode.

    >>> if jaxgrad.cuda.is_available():
    ...     jaxgrad.cuda.set_sync_debug_mode("default")
    """
    _jax_device_of(None)
    modes = "default", "warn", "error"
    if debug_mode not in (*modes, 0, 1, 2):
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
            f"{debug_mode}"
        )
    number = modes.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    jax.config.update("jax_transfer_guard_device_to_host", _SYNC_GUARDS[number])


_SYNC_GUARDS = "allow", "log", "disallow"


def memory_summary(device=None, abbreviated: bool = False) -> str:
    """Return what JAX's allocator counts, as a table. Raises RuntimeError if the GPU does not
    exist.

    >>> text = jaxgrad.cuda.memory_summary() if jaxgrad.cuda.is_available() else ""
    >>> isinstance(text, str)
    True
    """
    place = _wanted(device)
    index = current_index("cuda") if place.index is None else place.index
    return summary_of(_jax_device_of(device).memory_stats(), index)


def empty_cache():
    """Collect garbage: JAX keeps its memory for later arrays.

    >>> jaxgrad.cuda.empty_cache()
    """
    gc.collect()


def ipc_collect():
    """Do nothing: arrays are not shared between processes.

    >>> jaxgrad.cuda.ipc_collect()
    """


def memory_snapshot(*args, **kwargs):
    """Raise NotImplementedError: JAX records no history of memory.

    `jax.profiler.save_device_memory_profile` writes which code holds the memory of a device.
    """
    raise NotImplementedError(
        "JAX records no history of memory: jax.profiler.save_device_memory_profile(file) writes "
        "which code holds the memory of a device"
    )


_record_memory_history = _snapshot = _dump_snapshot = memory_snapshot


# ---- streams and events


class Stream(_Stream):
    """A block in which the GPU of the stream is the current one: XLA orders its work.

    >>> with jaxgrad.cuda.Stream() as stream:
    ...     y = jaxgrad.ones(3) * 2
    >>> stream.device
    device(type='cuda', index=0)
    """

    cuda_stream = 0  # CUDA's handle of its default stream

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the least and the greatest priority, which have no effect."""
        return 0, -1

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
    """Return a block in which the GPU of a stream is the current one: the stream itself, one of
    the current GPU for None.

    >>> with jaxgrad.cuda.stream(jaxgrad.cuda.Stream()):
    ...     y = jaxgrad.ones(3) * 2
    """
    return Stream() if stream is None else stream


def current_stream(device=None) -> Stream:
    """Return a stream of a GPU.

    >>> jaxgrad.cuda.current_stream().device
    device(type='cuda', index=0)
    """
    return Stream(device)


default_stream = current_stream
StreamContext = stream


def set_stream(stream: Stream):
    """Make the GPU of a stream the current one in this thread.

    >>> jaxgrad.cuda.set_stream(jaxgrad.cuda.Stream())
    """
    stream.select()


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


has_half, has_magma = True, False

# PyTorch's modules of these names have some of the functions of this one
memory = random = streams = sys.modules[__name__]

# few programs use these modules
_MODULES = "comm", "graphs", "jiterator", "profiler"
_GRAPHS = "CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables"
_MODULE_OF = dict.fromkeys(_GRAPHS, "graphs")
_MODULE_OF |= dict.fromkeys(("CudaError", "check_error", "cudart"), "_runtime")

_find, __dir__ = names_of(__name__)


def __getattr__(name):
    if name == "_initialized":  # programs look at it before they save the random state of GPUs
        return is_initialized()
    if name == "default_generators":  # one for each GPU: JAX has one for all of them
        return (default_random.default_generator,) * device_count()
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return _find(name)
