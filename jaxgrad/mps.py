"""Apple GPUs, which jaxgrad does not use, as torch.mps.

>>> jaxgrad.mps.is_available(), jaxgrad.mps.device_count()
(False, 0)
"""

from __future__ import annotations

from .core.absent_device import current_allocated_memory as current_allocated_memory
from .core.absent_device import device_count as device_count
from .core.absent_device import driver_allocated_memory as driver_allocated_memory
from .core.absent_device import empty_cache as empty_cache
from .core.absent_device import is_available as is_available
from .core.absent_device import manual_seed as manual_seed
from .core.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
