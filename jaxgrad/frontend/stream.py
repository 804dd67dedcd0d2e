"""Streams and events: XLA orders the work of a device by itself, so a stream marks no order, and an
event is a moment at which all work was done.
"""

from __future__ import annotations

import time

from ..core.device import as_device, current_index, default_device, device, wait_for


class Stream:
    """A block that changes nothing: XLA orders the work of a device.

    device: by default that of new tensors. priority: kept, without effect. All streams of a device
    are equal, since their work is in one order.

    >>> with jaxgrad.Stream():
    ...     pass
    >>> jaxgrad.Stream("cpu") == jaxgrad.Stream("cpu")
    True
    """

    stream_id = 0

    def __init__(self, device=None, priority: int = 0, **_):
        self.device, self.priority = self._device(device), priority

    @staticmethod
    def _device(argument) -> device:
        return default_device() if argument is None else as_device(argument)

    @property
    def device_index(self) -> int:
        """The index of the device."""
        return self.device.index or 0

    @property
    def device_type(self) -> int:
        """PyTorch's number of the kind of device: 0 for a CPU, 1 for CUDA, -1 for others."""
        return {"cpu": 0, "cuda": 1}.get(self.device.type, -1)

    def _place(self):
        return self.device.type, current_index(self.device.type) if self.device.index is None else (
            self.device.index
        )

    def __eq__(self, other):
        return isinstance(other, Stream) and self._place() == other._place()

    def __hash__(self):
        return hash(self.device.type)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

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
