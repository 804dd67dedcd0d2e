"""GPUs as JAX finds them, as torch.cuda.

XLA orders the work of a device by itself, so streams and events mark no order: a stream is a
block that changes nothing, and an event is a moment at which all work was done.

>>> jaxgrad.cuda.is_available() == (jaxgrad.cuda.device_count() > 0)
True
"""

from __future__ import annotations

import gc
import time

import jax

from ..core.device import as_device, devices_of, jax_device, wait_for
from ..core.device import device as Device
from ..core.missing_names import missing_in
from ..frontend.random import manual_seed as manual_seed
from . import amp as amp

manual_seed_all = manual_seed


def is_available() -> bool:
    """Return whether JAX has found a GPU."""
    return device_count() > 0


def device_count() -> int:
    """Return how many GPUs JAX has found."""
    return len(devices_of("cuda"))


def is_initialized() -> bool:
    """Return whether there is a GPU: JAX has found all devices at its start."""
    return is_available()


def init():
    """Do nothing if there is a GPU. Raises RuntimeError if there is none."""
    _found(None)


def current_device() -> int:
    """Return the index of the GPU that `device("cuda")` stands for, 0. Raises RuntimeError if there
    is none.
    """
    _found(None)
    return 0


def set_device(device):
    """Check a device. "cuda" without an index is the first GPU: give tensors and modules an index
    in place of this. Raises RuntimeError for a GPU that does not exist.
    """
    if _wanted(device).index not in (None, 0):
        raise RuntimeError(
            f'torch.cuda.set_device({device!r}): "cuda" without an index is always cuda:0; use '
            f'device="cuda:{_wanted(device).index}", or jax.default_device'
        )
    _found(device)


def get_device_name(device=None) -> str:
    """Return the name of a GPU. Raises RuntimeError if it does not exist."""
    return _found(device).device_kind


def get_device_capability(device=None) -> tuple[int, int]:
    """Return the compute capability of a GPU. Raises RuntimeError if it does not exist."""
    major, minor = str(_found(device).compute_capability).split(".")
    return int(major), int(minor)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether there is a GPU: XLA computes bfloat16 on all of them."""
    return is_available()


def synchronize(device=None):
    """Wait until all work that has been begun on a GPU is done. Raises RuntimeError if it does not
    exist.
    """
    wait_for(_wanted(device))


# ---- memory, by the allocator of JAX


def memory_stats(device=None) -> dict:
    """Return what JAX's allocator counts, in bytes; empty where it counts nothing."""
    return dict(_found(device).memory_stats() or {})


def memory_allocated(device=None) -> int:
    """Return the bytes in use on a GPU."""
    return memory_stats(device).get("bytes_in_use", 0)


def max_memory_allocated(device=None) -> int:
    """Return the most bytes that were in use on a GPU at one time since the start."""
    return memory_stats(device).get("peak_bytes_in_use", 0)


def memory_reserved(device=None) -> int:
    """Return the bytes that JAX has taken of a GPU's memory."""
    stats = memory_stats(device)
    return stats.get("pool_bytes", stats.get("bytes_reserved", memory_allocated(device)))


def mem_get_info(device=None) -> tuple[int, int]:
    """Return the bytes that JAX may still take, and all that it may take."""
    stats = memory_stats(device)
    limit = stats.get("bytes_limit", 0)
    return limit - stats.get("bytes_in_use", 0), limit


def empty_cache():
    """Collect garbage: JAX keeps its memory for later arrays."""
    gc.collect()


def ipc_collect():
    """Do nothing: arrays are not shared between processes."""


# ---- streams and events


class Stream:
    """A block that changes nothing: XLA orders the work of a device."""

    def __init__(self, device=None, priority: int = 0):
        self.device = _wanted(device)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def synchronize(self):
        """Wait until all work of the device is done."""
        synchronize(self.device)

    def wait_stream(self, stream):
        """Do nothing: the work of a device is in order."""

    def wait_event(self, event):
        """Do nothing: the work of a device is in order."""

    def record_event(self, event=None) -> Event:
        """Record an event, a new one by default, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event


class Event:
    """A moment at which all work of the first GPU was done."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess=False):
        self.moment = None

    def record(self, stream=None):
        """Wait until all work is done, and note the time."""
        synchronize()
        self.moment = time.perf_counter()

    def wait(self, stream=None):
        """Do nothing: the work of a device is in order."""

    def query(self) -> bool:
        """Return True: all work was done when the event was recorded."""
        return True

    def synchronize(self):
        """Do nothing: all work was done when the event was recorded."""

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another. Raises RuntimeError where one of them
        has not been recorded.
        """
        if self.moment is None or end_event.moment is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event.moment - self.moment) * 1e3


def stream(stream: Stream | None) -> Stream:
    """Return a block that changes nothing."""
    return Stream() if stream is None else stream


def current_stream(device=None) -> Stream:
    """Return a stream of a GPU."""
    return Stream(device)


default_stream = current_stream


def _wanted(device) -> Device:
    if device is None:
        return Device("cuda")
    given = Device("cuda", device) if isinstance(device, int) else as_device(device)
    if given.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {given}")
    return given


def _found(device) -> jax.Device:
    return jax_device(_wanted(device))


__getattr__ = missing_in(__name__)
