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

from jaxgrad.distributed import (
    DeviceMesh,
    DeviceMesh as DeviceMesh,
    init_device_mesh as init_device_mesh,
)
def current_mesh(given: DeviceMesh | None) -> DeviceMesh: ...
