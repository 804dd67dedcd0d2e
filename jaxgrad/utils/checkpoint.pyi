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
    dtype as _dtype,
)
from jaxgrad.autograd import (
    Function,
)
from jaxgrad.utils._pytree import (
    FlattenFn,
)
class CheckpointError(RuntimeError):
    ...
class CheckpointFunction(Function):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any: ...
    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: Any, *args: Any) -> Any: ...
class CheckpointOptions(NamedTuple):
    preserve_rng_state: _bool
    early_stop: _bool
    debug: _bool
    shown: FlattenFn
    recompute_context: Any
class CheckpointPolicy(Enum):
    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5
class DefaultDeviceType:
    @staticmethod
    def get_device_type() -> _str: ...
    @staticmethod
    def set_device_type(device: _str = 'cuda') -> None: ...
class GraphExecGroup:
    key: Any
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
class SavedMetadata(NamedTuple):
    shape: tuple[Any, ...]
    dtype: _dtype
    sharding: object
class SelectiveCheckpointContext:
    is_recompute: Any
    op_output: Any
    def __init__(self, *, is_recompute: Any, op_output: Any = None) -> None: ...
def check_backward_validity(inputs: Any) -> None: ...
def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: _bool | None = None, context_fn: Callable[[], tuple[Any, ...]] = ..., determinism_check: _str = 'default', debug: _bool = False, early_stop: _bool = True, policy: FlattenFn | None = None, **kwargs: Any) -> Any: ...
def checkpoint_sequential(functions: Any, segments: Any, input: Tensor, use_reentrant: Any = None, **kwargs: Any) -> Any: ...
def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: _bool = False) -> Any: ...
def detach_variable(inputs: tuple[Any, ...]) -> tuple[Tensor, ...]: ...
def get_device_states(*args: Any) -> tuple[list[_int], list[Tensor]]: ...
def noop_context_fn() -> Any: ...
def set_checkpoint_debug_enabled(enabled: _bool | None) -> Any: ...
def set_checkpoint_early_stop(enable: _bool) -> Any: ...
def set_device_states(devices: Any, states: Any, *, device_type: _str | None = None) -> None: ...
