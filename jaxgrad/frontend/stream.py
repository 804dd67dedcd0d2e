"""Streams and events: XLA orders the work of a device by itself, so a stream marks no order, and an
event is a moment at which all work was done.
"""

from __future__ import annotations

import time

from ..core.device import (
    as_device,
    current_index,
    default_device,
    has,
    set_current_index,
    wait_for,
)
from ..core.device import device as Device


class Stream:
    """A block in which the stream's device is the current one: XLA orders the work of a device.

    device: by default that of new tensors; without an index the current one. priority: kept,
    without effect. All streams of a device are equal, since their work is in one order.

    >>> with jaxgrad.Stream():
    ...     pass
    >>> jaxgrad.Stream("cpu") == jaxgrad.Stream("cpu")
    True
    """

    stream_id = 0

    def __init__(self, device=None, priority: int = 0, **_):
        place, self.priority = self._device(device), priority
        is_indexed = place.type == "cpu" or place.index is not None
        self.device = place if is_indexed else Device(place.type, current_index(place.type))
        self._around = []

    @staticmethod
    def _device(argument) -> Device:
        return default_device() if argument is None else as_device(argument)

    @property
    def device_index(self) -> int:
        """The index of the device."""
        return self.device.index or 0

    @property
    def device_type(self) -> int:
        """PyTorch's number of the kind of device: 0 for a CPU, 1 for CUDA, -1 for others."""
        return {"cpu": 0, "cuda": 1}.get(self.device.type, -1)

    def __eq__(self, other):
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self):
        return hash(self.device)

    def select(self):
        """Make the device the current one in this thread, if it exists."""
        index = self.device.index
        if index is not None and has(self.device.type) and index != current_index(self.device.type):
            set_current_index(self.device)

    def __enter__(self):
        self._around.append(current_index(self.device.type))
        self.select()
        return self

    def __exit__(self, *_):
        around = self._around.pop()
        if around != current_index(self.device.type):
            set_current_index(Device(self.device.type, around))

    def synchronize(self):
        """Wait until all work of the device is done."""
        wait_for(self.device)

    def query(self) -> bool:
        """Wait until all work of the device is done, and return True."""
        self.synchronize()
        return True

    def wait_stream(self, stream):
        """Do nothing: the work of a device is in order."""

    def wait_event(self, event):
        """Do nothing: the work of a device is in order."""

    def record_event(self, event=None) -> Event:
        """Record an event, a new one by default, and return it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event


class Event:
    """A moment at which all work of a device was done.

    device: by default that of new tensors.

    >>> first, second = jaxgrad.Event(), jaxgrad.Event()
    >>> first.record(), second.record()
    (None, None)
    >>> first.elapsed_time(second) >= 0
    True
    """

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device, self.moment = Stream._device(device), None

    def record(self, stream: Stream | None = None):
        """Wait until all work of the device is done, and note the time."""
        wait_for(self.device if stream is None else stream.device)
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
