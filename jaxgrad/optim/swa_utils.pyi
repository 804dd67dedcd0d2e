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
    device as _device,
)
from jaxgrad.nn import (
    Module,
)
from jaxgrad.optim.lr_scheduler import (
    LRScheduler,
)
from jaxgrad.utils._pytree import (
    FlattenFn,
)
class AveragedModel(Module):
    module: Any
    n_averaged: Any
    avg_fn: Any
    multi_avg_fn: Any
    use_buffers: Any
    def __init__(self, model: Module, device: _device | _str | _int | None = None, avg_fn: FlattenFn | None = None, multi_avg_fn: FlattenFn | None = None, use_buffers: _bool = False) -> None: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
    def update_parameters(self, model: Module) -> None: ...
class SWALR(LRScheduler):
    anneal_epochs: Any
    def __init__(self, optimizer: Any, swa_lr: Any, anneal_epochs: _int = 10, anneal_strategy: _str = 'cos', last_epoch: _int = -1) -> None: ...
    def get_lr(self) -> Any: ...
def get_ema_avg_fn(decay: _float = 0.999) -> FlattenFn: ...
def get_ema_multi_avg_fn(decay: _float = 0.999) -> FlattenFn: ...
def get_swa_avg_fn() -> FlattenFn: ...
def get_swa_multi_avg_fn() -> FlattenFn: ...
def update_bn(loader: Iterable[Any], model: Module, device: _device | _str | _int | None = None) -> None: ...
