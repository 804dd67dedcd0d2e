# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True)
_Number: TypeAlias = _bool | _int | _float | _complex

from jaxgrad import (
    device as _device,
)
from jaxgrad.autograd import (
    DeviceType,
    kineto_available as kineto_available,
)
from jaxgrad.autograd.profiler_util import (
    FormattedTimesMixin,
    FunctionEventAvg,
)
class EnforceUnique:
    seen: Any
    def __init__(self) -> None: ...
    def see(self, *key: Any) -> None: ...
class EventList(list[Any]):
    def __init__(self, *args: Any, use_device: Any = None, profile_memory: _bool = False, with_flops: _bool = False) -> None: ...
    def export_chrome_trace(self, path: Any) -> None: ...
    def export_stacks(self, path: _str, metric: _str) -> None: ...
    def key_averages(self, group_by_input_shapes: _bool = False, group_by_stack_n: Any = 0, group_by_overload_name: _bool = False, by_line: _bool = False) -> EventList: ...
    @property
    def self_cpu_time_total(self) -> Any: ...
    def supported_export_stacks_metrics(self) -> list[_str]: ...
    def table(self, sort_by: Any = None, row_limit: Any = 100, max_src_column_width: Any = 75, max_name_column_width: Any = 55, max_shapes_column_width: Any = 80, header: Any = None, top_level_events_only: _bool = False, time_unit: Any = None) -> _str: ...
    def total_average(self) -> FunctionEventAvg: ...
class FunctionEvent(FormattedTimesMixin):
    time_range: Any
    cpu_children: Any
    cpu_parent: Any
    count: Any
    kernels: Any
    id: _int
    name: _str
    thread: _int
    start_us: Any
    end_us: Any
    def __init__(self, id: _int, name: _str, thread: _int, start_us: Any, end_us: Any, overload_name: _str | None = None, fwd_thread: _int | None = None, input_shapes: list[Any] | None = None, stack: list[Any] | None = None, scope: _int = 0, use_device: _str | None = None, cpu_memory_usage: _int = 0, device_memory_usage: _int = 0, is_async: _bool = False, is_remote: _bool = False, sequence_nr: _int = -1, node_id: _int = -1, device_type: DeviceType = ..., device_index: _int = 0, device_resource_id: _int | None = None, is_legacy: _bool = False, flops: _int | None = None, trace_name: _str | None = None, concrete_inputs: list[Any] | None = None, kwinputs: dict[Any, Any] | None = None, is_user_annotation: _bool = False, is_python_function: _bool = False, activity_type: _str | None = None, metadata_json: _str | None = None, flow_id: _int | None = None, flow_type: _int | None = None, flow_start: _bool | None = None, external_id: _int = 0, linked_correlation_id: _int = 0, extra_meta: dict[Any, Any] | None = None, structured_input_shapes: list[Any] | None = None, structured_input_strides: list[Any] | None = None, input_dtypes: list[Any] | None = None, python_id: _int = -1, python_parent_id: _int = -1, python_module_id: _int = -1, place: tuple[_str, _int] | None = None) -> None: ...
    activity_type: Any
    def append_cpu_child(self, child: FunctionEvent) -> None: ...
    def append_kernel(self, name: Any, device: _device | _str | _int | None, duration: Any) -> None: ...
    concrete_inputs: Any
    cpu_memory_usage: _int
    @property
    def cpu_time_total(self) -> Any: ...
    device_index: _int
    device_memory_usage: _int
    device_resource_id: Any
    @property
    def device_time_total(self) -> Any: ...
    device_type: Any
    external_id: _int
    extra_meta: Any
    flops: Any
    flow_id: Any
    flow_start: Any
    flow_type: Any
    fwd_thread: Any
    input_dtypes: Any
    input_shapes: Any
    is_async: _bool
    is_legacy: _bool
    is_python_function: _bool
    is_remote: _bool
    @property
    def is_timed(self) -> _bool: ...
    is_user_annotation: _bool
    @property
    def key(self) -> _str: ...
    kwinputs: Any
    linked_correlation_id: _int
    metadata_json: Any
    node_id: _int
    overload_name: Any
    place: Any
    python_id: _int
    python_module_id: _int
    python_parent_id: _int
    scope: _int
    @property
    def self_cpu_memory_usage(self) -> Any: ...
    @property
    def self_cpu_time_total(self) -> Any: ...
    @property
    def self_device_memory_usage(self) -> Any: ...
    @property
    def self_device_time_total(self) -> Any: ...
    sequence_nr: _int
    def set_cpu_parent(self, parent: FunctionEvent) -> None: ...
    stack: Any
    structured_input_shapes: Any
    structured_input_strides: Any
    trace_name: Any
    use_device: Any
