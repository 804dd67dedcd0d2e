"""torch.distributed.fsdp under its earlier name."""

from __future__ import annotations

from ...names.not_provided import names_of
from ..fsdp._fully_shard import FSDPModule as FSDPModule
from ..fsdp._fully_shard import MixedPrecisionPolicy as MixedPrecisionPolicy
from ..fsdp._fully_shard import OffloadPolicy as OffloadPolicy
from ..fsdp._fully_shard import fully_shard as fully_shard

__getattr__, __dir__ = names_of(__name__)
