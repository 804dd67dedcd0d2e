"""The options of `FullyShardedDataParallel`, as torch.distributed.fsdp.api."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ...names.not_provided import names_of
from ...nn.normalization import _BatchNorm


class ShardingStrategy(enum.Enum):
    """What is sharded: with all of them but NO_SHARD parameters, gradients and the state of
    optimizers.

    FULL_SHARD gathers parameters anew for the backward pass, SHARD_GRAD_OP keeps those of the
    forward pass. HYBRID_SHARD and _HYBRID_SHARD_ZERO2 do the same, and replicate parameters over
    the first dimension of a `device_mesh` of two. NO_SHARD replicates them.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> options = {"device_mesh": mesh, "sharding_strategy": ShardingStrategy.NO_SHARD}
    >>> FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), **options).module.weight.placements
    (Replicate(),)
    """

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(enum.Enum):
    """When PyTorch gathers the parameters of the next unit in a backward pass; XLA decides that
    here.

    >>> [prefetch.name for prefetch in jaxgrad.distributed.fsdp.BackwardPrefetch]
    ['BACKWARD_PRE', 'BACKWARD_POST']
    """

    BACKWARD_PRE, BACKWARD_POST = range(1, 3)


@dataclass
class MixedPrecision:
    """The dtypes of a unit, None to keep that of the parameters.

    param_dtype: it computes in this dtype; the sharded parameters keep theirs. reduce_dtype: in
    which gradients are added over the processes, by default `param_dtype`. buffer_dtype: of the
    buffers, from the first call on; state dicts have them in their own. cast_forward_inputs:
    whether floating-point inputs are cast to `param_dtype`; cast_root_forward_inputs: whether
    those of the outermost unit are. _module_classes_to_ignore: modules that an `auto_wrap_policy`
    makes units which compute in float32. keep_low_precision_grads: must be False.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    >>> options = {"device_mesh": jaxgrad.distributed.init_device_mesh("cpu", (1,))}
    >>> options["mixed_precision"] = MixedPrecision(param_dtype=jaxgrad.bfloat16)
    >>> model = FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), **options)
    >>> model(jaxgrad.ones(3, 2)).dtype, model.module.weight.dtype
    (torch.bfloat16, torch.float32)
    """

    param_dtype: object = None
    reduce_dtype: object = None
    buffer_dtype: object = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether parameters are kept in the memory of the host: jaxgrad keeps them on the devices, and
    `FullyShardedDataParallel` refuses `offload_params=True`.

    >>> jaxgrad.distributed.fsdp.CPUOffload()
    CPUOffload(offload_params=False)
    """

    offload_params: bool = False


class StateDictType(enum.Enum):
    """What `state_dict()` of a sharded model has: whole tensors, or DTensors as they lie.
    LOCAL_STATE_DICT is the layout of PyTorch's flat parameters, which jaxgrad does not have.

    >>> [kind.name for kind in jaxgrad.distributed.fsdp.StateDictType]
    ['FULL_STATE_DICT', 'LOCAL_STATE_DICT', 'SHARDED_STATE_DICT']
    """

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = range(1, 4)


@dataclass
class StateDictConfig:
    """Options of a kind of state dict. offload_to_cpu: whether its whole tensors are on the CPU;
    DTensors stay on their devices.

    >>> jaxgrad.distributed.fsdp.StateDictConfig()
    StateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of FULL_STATE_DICT. rank0_only: the process of rank 0 gets the tensors, and the
    others get an empty dict.

    >>> jaxgrad.distributed.fsdp.FullStateDictConfig(rank0_only=True)
    FullStateDictConfig(offload_to_cpu=False, rank0_only=True)
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of LOCAL_STATE_DICT.

    >>> jaxgrad.distributed.fsdp.LocalStateDictConfig()
    LocalStateDictConfig(offload_to_cpu=False)
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of SHARDED_STATE_DICT, whose values are DTensors.

    >>> jaxgrad.distributed.fsdp.ShardedStateDictConfig().offload_to_cpu
    False
    """

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Options of the state dict of an optimizer. offload_to_cpu: whether its whole tensors are on
    the CPU.

    >>> jaxgrad.distributed.fsdp.OptimStateDictConfig()
    OptimStateDictConfig(offload_to_cpu=True)
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of FULL_STATE_DICT. rank0_only: the process of rank 0 gets the state, and the others
    get an empty dict; a state that is loaded comes from rank 0.

    >>> jaxgrad.distributed.fsdp.FullOptimStateDictConfig()
    FullOptimStateDictConfig(offload_to_cpu=True, rank0_only=False)
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Options of LOCAL_STATE_DICT.

    >>> jaxgrad.distributed.fsdp.LocalOptimStateDictConfig()
    LocalOptimStateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of SHARDED_STATE_DICT, whose values are DTensors.

    >>> jaxgrad.distributed.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
    True
    """

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """Which state dicts a model and its optimizers have: see StateDictType.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> model = FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), device_mesh=mesh)
    >>> FullyShardedDataParallel.get_state_dict_type(model).state_dict_type.name
    'FULL_STATE_DICT'
    """

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]

__getattr__, __dir__ = names_of(__name__)
