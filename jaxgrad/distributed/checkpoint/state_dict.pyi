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

from jaxgrad.distributed import (
    DeviceMesh,
)
from jaxgrad.distributed.fsdp import (
    ShardingStrategy,
)
from jaxgrad.distributed.tensor import (
    DTensor as DTensor,
)
from jaxgrad.nn import (
    Module,
)
from jaxgrad.optim import (
    Optimizer,
)
class FSDP(Module):
    module: Any
    def __init__(self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None, cpu_offload: Any = None, auto_wrap_policy: Any = None, backward_prefetch: Any = None, mixed_precision: Any = None, ignored_modules: Any = None, param_init_fn: Any = None, device_id: Any = None, sync_module_states: _bool = False, forward_prefetch: _bool = False, limit_all_gathers: _bool = True, use_orig_params: _bool = False, ignored_states: Any = None, device_mesh: DeviceMesh | None = None) -> None: ...
    def clip_grad_norm_(self, max_norm: _float, norm_type: _float = 2.0) -> Any: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
class StateDictOptions:
    def __init__(self, full_state_dict: _bool = False, cpu_offload: _bool = False, ignore_frozen_params: _bool = False, keep_submodule_prefixes: _bool = True, strict: _bool = True, broadcast_from_rank0: _bool = False, flatten_optimizer_state_dict: _bool = False, dsd_fqn_modifiers: _str = '_fqn_modifiers') -> None: ...
    broadcast_from_rank0: _bool
    cpu_offload: _bool
    dsd_fqn_modifiers: _str
    flatten_optimizer_state_dict: _bool
    full_state_dict: _bool
    ignore_frozen_params: _bool
    keep_submodule_prefixes: _bool
    strict: _bool
def get_model_state_dict(model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None) -> dict[_str, Any]: ...
def get_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None, options: StateDictOptions | None = None) -> dict[_str, Any]: ...
def get_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None, options: StateDictOptions | None = None) -> tuple[dict[_str, Any], dict[_str, Any]]: ...
def set_model_state_dict(model: Module, model_state_dict: dict[_str, Any], *, options: StateDictOptions | None = None) -> Any: ...
def set_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[_str, Any], *, options: StateDictOptions | None = None) -> None: ...
def set_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[_str, Any], optim_state_dict: dict[_str, Any], options: StateDictOptions | None = None) -> Any: ...
