"""The accelerator of this process, a GPU or a TPU, as torch.accelerator.

>>> jaxgrad.accelerator.is_available() == (jaxgrad.accelerator.device_count() > 0)
True
"""

from __future__ import annotations

from .core.device import as_device, device, devices_of, wait_for
from .core.missing_names import missing_in

TYPES = ("cuda", "tpu")


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the kind of accelerator that JAX has found, without an index; None for none."""
    found = [name for name in TYPES if devices_of(name)]
    return device(found[0]) if found else None


def is_available() -> bool:
    """Return whether JAX has found an accelerator."""
    return current_accelerator() is not None


def device_count() -> int:
    """Return how many accelerators JAX has found."""
    found = current_accelerator()
    return 0 if found is None else len(devices_of(found.type))


def current_device_index() -> int:
    """Return 0, the accelerator that a device without an index stands for. Raises RuntimeError if
    there is none.
    """
    _required()
    return 0


def synchronize(device=None, /):
    """Wait until all work that has been begun on an accelerator is done. Raises RuntimeError if
    there is none.
    """
    wait_for(_required() if device is None else as_device(device))


def _required() -> device:
    found = current_accelerator()
    if found is None:
        raise RuntimeError("there is no accelerator: JAX has found CPUs alone")
    return found


__getattr__ = missing_in(__name__)
