"""torch.distributed.fsdp under its earlier name."""

from __future__ import annotations

from ...names.not_provided import names_of
from ..fsdp import FSDPModule as FSDPModule
from ..fsdp import MixedPrecisionPolicy as MixedPrecisionPolicy
from ..fsdp import OffloadPolicy as OffloadPolicy
from ..fsdp import fully_shard as fully_shard

__getattr__, __dir__ = names_of(__name__)
