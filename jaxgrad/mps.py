"""Apple GPUs, which jaxgrad does not use, as torch.mps on a machine without one: what needs the
device raises RuntimeError.

>>> jaxgrad.mps.is_available(), jaxgrad.mps.device_count()
(False, 0)
"""

from __future__ import annotations

from .frontend.absent_device import device_count as device_count
from .frontend.absent_device import is_available as is_available
from .frontend.absent_device import manual_seed as manual_seed
from .frontend.absent_device import refuse
from .names.not_provided import names_of

synchronize = empty_cache = seed = get_rng_state = set_rng_state = refuse
current_allocated_memory = driver_allocated_memory = recommended_max_memory = refuse
set_per_process_memory_fraction = compile_shader = load_metallib = refuse
_get_default_mps_generator = refuse


def _is_in_bad_fork() -> bool:
    return False


class Event:
    """A point in the work of a device that is absent. Raises RuntimeError.

    >>> try:
    ...     jaxgrad.mps.Event()
    ... except RuntimeError as error:
    ...     print(type(error).__name__)
    NotImplementedError
    """

    def __init__(self, enable_timing: bool = False):
        refuse()


__getattr__, __dir__ = names_of(__name__)
