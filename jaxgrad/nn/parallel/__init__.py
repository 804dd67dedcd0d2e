"""Modules on several devices, as torch.nn.parallel."""

from __future__ import annotations

import importlib

from ...names.missing import MissingName
from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .data_parallel import parallel_apply as parallel_apply
from .data_parallel import replicate as replicate
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter


def __getattr__(name):
    # late, since jaxgrad.distributed imports modules of jaxgrad.nn
    if name == "distributed":
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DistributedDataParallel":
        return importlib.import_module(f"{__name__}.distributed").DistributedDataParallel
    raise MissingName(__name__, name)


def __dir__():
    return sorted([*globals(), "DistributedDataParallel"])
