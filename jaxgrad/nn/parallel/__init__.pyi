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

from jaxgrad.nn import (
    DataParallel as DataParallel,
    Module,
)
class DistributedDataParallel(Module):
    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None: ...
def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: _int = 0, module_kwargs: Any = None) -> Any: ...
def gather(outputs: Sequence[Any], target_device: Any, dim: _int = 0) -> Any: ...
def parallel_apply(modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None) -> list[Any]: ...
def replicate(network: Module, devices: Sequence[Any], detach: _bool = False) -> list[Module]: ...
def scatter(inputs: Any, target_gpus: Sequence[Any], dim: _int = 0) -> list[Any]: ...
