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
    dtype as _dtype,
)
class SobolEngine:
    num_generated: Any
    dimension: Any
    scramble: Any
    seed: Any
    MAXBIT: _int
    MAXDIM: _int
    def __init__(self, dimension: _int, scramble: _bool = False, seed: _int | None = None) -> None: ...
    def draw(self, n: _int = 1, out: Tensor | None = None, dtype: _dtype | None = None) -> Tensor: ...
    def draw_base2(self, m: _int, out: Tensor | None = None, dtype: _dtype | None = None) -> Tensor: ...
    def fast_forward(self, n: _int) -> Self: ...
    def reset(self) -> Self: ...
