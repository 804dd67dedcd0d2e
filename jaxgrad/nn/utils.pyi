# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_Number: TypeAlias = _bool | _int | _float | _complex

from jaxgrad import (
    Tensor,
)
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: _float, norm_type: _float = 2.0, error_if_nonfinite: _bool = False, foreach: _bool | None = None) -> Tensor: ...
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: _float, foreach: _bool | None = None) -> None: ...
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: _float, total_norm: Tensor, foreach: _bool | None = None) -> None: ...
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: _float = 2.0, error_if_nonfinite: _bool = False, foreach: _bool | None = None) -> Tensor: ...
def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor: ...
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None: ...
