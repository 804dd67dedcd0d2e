"""The accelerator of this process, a GPU or a TPU, as torch.accelerator.

>>> jaxgrad.accelerator.is_available() == (jaxgrad.accelerator.device_count() > 0)
True
"""

from __future__ import annotations

import gc
import importlib

from .core.device import (
    accelerator,
    as_device,
    current_index,
    device,
    devices_of,
    jax_device,
    set_current_index,
    wait_for,
)
from .frontend.memory_stats import with_pytorch_names
from .frontend.stream import Stream
from .names.missing import missing_in


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the kind of accelerator that JAX has found, without an index; None for none.

    >>> where = jaxgrad.accelerator.current_accelerator() or jaxgrad.device("cpu")
    >>> jaxgrad.ones(2, device=where).sum().item()
    2.0
    """
    return accelerator()


def is_available() -> bool:
    """Return whether JAX has found an accelerator.

    >>> found = jaxgrad.accelerator.current_accelerator()
    >>> jaxgrad.accelerator.is_available() == (found is not None)
    True
    """
    return current_accelerator() is not None


def device_count() -> int:
    """Return how many accelerators JAX has found.

    >>> jaxgrad.accelerator.device_count() >= 0
    True
    """
    accelerator = current_accelerator()
    return 0 if accelerator is None else len(devices_of(accelerator.type))


def current_device_index() -> int:
    """Return the index of the accelerator that a device without an index stands for in this thread,
    0 until `set_device_index`. Raises RuntimeError if there is none.

    >>> if jaxgrad.accelerator.is_available():
    ...     index = jaxgrad.accelerator.current_device_index()  # 0
    """
    return current_index(_required().type)


current_device_idx = current_device_index


def set_device_index(device, /):
    """Let a device without an index stand for an accelerator in this thread. Raises RuntimeError
    for one that does not exist.

    >>> if jaxgrad.accelerator.is_available():
    ...     jaxgrad.accelerator.set_device_index(0)
    """
    set_current_index(_wanted(device))


set_device_idx = set_device_index


class device_index:
    """A block in which an accelerator is the current one, in this thread; None changes nothing.

    >>> with jaxgrad.accelerator.device_index(None):
    ...     y = jaxgrad.ones(2) * 2
    """

    def __init__(self, device: int | None, /):
        self.device, self.around = device, None

    def __enter__(self):
        if self.device is not None:
            self.around = current_device_index()
            set_device_index(self.device)

    def __exit__(self, *raised):
        if self.device is not None:
            set_device_index(self.around)


def synchronize(device=None, /):
    """Wait until all work that has been begun on an accelerator is done. Raises RuntimeError if
    there is none.

    >>> if jaxgrad.accelerator.is_available():
    ...     jaxgrad.accelerator.synchronize()
    """
    wait_for(_wanted(device))


def current_stream(device=None, /) -> Stream:
    """Return a stream of an accelerator. Raises RuntimeError if there is none.

    >>> if jaxgrad.accelerator.is_available():
    ...     with jaxgrad.accelerator.current_stream():
    ...         y = jaxgrad.ones(2) * 2
    """
    return Stream(_wanted(device))


def set_stream(stream: Stream, /):
    """Make the device of a stream the current one in this thread.

    >>> if jaxgrad.accelerator.is_available():
    ...     jaxgrad.accelerator.set_stream(jaxgrad.accelerator.current_stream())
    """
    stream.select()


def get_device_capability(device=None, /) -> dict:
    """Return an empty dict: JAX tells nothing of the dtypes of an accelerator. Raises RuntimeError
    if there is none.

    >>> if jaxgrad.accelerator.is_available():
    ...     capability = jaxgrad.accelerator.get_device_capability()  # {}
    """
    _wanted(device)
    return {}


def get_device_module(device=None):
    """Return the module of a kind of devices, such as `jaxgrad.cuda`, by default that of the
    accelerator, or of the CPU where there is none. Raises RuntimeError for a kind without a module.

    >>> jaxgrad.get_device_module("cpu") is jaxgrad.cpu
    True
    """
    kind = ((accelerator() or as_device("cpu")) if device is None else as_device(device)).type
    if kind not in ("cpu", "cuda", "xpu", "mps", "mtia"):
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        )
    return importlib.import_module(f"jaxgrad.{kind}")


# ---- memory, by the allocator of JAX


def memory_stats(device_index=None, /) -> dict:
    """Return what JAX's allocator counts, in bytes, under its names and PyTorch's; empty where it
    counts nothing. Raises RuntimeError if there is no accelerator.

    >>> jaxgrad.accelerator.memory_stats("cpu")
    {}
    """
    return with_pytorch_names(jax_device(_wanted(device_index)).memory_stats())


def memory_allocated(device_index=None, /) -> int:
    """Return the bytes in use.

    >>> jaxgrad.accelerator.memory_allocated("cpu")
    0
    """
    return memory_stats(device_index).get("bytes_in_use", 0)


def max_memory_allocated(device_index=None, /) -> int:
    """Return the most bytes that were in use at one time since the start.

    >>> jaxgrad.accelerator.max_memory_allocated("cpu")
    0
    """
    return memory_stats(device_index).get("peak_bytes_in_use", 0)


def memory_reserved(device_index=None, /) -> int:
    """Return the bytes that JAX has taken of the memory.

    >>> jaxgrad.accelerator.memory_reserved("cpu")
    0
    """
    return memory_stats(device_index).get("pool_bytes", memory_allocated(device_index))


def max_memory_reserved(device_index=None, /) -> int:
    """Return the most bytes that JAX has taken of the memory.

    >>> jaxgrad.accelerator.max_memory_reserved("cpu")
    0
    """
    return memory_stats(device_index).get("peak_pool_bytes", memory_reserved(device_index))


def get_memory_info(device_index=None, /) -> tuple[int, int]:
    """Return the bytes that JAX may still take, and all that it may take; zeros where it counts
    nothing.

    >>> jaxgrad.accelerator.get_memory_info("cpu")
    (0, 0)
    """
    stats = memory_stats(device_index)
    limit = stats.get("bytes_limit", 0)
    return limit - stats.get("bytes_in_use", 0), limit


def reset_peak_memory_stats(device_index=None, /):
    """Do nothing: JAX counts the peak from the start of the process.

    >>> jaxgrad.accelerator.reset_peak_memory_stats()
    """


reset_accumulated_memory_stats = reset_peak_memory_stats


def empty_host_cache():
    """Do nothing: JAX keeps no memory of the host for transfers. Raises RuntimeError if there is no
    accelerator.

    >>> if jaxgrad.accelerator.is_available():
    ...     jaxgrad.accelerator.empty_host_cache()
    """
    _required()


def empty_cache():
    """Collect garbage: JAX keeps its memory for later arrays.

    >>> jaxgrad.accelerator.empty_cache()
    """
    gc.collect()


def _wanted(argument) -> device:
    if argument is not None and type(argument) is not int:
        return as_device(argument)
    accelerator = _required()
    return accelerator if argument is None else device(accelerator.type, argument)


def _required() -> device:
    accelerator = current_accelerator()
    if accelerator is None:
        raise RuntimeError(
            "there is no accelerator: Cannot access accelerator device when none is available, and "
            "JAX has found CPUs alone"
        )
    return accelerator


__getattr__ = missing_in(__name__)
