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

from jaxgrad.autograd import (
    DeviceType as DeviceType,
)
from jaxgrad.autograd.profiler import (
    EventList as EventList,
    FunctionEvent as FunctionEvent,
    MemRecordsAcc as MemRecordsAcc,
)
class FormattedTimesMixin:
    @property
    def cpu_time(self) -> Any: ...
    @property
    def cpu_time_str(self) -> Any: ...
    @property
    def cpu_time_total_str(self) -> Any: ...
    @property
    def cuda_time(self) -> Any: ...
    @property
    def cuda_time_total(self) -> Any: ...
    @property
    def device_time(self) -> Any: ...
    @property
    def device_time_str(self) -> Any: ...
    @property
    def device_time_total_str(self) -> Any: ...
    @property
    def self_cpu_time_total_str(self) -> Any: ...
    @property
    def self_cuda_memory_usage(self) -> Any: ...
    @property
    def self_cuda_time_total(self) -> Any: ...
    @property
    def self_device_time_total_str(self) -> Any: ...
class FunctionEventAvg(FormattedTimesMixin):
    is_async: Any
    is_remote: Any
    is_legacy: Any
    is_user_annotation: Any
    flops: Any
    node_id: Any
    device_type: Any
    def __iadd__(self, other: Any) -> Any: ...
    def __init__(self) -> None: ...
    def add(self, other: Any) -> Self: ...
class Interval:
    start: Any
    end: Any
    def __init__(self, start: Any, end: Any) -> None: ...
    def elapsed_us(self) -> Any: ...
class Kernel(NamedTuple):
    name: _str
    device: _int
    duration: _float
