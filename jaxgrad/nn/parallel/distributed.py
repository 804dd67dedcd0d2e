"""`DistributedDataParallel`, under the name of torch.nn.parallel.distributed."""

from __future__ import annotations

from ...distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from ...names.missing import missing_in

__getattr__ = missing_in(__name__)
