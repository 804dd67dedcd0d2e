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
from jaxgrad.optim import (
    Optimizer as Optimizer,
)
from jaxgrad.utils.hooks import (
    RemovableHandle,
)
class StateLoader:
    counts: Any
    counts_in_tensors: Any
    shares_counts: Any
    def __init__(self, counts_in_tensors: _bool = False, shares_counts: _bool = False) -> None: ...
    def copy(self, value: Tensor, param: Any, key: Tensor | None = None) -> Any: ...
    def count(self, value: Tensor) -> Any: ...
    def tensor(self, value: Tensor, param: Any, key: Tensor) -> Any: ...
def register_optimizer_step_post_hook(hook: Any) -> RemovableHandle: ...
def register_optimizer_step_pre_hook(hook: Any) -> RemovableHandle: ...
required: object
