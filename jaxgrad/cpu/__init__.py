"""The CPU, as torch.cpu.

>>> jaxgrad.cpu.is_available(), jaxgrad.cpu.current_device()
(True, 'cpu')
"""

from __future__ import annotations

import importlib

from ..core.device import device, devices_of, wait_for
from ..frontend.stream import Event as _Event
from ..frontend.stream import Stream as _Stream
from ..names.missing import missing_in


def is_available() -> bool:
    """Return True.

    >>> jaxgrad.cpu.is_available()
    True
    """
    return True


is_initialized = is_available


def device_count() -> int:
    """Return how many CPU devices JAX has, one unless XLA was told to make more.

    >>> jaxgrad.cpu.device_count() >= 1
    True
    """
    return len(devices_of("cpu"))


def current_device() -> str:
    """Return "cpu".

    >>> jaxgrad.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device):
    """Do nothing: the CPU is one device.

    >>> jaxgrad.cpu.set_device("cpu")
    """


def synchronize(device_=None):
    """Wait until all work that has been begun on the CPU is done.

    >>> y = jaxgrad.ones(3, device="cpu") * 2
    >>> jaxgrad.cpu.synchronize()  # now it has been computed
    """
    wait_for(device("cpu"))


class Stream(_Stream):
    """A block that changes nothing: XLA orders the work of the CPU.

    >>> with jaxgrad.cpu.Stream() as stream:
    ...     y = jaxgrad.ones(3, device="cpu") * 2
    >>> stream.query()
    True
    """

    def __init__(self, priority: int = -1):
        super().__init__("cpu", priority)


class Event(_Event):
    """A moment at which all work of the CPU was done.

    >>> first, second = jaxgrad.cpu.Event(), jaxgrad.cpu.Event()
    >>> first.record(), second.record()
    (None, None)
    >>> first.elapsed_time(second) >= 0
    True
    """

    def __init__(self, enable_timing: bool = False):
        super().__init__("cpu")


def stream(stream: Stream | None) -> Stream:
    """Return a block that changes nothing: the stream itself, a new one for None.

    >>> with jaxgrad.cpu.stream(jaxgrad.cpu.Stream()):
    ...     y = jaxgrad.ones(3, device="cpu") * 2
    """
    return Stream() if stream is None else stream


StreamContext = stream


def current_stream(device=None) -> Stream:
    """Return a stream of the CPU.

    >>> jaxgrad.cpu.current_stream().device
    device(type='cpu')
    """
    return Stream()


_missing = missing_in(__name__)


def __getattr__(name):
    # few programs use it
    return importlib.import_module(f"{__name__}.amp") if name == "amp" else _missing(name)
