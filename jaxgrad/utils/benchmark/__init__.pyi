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

from jaxgrad.utils._pytree import (
    FlattenFn,
)
class Measurement:
    number_per_run: Any
    raw_times: Any
    task_spec: Any
    metadata: Any
    def __getattr__(self, name: Any) -> Any: ...
    def __init__(self, number_per_run: _int, raw_times: list[_float], task_spec: TaskSpec, metadata: Any = None) -> None: ...
    @property
    def iqr(self) -> _float: ...
    @property
    def mean(self) -> _float: ...
    @property
    def median(self) -> _float: ...
    @property
    def times(self) -> list[_float]: ...
class TaskSpec(NamedTuple):
    stmt: _str
    setup: _str
    global_setup: _str
    label: _str | None
    sub_label: _str | None
    description: _str | None
    env: _str | None
    num_threads: _int
class Timer:
    def __init__(self, stmt: _str = 'pass', setup: _str = 'pass', global_setup: _str = '', timer: Callable[[], _float] = ..., globals: dict[Any, Any] | None = None, label: _str | None = None, sub_label: _str | None = None, description: _str | None = None, env: _str | None = None, num_threads: _int = 1, language: _str = 'python') -> None: ...
    def adaptive_autorange(self, threshold: _float = 0.1, *, min_run_time: _float = 0.01, max_run_time: _float = 10.0, callback: FlattenFn | None = None) -> Measurement: ...
    def autorange(self, callback: FlattenFn | None = None) -> Any: ...
    def blocked_autorange(self, callback: FlattenFn | None = None, min_run_time: _float = 0.2) -> Measurement: ...
    def repeat(self, repeat: _int = -1, number: _int = -1) -> Any: ...
    def timeit(self, number: _int = 1000000) -> Measurement: ...
def select_unit(t: _float) -> tuple[_str, _float]: ...
def timer() -> _float: ...
