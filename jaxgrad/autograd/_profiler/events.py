"""What a profile consists of: events, and sums of events.

An event is inside of another where it began and ended during it, in the same thread. What an event
took itself is what it took less what the events directly inside of it did.
"""

from __future__ import annotations

import enum
import warnings
from dataclasses import InitVar, dataclass
from typing import NamedTuple

from .table import duration

BACKWARD, USER = 1, 7  # of PyTorch's scopes, those of a node that runs and of a label

MEMORY = "[memory]"  # the name of an event for memory that was freed outside of all others


class DeviceType(enum.Enum):
    """Where an event took place, by PyTorch's numbers."""

    CPU, CUDA, MKLDNN, OPENGL, OPENCL, IDEEP, HIP, FPGA, MAIA, XLA = range(10)
    Vulkan, Metal, XPU, MPS, Meta, HPU, VE, Lazy, IPU, MTIA, PrivateUse1 = range(10, 21)


class ProfilerActivity(enum.Enum):
    """What PyTorch's profiler can be asked to look at, by its numbers."""

    CPU, XPU, CUDA, HPU, MTIA, PrivateUse1 = range(6)


class Interval:
    """A span of time, in microseconds."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work on a device that an event had to wait for."""

    name: str
    device: int
    duration: float


def _shown(name):
    return property(lambda self: duration(getattr(self, name)))


def _renamed(old, new):
    """An old name of a property."""

    def value(self):
        told = f"`{old}` is deprecated, please use `{new}` instead."
        warnings.warn(told, FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(value)


class FormattedTimesMixin:
    """Averages of an event's times, and times as text. `count` is over how many calls."""

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
        """The time of one call, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self):
        """The time of one call on the device, in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0


@dataclass(eq=False, repr=False)
class FunctionEvent(FormattedTimesMixin):
    """One run of something that has a name.

    name: as PyTorch has it: `aten::mul` for an operator, `MulBackward0` for the node of a backward
    pass; thread: a number; time_range: an Interval; sequence_nr: of the node that an operator
    recorded and, for the run of a node, of that node: the two match; fwd_thread: where the node was
    recorded; scope: 1 for the run of a node, 7 for a label, else 0; input_shapes, flops,
    cpu_memory_usage, device_memory_usage, stack: as far as the profile was asked for them; place:
    file and line of the code that called it, for a node that of the operator that recorded it.
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
        """Note work on a device, in microseconds."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent):
        """Note an event that is directly inside of this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent):
        """Note the event that this one is directly inside of."""
        self.cpu_parent = parent

    @property
    def is_timed(self) -> bool:
        return self.device_type is DeviceType.CPU and not self.is_async

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self):
        return self._itself("cpu_time_total")

    @property
    def device_time_total(self):
        if self.is_async or not self.use_device:
            return 0
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        inside = 0 if self.is_legacy else sum(c.device_time_total for c in self.cpu_children)
        return sum(kernel.duration for kernel in self.kernels) + inside

    @property
    def self_device_time_total(self):
        return self._itself("device_time_total")

    @property
    def self_cpu_memory_usage(self):
        return self._itself("cpu_memory_usage")

    @property
    def self_device_memory_usage(self):
        return self._itself("device_memory_usage")

    def _itself(self, what):
        if not self.is_timed:
            return self.device_time_total if what == "device_time_total" else 0
        return getattr(self, what) - sum(getattr(child, what) for child in self.cpu_children)

    @property
    def key(self) -> str:
        return self.name

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


# what averages add up, and what they take from their first event
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
    """Events of one key, summed up. The names are those of FunctionEvent."""

    def __init__(self):
        for name in TRAITS:
            setattr(self, name, None)
        for name in SUMS:
            setattr(self, name, 0)
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.node_id, self.flops, self.device_type = 0, 0, DeviceType.CPU

    def add(self, other):
        """Add an event, or a sum of events. Raises AssertionError for one of another key."""
        if self.key is None:
            for name in TRAITS:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"an event of {other.key} is added to those of {self.key}")
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
