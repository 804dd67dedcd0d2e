"""The events of a profile, and their sums by name and by source line.

An event is inside of another event of its thread if it begins and ends during it. The own time of
an event, `self_cpu_time_total`, excludes the events directly inside of it.
"""

from __future__ import annotations

import enum
import linecache
import os
import warnings
from dataclasses import InitVar, dataclass
from typing import NamedTuple

from .table import duration

BACKWARD, USER = 1, 7  # PyTorch's scopes of the run of a node and of a label

MEMORY = "[memory]"  # the name of an event for memory freed outside of all other events


class DeviceType(enum.Enum):
    """The type of device of an event, with PyTorch's numbers.

    >>> jaxgrad.autograd.DeviceType.CUDA.value
    1
    """

    CPU, CUDA, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, MAIA, XLA = range(10)
    Vulkan, Metal, XPU, MPS, Meta, HPU, VE, Lazy, IPU, MTIA, PrivateUse1 = range(10, 21)


class ProfilerActivity(enum.Enum):
    """What PyTorch's profiler can record, with its numbers.

    >>> jaxgrad.autograd.ProfilerActivity.CPU.value
    0
    """

    CPU, XPU, CUDA, HPU, MTIA, PrivateUse1 = range(6)


class Interval:
    """A span of time, in microseconds.

    >>> jaxgrad.autograd.profiler_util.Interval(10, 35).elapsed_us()
    25
    """

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """The length of the interval, in microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work on a device that an event waited for; `duration` is in microseconds.

    >>> jaxgrad.autograd.profiler_util.Kernel("gemm", device=0, duration=3.5).duration
    3.5
    """

    name: str
    device: int
    duration: float


def _shown(name):
    return property(lambda self: duration(getattr(self, name)))


