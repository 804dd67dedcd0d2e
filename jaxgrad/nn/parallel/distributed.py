"""`DistributedDataParallel`, under the name of torch.nn.parallel.distributed."""

from __future__ import annotations

from ...core.missing_names import missing_in
from ...distributed.data_parallel import DistributedDataParallel as DistributedDataParallel

__getattr__ = missing_in(__name__)
