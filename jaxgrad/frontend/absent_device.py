"""The common part of torch.xpu, torch.mps and torch.mtia, the modules of devices that jaxgrad does
not use.
"""

from __future__ import annotations

from ..core.device import default_device


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


def empty_cache():
    """Do nothing: there is no device.

    >>> jaxgrad.xpu.empty_cache()
    """


synchronize = empty_cache


def manual_seed(seed: int):
    """Do nothing: there is no device.

    >>> jaxgrad.mps.manual_seed(0)
    """


manual_seed_all = manual_seed


def get_rng_state_all() -> list:
    """Return an empty list: there is no device.

    >>> jaxgrad.xpu.get_rng_state_all()
    []
    """
    return []


def set_rng_state_all(new_states):
    """Do nothing for an empty list. Raises NotImplementedError for the state of a device."""
    for _ in new_states:
        refuse()


def refuse(*args, **kwargs):
    """Raise NotImplementedError: there is no such device."""
    raise NotImplementedError(
        f"JAX has found no such device: new tensors are on {default_device().type}. Ask "
        "is_available() before, or use torch.accelerator, which names the device that there is"
    )


current_device = set_device = get_device_name = get_device_properties = refuse
get_device_capability = reset_peak_memory_stats = reset_accumulated_memory_stats = refuse
get_rng_state = set_rng_state = memory_stats = mem_get_info = current_stream = set_stream = refuse


class device:
    """A block on a device that is absent. Raises NotImplementedError on entry, but for None and -1,
    which stand for no device.
    """

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        if self.device is not None and self.device != -1:
            refuse()

    def __exit__(self, *exception):
        return False
