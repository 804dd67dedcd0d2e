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

def assert_close(actual: Any, expected: Any, *, allow_subclasses: _bool = True, rtol: _float | None = None, atol: _float | None = None, equal_nan: _bool = False, check_device: _bool = True, check_dtype: _bool = True, check_layout: _bool = True, check_stride: _bool = False, msg: _str | Callable[[_str], _str] | None = None) -> None: ...
def difference(actual: Any, expected: Any, tolerances: Any, equal_nan: Any, checks: Any, place: _str = '') -> _str | None: ...
