"""Fully sharded data parallelism, as torch.distributed.fsdp."""

from ...names.not_provided import names_of
from ._fully_shard import CPUOffloadPolicy as CPUOffloadPolicy
from ._fully_shard import FSDPModule as FSDPModule
from ._fully_shard import MixedPrecisionPolicy as MixedPrecisionPolicy
from ._fully_shard import OffloadPolicy as OffloadPolicy
from ._fully_shard import fully_shard as fully_shard
from ._fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from .api import *  # noqa: F403
from .fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from .fully_sharded_data_parallel import OptimStateKeyType as OptimStateKeyType

__getattr__, __dir__ = names_of(__name__)
