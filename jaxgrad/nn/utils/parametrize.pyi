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
    ModuleList,
)
class ParametrizationList(ModuleList):
    unsafe: Any
    is_tensor: Any
    ntensors: Any
    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: _bool = False) -> None: ...
    def forward(self) -> Tensor: ...
    def right_inverse(self, value: Tensor) -> None: ...
def cached() -> Iterator[None]: ...
def is_parametrized(module: Module, tensor_name: _str | None = None) -> _bool: ...
def register_parametrization(module: Module, tensor_name: _str, parametrization: Module, *, unsafe: _bool = False) -> Module: ...
def remove_parametrizations(module: Module, tensor_name: _str, leave_parametrized: _bool = True) -> Module: ...
def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: _str | None = None) -> Module: ...
def type_before_parametrizations(module: Module) -> type[Any]: ...
