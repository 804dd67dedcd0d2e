"""Intel GPUs, which jaxgrad does not use, as torch.xpu.

>>> jaxgrad.xpu.is_available(), jaxgrad.xpu.device_count()
(False, 0)
"""

from __future__ import annotations

from .frontend.absent_device import current_device as current_device
from .frontend.absent_device import current_stream as current_stream
from .frontend.absent_device import device as device
from .frontend.absent_device import device_count as device_count
from .frontend.absent_device import empty_cache as empty_cache
from .frontend.absent_device import get_device_capability as get_device_capability
from .frontend.absent_device import get_device_name as get_device_name
from .frontend.absent_device import get_device_properties as get_device_properties
from .frontend.absent_device import get_rng_state as get_rng_state
from .frontend.absent_device import get_rng_state_all as get_rng_state_all
from .frontend.absent_device import is_available as is_available
from .frontend.absent_device import is_bf16_supported as is_bf16_supported
from .frontend.absent_device import is_initialized as is_initialized
from .frontend.absent_device import manual_seed as manual_seed
from .frontend.absent_device import manual_seed_all as manual_seed_all
from .frontend.absent_device import max_memory_allocated as max_memory_allocated
from .frontend.absent_device import max_memory_reserved as max_memory_reserved
from .frontend.absent_device import mem_get_info as mem_get_info
from .frontend.absent_device import memory_allocated as memory_allocated
from .frontend.absent_device import memory_reserved as memory_reserved
from .frontend.absent_device import memory_stats as memory_stats
from .frontend.absent_device import refuse
from .frontend.absent_device import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from .frontend.absent_device import reset_peak_memory_stats as reset_peak_memory_stats
from .frontend.absent_device import set_device as set_device
from .frontend.absent_device import set_rng_state as set_rng_state
from .frontend.absent_device import set_rng_state_all as set_rng_state_all
from .frontend.absent_device import set_stream as set_stream
from .names.not_provided import names_of

synchronize = refuse

__getattr__, __dir__ = names_of(__name__)
