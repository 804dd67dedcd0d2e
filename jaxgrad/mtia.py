"""Accelerators of Meta, which jaxgrad does not use, as torch.mtia.

>>> jaxgrad.mtia.is_available(), jaxgrad.mtia.device_count()
(False, 0)
"""

from __future__ import annotations

from .frontend.absent_device import device_count as device_count
from .frontend.absent_device import is_available as is_available
from .frontend.absent_device import is_bf16_supported as is_bf16_supported
from .frontend.absent_device import is_initialized as is_initialized
from .frontend.absent_device import manual_seed as manual_seed
from .frontend.absent_device import manual_seed_all as manual_seed_all
from .frontend.absent_device import max_memory_allocated as max_memory_allocated
from .frontend.absent_device import memory_allocated as memory_allocated
from .names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
