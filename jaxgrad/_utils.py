"""Helpers of PyTorch's that programs call."""

from __future__ import annotations

from .core import dtypes
from .core.device import as_device
from .core.missing_names import missing_in


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device, 0 where it has none; -1 for a CPU.

    Raises ValueError for a CPU unless `allow_cpu`, and for None unless `optional`.
    """
    if device is None:
        if optional:
            return 0
        raise ValueError("Expected a torch.device with a specified index or an integer, got: None")
    found = as_device(device)
    if found.type == "cpu" and not allow_cpu:
        raise ValueError(f"Expected a non cpu device, but got: {found}")
    return -1 if found.type == "cpu" else found.index or 0


def _element_size(dtype: dtypes.dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


__getattr__ = missing_in(__name__)
