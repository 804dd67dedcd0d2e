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
    Tensor,
)
from jaxgrad.nn import (
    Buffer,
    Buffer as Buffer,
    Parameter as Parameter,
    UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter,
)
class TransientBuffer(Buffer):
    ...
def from_data(data: Tensor | None, kind: type[Any], requires_grad: _bool) -> Tensor: ...
def is_lazy(tensor: Tensor) -> _bool: ...
def kind_of(tensor: Tensor) -> type[Any] | None: ...
def mark(tensor: Tensor, kind: type[Any], requires_grad: _bool) -> Tensor: ...
