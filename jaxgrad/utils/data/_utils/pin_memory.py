"""`pin_memory=True`: batches of the user's own classes are pinned by their method `pin_memory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....names.missing import missing_in
from ....tape.tensor import Tensor
from .collate import like


def pin_memory(data, device=None):
    """The batch with what the method `pin_memory` of its objects returns in their place.

    Tensors stay as they are, since JAX chooses the memory of its transfers. device: without effect.
    """
    if isinstance(data, Tensor):
        return data
    if callable(getattr(data, "pin_memory", None)):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return like(data, {key: pin_memory(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        pinned = [pin_memory(element) for element in data]
        return type(data)(*pinned) if hasattr(data, "_fields") else like(data, pinned)
    return data


__getattr__ = missing_in(__name__)
