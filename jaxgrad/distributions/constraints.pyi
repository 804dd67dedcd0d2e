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
class Constraint:
    def check(self, value: Tensor) -> Tensor: ...
    event_dim: _int
    is_discrete: _bool
class MixtureSameFamilyConstraint(Constraint):
    base_constraint: Any
    def __init__(self, base_constraint: Constraint) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    @property
    def event_dim(self) -> _int: ...  # type: ignore[override]
    @property
    def is_discrete(self) -> _bool: ...  # type: ignore[override]
boolean: Any
class cat(Constraint):
    cseq: Any
    dim: Any
    lengths: Any
    def __init__(self, cseq: Sequence[Constraint], dim: _int = 0, lengths: Sequence[_int] | None = None) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    @property
    def event_dim(self) -> _int: ...  # type: ignore[override]
    @property
    def is_discrete(self) -> _bool: ...  # type: ignore[override]
corr_cholesky: Any
dependent: Any
class dependent_property(property, Constraint):
    def __call__(self, fn: Any) -> Any: ...
    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = ..., event_dim: Any = ...) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    @property
    def event_dim(self) -> _int: ...  # type: ignore[override]
    @property
    def is_discrete(self) -> _bool: ...  # type: ignore[override]
class greater_than(Constraint):
    lower_bound: Any
    def __init__(self, lower_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
class greater_than_eq(Constraint):
    lower_bound: Any
    def __init__(self, lower_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
class half_open_interval(Constraint):
    lower_bound: Any
    upper_bound: Any
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
def holds(constraint: Constraint, value: Tensor) -> _bool: ...
class independent(Constraint):
    base_constraint: Any
    reinterpreted_batch_ndims: Any
    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: _int) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    @property
    def event_dim(self) -> _int: ...  # type: ignore[override]
    @property
    def is_discrete(self) -> _bool: ...  # type: ignore[override]
class integer_interval(Constraint):
    lower_bound: Any
    upper_bound: Any
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    is_discrete: _bool
class interval(Constraint):
    lower_bound: Any
    upper_bound: Any
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
def is_dependent(constraint: Any) -> _bool: ...
class less_than(Constraint):
    upper_bound: Any
    def __init__(self, upper_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
lower_cholesky: Any
lower_triangular: Any
class multinomial(Constraint):
    upper_bound: Any
    def __init__(self, upper_bound: Any) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    event_dim: _int
    is_discrete: _bool
nonnegative: greater_than_eq
nonnegative_integer: Any
one_hot: Any
positive: greater_than
positive_definite: Any
positive_integer: Any
positive_semidefinite: Any
real: Any
real_vector: independent
simplex: Any
square: Any
class stack(Constraint):
    cseq: Any
    dim: Any
    def __init__(self, cseq: Sequence[Constraint], dim: _int = 0) -> None: ...
    def check(self, value: Tensor) -> Any: ...
    @property
    def event_dim(self) -> _int: ...  # type: ignore[override]
    @property
    def is_discrete(self) -> _bool: ...  # type: ignore[override]
symmetric: Any
unit_interval: interval
