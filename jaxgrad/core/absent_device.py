"""What the modules of kinds of devices that jaxgrad does not use have in common: torch.xpu,
torch.mps, torch.mtia.
"""

from __future__ import annotations


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.mps.is_available()
    False
    """
    return False


is_initialized = is_bf16_supported = is_available


def device_count() -> int:
    """Return 0.

    >>> jaxgrad.mps.device_count()
    0
    """
    return 0


def memory_allocated(device=None) -> int:
    """Return 0.

    >>> jaxgrad.xpu.memory_allocated()
    0
    """
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
current_allocated_memory = driver_allocated_memory = memory_allocated


def empty_cache():
    """Do nothing: there is no device.

    >>> jaxgrad.mps.empty_cache()
    """


synchronize = empty_cache


def manual_seed(seed: int):
    """Do nothing: there is no device.

    >>> jaxgrad.mps.manual_seed(0)
    """


manual_seed_all = manual_seed
