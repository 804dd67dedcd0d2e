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
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from jaxgrad.autograd import (
    enforce_grad_layout_policy as enforce_grad_layout_policy,
    is_multithreading_enabled as is_multithreading_enabled,
    is_view_replay_enabled as is_view_replay_enabled,
    set_multithreading_enabled as set_multithreading_enabled,
)
