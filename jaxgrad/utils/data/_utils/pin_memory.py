"""`pin_memory=True`: the tensors of a batch go to the accelerator, while it computes; batches of
the user's own classes are pinned by their method `pin_memory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax

from ....core.device import accelerator, as_device, jax_device
from ....frontend.array_creation import finish, from_host
from ....frontend.methods import numbers_of
from ....names.missing import missing_in
from ....tape.tensor import Tensor
from .collate import like


def place_of(loader) -> jax.Device | None:
    """The device of JAX to which the batches of a loader go: that of `pin_memory_device`, by
    default the current accelerator; None without `pin_memory` or an accelerator.
    """
    current = accelerator()
    if not loader.pin_memory or current is None:
        return None
    return jax_device(as_device(getattr(loader, "pin_memory_device", "") or current))


def pin_memory(data, device=None):
    """The batch with its tensors on a device, and with what the method `pin_memory` of its other
    objects returns in their place.

    device: None leaves tensors as they are, and so are those that are on another accelerator. JAX
    begins to copy, and does not wait.
    """
    if isinstance(data, Tensor):
        return data if device is None else _moved(data, device)
    if callable(getattr(data, "pin_memory", None)):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return like(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        pinned = [pin_memory(element, device) for element in data]
        return type(data)(*pinned) if hasattr(data, "_fields") else like(data, pinned)
    return data


def _moved(tensor, place):
    is_leaf_of_cpu = type(tensor) is Tensor and tensor.device.type == "cpu"
    if not is_leaf_of_cpu or tensor.requires_grad:
        return tensor
    numbers = numbers_of(tensor, "pin_memory")
    place = place if isinstance(place, jax.Device) else jax_device(as_device(place))
    # not by `to`: so the tensor still meets others, as one on the CPU does in PyTorch
    with jax.default_device(place):
        return finish(from_host(numbers))


__getattr__ = missing_in(__name__)
