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

from jaxgrad.distributed.checkpoint import (
    state_dict as state_dict,
)
class CheckpointException(RuntimeError):
    def __init__(self, msg: _str, failures: dict[Any, Any]) -> None: ...
    @property
    def failures(self) -> dict[Any, Any]: ...
class DefaultLoadPlanner:
    allow_partial_load: Any
    def __init__(self, flatten_state_dict: _bool = True, flatten_sharded_tensors: _bool = True, allow_partial_load: _bool = False) -> None: ...
class FileSystemReader:
    path: Any
    def __init__(self, path: _str | Any) -> None: ...
    @property
    def checkpoint_id(self) -> _str | Any: ...
class FileSystemWriter:
    path: Any
    overwrite: Any
    def __init__(self, path: _str | Any, single_file_per_rank: _bool = True, sync_files: _bool = True, thread_count: _int = 1, per_thread_copy_ahead: _int = 10000000, cache_staged_state_dict: _bool = False, overwrite: _bool = True, serialization_format: Any = None) -> None: ...
    @property
    def checkpoint_id(self) -> _str | Any: ...
def async_save(state_dict: dict[_str, Any], *, checkpoint_id: _str | Any | None = None, storage_writer: FileSystemWriter | None = None, planner: Any = None, process_group: Any = None, async_checkpointer_type: Any = ..., async_stager: Any = None, no_dist: _bool = False, use_collectives: _bool = True) -> Any: ...
def load(state_dict: dict[_str, Any], *, checkpoint_id: _str | Any | None = None, storage_reader: FileSystemReader | None = None, planner: DefaultLoadPlanner | None = None, process_group: Any = None, no_dist: _bool = False) -> None: ...
def save(state_dict: dict[_str, Any], *, checkpoint_id: _str | Any | None = None, storage_writer: FileSystemWriter | None = None, planner: Any = None, process_group: Any = None, no_dist: _bool = False, use_collectives: _bool = True) -> None: ...
