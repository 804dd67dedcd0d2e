"""The CPU, as torch.cpu.

>>> jaxgrad.cpu.is_available(), jaxgrad.cpu.current_device()
(True, 'cpu')
"""

from __future__ import annotations

from .core.device import device, devices_of, wait_for
from .core.missing_names import missing_in
from .core.stream import Event as _Event
from .core.stream import Stream as _Stream


def is_available() -> bool:
    """Return True."""
    return True


is_initialized = is_available


def device_count() -> int:
    """Return how many CPU devices JAX has, one unless XLA was told to make more."""
    return len(devices_of("cpu"))


def current_device() -> str:
    """Return "cpu"."""
    return "cpu"


def set_device(device):
    """Do nothing."""


def synchronize(device_=None):
    """Wait until all work that has been begun on the CPU is done."""
    wait_for(device("cpu"))


class Stream(_Stream):
    """A block that changes nothing: XLA orders the work of the CPU."""

    def __init__(self, priority: int = -1):
        super().__init__("cpu")


class Event(_Event):
    """A moment at which all work of the CPU was done."""

    def __init__(self, enable_timing: bool = False):
        super().__init__("cpu")


def stream(stream: Stream | None) -> Stream:
    """Return a block that changes nothing."""
    return Stream() if stream is None else stream


StreamContext = stream


def current_stream(device=None) -> Stream:
    """Return a stream of the CPU."""
    return Stream()


__getattr__ = missing_in(__name__)
