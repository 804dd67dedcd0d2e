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
from jaxgrad.distributed import (
    DeviceMesh,
    ProcessGroup,
)
from jaxgrad.distributed.fsdp import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig as FullOptimStateDictConfig,
    FullStateDictConfig as FullStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig as OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig as ShardedOptimStateDictConfig,
    ShardedStateDictConfig as ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig as StateDictConfig,
    StateDictSettings,
    StateDictType,
    StateDictType as StateDictType,
)
from jaxgrad.distributed.tensor import (
    DTensor as DTensor,
)
from jaxgrad.nn import (
    Module,
    Parameter,
)
from jaxgrad.optim import (
    Optimizer,
)
class FSDP(Module):
    sharding_strategy: Any
    mixed_precision: Any
    cpu_offload: Any
    backward_prefetch: Any
    forward_prefetch: Any
    limit_all_gathers: Any
    def __getattr__(self, name: Any) -> Any: ...
    def __getitem__(self, key: Tensor) -> Any: ...
    def __init__(self, module: Module, process_group: ProcessGroup | None = None, sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None, auto_wrap_policy: Any = None, backward_prefetch: BackwardPrefetch | None = ..., mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None, param_init_fn: Callable[[Module], None] | None = None, device_id: Any = None, sync_module_states: _bool = False, forward_prefetch: _bool = False, limit_all_gathers: _bool = True, use_orig_params: _bool = False, ignored_states: Iterable[Parameter] | Iterable[Module] | None = None, device_mesh: DeviceMesh | None = None) -> None: ...
    def apply(self, fn: Callable[[Module], None]) -> Any: ...
    def check_is_root(self) -> _bool: ...
    def clip_grad_norm_(self, max_norm: _float, norm_type: _float = 2.0) -> Tensor: ...
    @staticmethod
    def flatten_sharded_optim_state_dict(sharded_optim_state_dict: dict[Any, Any], model: Module, optim: Optimizer) -> dict[Any, Any]: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
    @staticmethod
    def fsdp_modules(module: Module, root_only: _bool = False) -> list[Module]: ...
    @staticmethod
    def full_optim_state_dict(model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: _bool = True, group: Any = None) -> dict[Any, Any]: ...
    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings | None: ...
    @property
    def module(self) -> Module: ...
    def named_buffers(self, *args: Any, **kwargs: Any) -> Any: ...  # type: ignore[override]
    def named_parameters(self, *args: Any, **kwargs: Any) -> Any: ...  # type: ignore[override]
    def no_sync(self) -> Any: ...
    @staticmethod
    def optim_state_dict(model: Module, optim: Optimizer, optim_state_dict: dict[Any, Any] | None = None, group: Any = None) -> dict[Any, Any]: ...
    @staticmethod
    def optim_state_dict_to_load(model: Module, optim: Optimizer, optim_state_dict: dict[Any, Any], is_named_optimizer: _bool = False, load_directly: _bool = False, group: Any = None) -> dict[Any, Any]: ...
    def register_comm_hook(self, state: Any, hook: Any) -> Any: ...
    @staticmethod
    def rekey_optim_state_dict(optim_state_dict: dict[Any, Any], optim_state_key_type: OptimStateKeyType, model: Module, optim_input: Any = None, optim: Optimizer | None = None) -> dict[Any, Any]: ...
    @staticmethod
    def scatter_full_optim_state_dict(full_optim_state_dict: dict[Any, Any] | None, model: Module, optim_input: Any = None, optim: Optimizer | None = None, group: Any = None) -> dict[Any, Any]: ...
    @staticmethod
    def set_state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None) -> StateDictSettings: ...
    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict: dict[Any, Any], model: Module, optim_input: Any = None, optim: Optimizer | None = None) -> dict[Any, Any]: ...
    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Optimizer, group: Any = None) -> dict[Any, Any]: ...
    @staticmethod
    def state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None) -> Any: ...
    @staticmethod
    def summon_full_params(module: Module, recurse: _bool = True, writeback: _bool = True, rank0_only: _bool = False, offload_to_cpu: _bool = False, with_grads: _bool = False) -> Any: ...
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
def state_to_load(model: Module, optimizer: Optimizer, given: dict[Any, Any], strict: _bool = True) -> dict[Any, Any]: ...
