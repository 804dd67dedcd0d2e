"""Fully sharded data parallelism, as torch.distributed.fsdp."""

from ._fully_shard import CPUOffloadPolicy as CPUOffloadPolicy
from ._fully_shard import FSDPModule as FSDPModule
from ._fully_shard import MixedPrecisionPolicy as MixedPrecisionPolicy
from ._fully_shard import OffloadPolicy as OffloadPolicy
from ._fully_shard import fully_shard as fully_shard
from ._fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