class KinetoStepTracker:
    @classmethod
    def current_step(cls) -> _int: ...
    @classmethod
    def erase_step_count(cls, requester: _str) -> _bool: ...
    @classmethod
    def increment_step(cls, requester: _str) -> _int: ...
    @classmethod
    def init_step_count(cls, requester: _str) -> None: ...
class MemRecordsAcc:
    def __init__(self, mem_records: list[tuple[Any, _bool]]) -> None: ...
    def in_interval(self, start_ns: Any, end_ns: Any) -> Any: ...
class emit_itt:
    entered: Any
    enabled: Any
    record_shapes: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __init__(self, enabled: _bool = True, record_shapes: _bool = False) -> None: ...
    kind: _str
class emit_nvtx:
    entered: Any
    enabled: Any
    record_shapes: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __init__(self, enabled: _bool = True, record_shapes: _bool = False) -> None: ...
    kind: _str
def load_nvprof(path: Any) -> EventList: ...
def parse_nvprof_trace(path: Any) -> list[FunctionEvent]: ...
class profile:
    kineto_results: Any
    use_device: Any
    experimental_config: Any
    custom_trace_id_callback: Any
    trace_id: Any
    post_processing_timeout_s: Any
    enabled: Any
    entered: Any
    record_shapes: Any
    with_flops: Any
    profile_memory: Any
    with_stack: Any
    with_modules: Any
    use_cpu: Any
    acc_events: Any
    activity_filters: Any
    jax_trace: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __init__(self, enabled: _bool = True, *, use_cuda: _bool = False, use_device: Any = None, record_shapes: _bool = False, with_flops: _bool = False, profile_memory: _bool = False, with_stack: _bool = False, with_modules: _bool = False, use_kineto: _bool = False, use_cpu: _bool = True, experimental_config: Any = None, acc_events: _bool = False, custom_trace_id_callback: Any = None, post_processing_timeout_s: Any = None, activity_filters: Any = None, jax_trace: Any = None) -> None: ...
    def create_trace_id(self) -> _str: ...
    def default_trace_id(self) -> _str: ...
    def export_chrome_trace(self, path: Any, metadata: Any = None, use_python_export: _bool = False) -> None: ...
    def export_stacks(self, path: _str, metric: _str = 'self_cpu_time_total') -> None: ...
    @property
    def function_events(self) -> EventList: ...
    def key_averages(self, group_by_input_shape: _bool = False, group_by_stack_n: Any = 0, group_by_overload_name: _bool = False, by_line: _bool = False) -> EventList: ...
    @property
    def self_cpu_time_total(self) -> Any: ...
    def table(self, sort_by: Any = None, row_limit: Any = 100, max_src_column_width: Any = 75, max_name_column_width: Any = 55, max_shapes_column_width: Any = 80, header: Any = None, top_level_events_only: _bool = False) -> _str: ...
    def toggle_collection_dynamic(self, enabled: _bool, activities: Any = ...) -> None: ...
    def total_average(self) -> Any: ...
class record_function:
    name: Any
    args: Any
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __init__(self, name: _str, args: _str | None = None) -> None: ...