def _renamed(old, new):
    """A deprecated alias of a property."""

    def value(self):
        message = f"`{old}` is deprecated, please use `{new}` instead."
        warnings.warn(message, FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(value)


class FormattedTimesMixin:
    """Times of an event averaged over `count` calls, and times as text.

    >>> event = jaxgrad.autograd.profiler.FunctionEvent(0, "aten::mul", 1, start_us=10, end_us=35)
    >>> event.cpu_time, event.cpu_time_str
    (25.0, '25.000us')
    """

    cuda_time = _renamed("cuda_time", "device_time")
    cuda_time_total = _renamed("cuda_time_total", "device_time_total")
    self_cuda_time_total = _renamed("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _renamed("self_cuda_memory_usage", "self_device_memory_usage")

    cpu_time_str, device_time_str = _shown("cpu_time"), _shown("device_time")
    cpu_time_total_str, self_cpu_time_total_str = (
        _shown("cpu_time_total"),
        _shown("self_cpu_time_total"),
    )
    device_time_total_str, self_device_time_total_str = (
        _shown("device_time_total"),
        _shown("self_device_time_total"),
    )

    @property
    def cpu_time(self):
        """The average time of a call, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self):
        """The average time of a call on the device, in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0


@dataclass(eq=False, repr=False)
class FunctionEvent(FormattedTimesMixin):
    """One run of an operator, of a node, or of a labelled block.

    name: as in PyTorch, `aten::mul` for an operator and `MulBackward0` for a node.
    thread: the number of the thread.
    time_range: an Interval.
    sequence_nr: for an operator the number of the node that it recorded, for the run of a node its
        own number.
    fwd_thread: for the run of a node, the thread that recorded it.
    scope: 1 for the run of a node, 7 for a label, else 0.
    input_shapes, flops, cpu_memory_usage, device_memory_usage, stack: set if the profile records
        them.
    place: the file and line of the call; for a node, of the operator that recorded it.

    >>> event = jaxgrad.autograd.profiler.FunctionEvent(0, "aten::mul", 1, start_us=10, end_us=35)
    >>> event.key, event.cpu_time_total
    ('aten::mul', 25)
    """

    id: int
    name: str
    thread: int
    start_us: InitVar[float]
    end_us: InitVar[float]
    overload_name: str | None = None
    fwd_thread: int | None = None
    input_shapes: list | None = None
    stack: list | None = None
    scope: int = 0
    use_device: str | None = None
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    is_async: bool = False
    is_remote: bool = False
    sequence_nr: int = -1
    node_id: int = -1
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    device_resource_id: int | None = None
    is_legacy: bool = False
    flops: int | None = None
    trace_name: str | None = None
    concrete_inputs: list | None = None
    kwinputs: dict | None = None
    is_user_annotation: bool = False
    is_python_function: bool = False
    activity_type: str | None = None
    metadata_json: str | None = None
    flow_id: int | None = None
    flow_type: int | None = None
    flow_start: bool | None = None
    external_id: int = 0
    linked_correlation_id: int = 0
    extra_meta: dict | None = None
    structured_input_shapes: list | None = None
    structured_input_strides: list | None = None
    input_dtypes: list | None = None
    python_id: int = -1
    python_parent_id: int = -1
    python_module_id: int = -1
    place: tuple[str, int] | None = None

    def __post_init__(self, start_us, end_us):
        self.time_range = Interval(start_us, end_us)
        self.count, self.kernels = 1, []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        if self.device_resource_id is None:
            self.device_resource_id = self.thread

    def append_kernel(self, name, device, duration):
        """Add work on a device; `duration` is in microseconds."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent):
        """Add an event that is directly inside of this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent):
        """Set the event that this one is directly inside of."""
        self.cpu_parent = parent

    @property
    def is_timed(self) -> bool:
        """Whether the event has a time on the CPU."""
        return self.device_type is DeviceType.CPU and not self.is_async

    @property
    def cpu_time_total(self):
        """The time on the CPU, in microseconds."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self):
        """The time on the CPU without that of inner events, in microseconds."""
        return self._itself("cpu_time_total")

    @property
    def device_time_total(self):
        """The time on the device, in microseconds."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        inside = 0 if self.is_legacy else sum(c.device_time_total for c in self.cpu_children)
        return sum(kernel.duration for kernel in self.kernels) + inside

    @property
    def self_device_time_total(self):
        """The time on the device without that of inner events, in microseconds."""
        return self._itself("device_time_total")

    @property
    def self_cpu_memory_usage(self):
        """The bytes allocated on the CPU, without those of inner events."""
        return self._itself("cpu_memory_usage")

    @property
    def self_device_memory_usage(self):
        """The bytes allocated on the device, without those of inner events."""
        return self._itself("device_memory_usage")

    def _itself(self, what):
        if not self.is_timed:
            return self.device_time_total if what == "device_time_total" else 0
        return getattr(self, what) - sum(getattr(child, what) for child in self.cpu_children)

    @property
    def key(self) -> str:
        """The name; events with the same key are summed."""
        return self.name

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


# the attributes that a sum adds up, and those that it takes from its first event
SUMS = (
    *("cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total"),
    *("cpu_memory_usage", "device_memory_usage", "count"),
    *("self_cpu_memory_usage", "self_device_memory_usage"),
)
TRAITS = (
    *("key", "node_id", "is_async", "is_remote", "use_device", "input_shapes", "overload_name"),
    *("stack", "scope", "cpu_children", "cpu_parent", "device_type", "is_legacy"),
    *("is_user_annotation", "place"),
)


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of the events of one key, with the attributes of FunctionEvent.

    >>> event = jaxgrad.autograd.profiler.FunctionEvent(0, "aten::mul", 1, start_us=10, end_us=35)
    >>> both = jaxgrad.autograd.profiler_util.FunctionEventAvg().add(event).add(event)
    >>> both.count, both.cpu_time_total, both.cpu_time
    (2, 50, 25.0)
    """

    def __init__(self):
        for name in TRAITS:
            setattr(self, name, None)
        for name in SUMS:
            setattr(self, name, 0)
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.node_id, self.flops, self.device_type = 0, 0, DeviceType.CPU

    def add(self, other):
        """Add an event or a sum of events.

        Raises AssertionError if it has another key.
        """
        if self.key is None:
            for name in TRAITS:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"cannot add an event of {other.key} to those of {self.key}")
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other):
        return self.add(other)

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


# sums by source line


def by_lines(events) -> list:
    """The sum of the events that each source line called, the longest time first.

    The key of a sum is its line. Its own time is the sum of `forward_time_total`, taken by
    operators, and `backward_time_total`, taken by the nodes that these recorded.
    """
    sums: dict[tuple, LineAverage] = {}
    for event in events:
        place = place_of(event)
        if place is not None:
            sums.setdefault(place, LineAverage(place)).add_event(event)
    return sorted(sums.values(), key=lambda average: average.self_cpu_time_total, reverse=True)


def place_of(event) -> tuple[str, int] | None:
    """The file and line of an event, or of the innermost event around it that has them."""
    while event is not None and event.place is None:
        event = event.cpu_parent
    return None if event is None else event.place


def is_backward(event) -> bool:
    """Whether an event is the run of a node, or inside of one."""
    while event is not None:
        if event.scope == BACKWARD:
            return True
        event = event.cpu_parent
    return False


class LineAverage(FunctionEventAvg):
    """The sum of the events of one source line."""

    def __init__(self, place):
        super().__init__()
        file, number = place
        source = linecache.getline(file, number).strip()
        self.key = f"{os.path.basename(file)}:{number}" + (f"  {source}" if source else "")
        self.place, self.node_id = place, -1
        self.forward_time_total = self.backward_time_total = 0

    def add_event(self, event):
        time = event.self_cpu_time_total
        if is_backward(event):
            self.backward_time_total += time
        else:
            self.forward_time_total += time
        self.use_device = event.use_device
        self.flops += event.flops or 0
        # The total time of an event of the same line includes its inner events.
        inside = event.cpu_parent is not None and place_of(event.cpu_parent) == self.place
        for name in SUMS:
            if name.startswith("self_") or not inside:
                setattr(self, name, getattr(self, name) + getattr(event, name))
