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
    Module,
)
def as_matrix(weight: Tensor, dim: _int) -> Tensor: ...
def channel_dim(module: Module) -> _int: ...
def check_iterations(count: Any) -> None: ...
def orthogonal(module: Module, name: _str = 'weight', orthogonal_map: _str | None = None, *, use_trivialization: _bool = True) -> Module: ...
def spectral_norm(module: Module, name: _str = 'weight', n_power_iterations: _int = 1, eps: _float = 1e-12, dim: _int | None = None) -> Module: ...
def weight_norm(module: Module, name: _str = 'weight', dim: _int | None = 0) -> Module: ...
