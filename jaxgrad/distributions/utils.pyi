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
from jaxgrad.utils._pytree import (
    FlattenFn,
)
def broadcast_all(*values: Any) -> tuple[Tensor, ...]: ...
def clamp_probs(probs: Tensor) -> Tensor: ...
euler_constant: _float
class lazy_property:
    wrapped: Any
    def __init__(self, wrapped: FlattenFn) -> None: ...
def logits_to_probs(logits: Tensor, is_binary: _bool = False) -> Tensor: ...
def probs_to_logits(probs: Tensor, is_binary: _bool = False) -> Tensor: ...
def tril_matrix_to_vec(mat: Tensor, diag: _int = 0) -> Tensor: ...
def vec_to_tril_matrix(vec: Tensor, diag: _int = 0) -> Tensor: ...
