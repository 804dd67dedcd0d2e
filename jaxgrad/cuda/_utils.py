"""The index of a GPU that an argument names, as in torch.cuda._utils."""

from __future__ import annotations

from ..core.device import as_device, current_index
from ..names.missing import missing_in


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the index of a GPU.

    optional: whether None, and "cuda" without an index, are the current GPU. allow_cpu: whether a
    CPU is -1. Raises ValueError for any other device, and for None.

    >>> jaxgrad.cuda._utils._get_device_index("cuda:1")
    1
    """
    if isinstance(device, int):
        return device
    place = None if device is None else as_device(device)
    if place is not None and place.type == "cpu" and allow_cpu:
        return -1
    if place is not None and place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    index = None if place is None else place.index
    if index is None and not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return current_index("cuda") if index is None else index


__getattr__ = missing_in(__name__)
