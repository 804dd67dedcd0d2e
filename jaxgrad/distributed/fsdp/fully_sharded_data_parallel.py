"""`FullyShardedDataParallel`, the wrapper that `fully_shard` followed."""

from __future__ import annotations

import enum

from ...core.not_provided import names_of
from ...nn.module import Module
from ...nn.utils.clip_grad import clip_grad_norm_
from ..device_mesh import DeviceMesh
from ._fully_shard import MixedPrecisionPolicy, fully_shard
from .wrap import chosen_by


class ShardingStrategy(enum.Enum):
    """What is sharded. jaxgrad shards parameters, gradients and optimizer state with all of them
    but NO_SHARD; SHARD_GRAD_OP keeps gathered parameters for the backward pass.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> options = {"device_mesh": mesh, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}
    >>> model = FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), **options)
    >>> model.module.weight.placements
    (Shard(dim=0),)
    """

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class MixedPrecision(MixedPrecisionPolicy):
    """The dtypes of a sharded module; see MixedPrecisionPolicy.

    >>> from jaxgrad.distributed.fsdp import MixedPrecision
    >>> MixedPrecision(param_dtype=jaxgrad.bfloat16).param_dtype
    torch.bfloat16
    """


class FullyShardedDataParallel(Module):
    """A module whose parameters are sharded by `fully_shard`, each submodule that a policy chooses
    by itself.

    auto_wrap_policy: such as ModuleWrapPolicy. sharding_strategy: see ShardingStrategy.
    device_mesh: by default one of all devices. mixed_precision: dtypes. The other arguments of
    PyTorch are taken and not used. Raises ValueError for NO_SHARD: use DistributedDataParallel.

    >>> from jaxgrad.distributed.fsdp import FullyShardedDataParallel
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> model = FullyShardedDataParallel(jaxgrad.nn.Linear(2, 4), device_mesh=mesh)
    >>> model(jaxgrad.ones(3, 2)).shape
    torch.Size([3, 4])
    """

    def __init__(
        self, module: Module, process_group=None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload=None, auto_wrap_policy=None, backward_prefetch=None, mixed_precision=None,
        ignored_modules=None, param_init_fn=None, device_id=None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True,
        use_orig_params: bool = False, ignored_states=None, device_mesh: DeviceMesh | None = None,
    ):  # fmt: skip
        super().__init__()
        if sharding_strategy is ShardingStrategy.NO_SHARD:
            raise ValueError(
                "FullyShardedDataParallel: NO_SHARD is what DistributedDataParallel does"
            )
        keeps = sharding_strategy is ShardingStrategy.SHARD_GRAD_OP
        policy = mixed_precision or MixedPrecisionPolicy()
        options = {"mesh": device_mesh, "mp_policy": policy}
        for each in [] if auto_wrap_policy is None else chosen_by(auto_wrap_policy, module):
            fully_shard(each, reshard_after_forward=not keeps, **options)
        self.module = fully_shard(module, reshard_after_forward=False, **options)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0):
        """`nn.utils.clip_grad_norm_` of all parameters."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)


__getattr__, __dir__ = names_of(__name__)
