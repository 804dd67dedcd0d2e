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
    load as load,
    save as save,
)
def add_safe_globals(safe_globals: list[Any]) -> None: ...
def clear_safe_globals() -> None: ...
def get_safe_globals() -> list[Any]: ...
class safe_globals:
    before: Any
    added: Any
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: Any) -> None: ...
    def __init__(self, safe_globals: list[Any]) -> None: ...
