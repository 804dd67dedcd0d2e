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

from jaxgrad.distributions import (
    Transform,
    biject_to as biject_to,
    transform_to as transform_to,
)
from jaxgrad.distributions.constraints import (
    Constraint,
)
from jaxgrad.utils._pytree import (
    FlattenFn,
)
class ConstraintRegistry:
    def __call__(self, constraint: Constraint) -> Transform: ...
    def __init__(self) -> None: ...
    def register(self, constraint: Constraint | type[Constraint], factory: FlattenFn | None = None) -> Any: ...
