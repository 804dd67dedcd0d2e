"""Modules on several devices, as torch.nn.parallel: here a module stays on the device that it is
on. `jax.device_put` shards tensors over several.
"""

from __future__ import annotations

from ...core.missing_names import missing_in
from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .data_parallel import parallel_apply as parallel_apply
from .data_parallel import replicate as replicate
from .distributed import DistributedDataParallel as DistributedDataParallel
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter

__getattr__ = missing_in(__name__)
