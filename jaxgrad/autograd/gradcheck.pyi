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
from jaxgrad.autograd import (
    gradcheck as gradcheck,
    gradgradcheck as gradgradcheck,
)
class GradcheckError(RuntimeError):
    ...
def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: _float = 0.0, grad_out: _float = 1.0) -> Any: ...
def get_numerical_jacobian(fn: Any, inputs: Any, target: Tensor | None = None, eps: _float = 0.001, grad_out: _float = 1.0) -> Any: ...
def get_numerical_jacobian_wrt_specific_input(fn: Any, input_idx: Any, inputs: Any, outputs: Any, eps: Any, input: Tensor | None = None, is_forward_ad: _bool = False) -> Any: ...
