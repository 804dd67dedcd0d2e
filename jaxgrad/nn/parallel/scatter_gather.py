"""Batches in pieces, one for each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import ops
from ...core.device import DeviceLike
from ...names.missing import missing_in
from ...tape.tensor import Tensor


def scatter(inputs: Any, target_gpus: Sequence, dim: int = 0) -> list:
    """Split the tensors in lists, tuples and dicts into a piece for each device.

    inputs: any value; what is no tensor goes to each device. target_gpus: the devices, as `to`
    takes them. dim: the dimension that is split.

    >>> jaxgrad.nn.parallel.scatter((jaxgrad.arange(3), "a"), ["cpu", "cpu"])
    [(tensor([0, 1]), 'a'), (tensor([2]), 'a')]
    """
    if isinstance(inputs, Tensor):
        pieces = ops.chunk(inputs, len(target_gpus), dim)
        return [piece.to(device) for piece, device in zip(pieces, target_gpus, strict=False)]
    if not isinstance(inputs, list | tuple | dict) or not inputs:
        return [inputs] * len(target_gpus)
    values = inputs.values() if isinstance(inputs, dict) else inputs
    pieces = zip(*(scatter(value, target_gpus, dim) for value in values), strict=False)
    return [_like(inputs, piece) for piece in pieces]


def gather(outputs: Sequence, target_device: DeviceLike, dim: int = 0) -> Any:
    """Join the results of several devices on one: tensors, and lists, tuples and dicts of them.

    outputs: the results, of one structure. target_device: as `to` takes it, or None for that of the
    first. dim: the dimension along which tensors are joined; those without one become vectors.

    >>> jaxgrad.nn.parallel.gather([jaxgrad.ones(1), jaxgrad.zeros(2)], "cpu")
    tensor([1., 0., 0.])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        device = first.device if target_device is None else target_device
        pieces = [output.to(device) for output in outputs]
        return ops.cat([piece.view(1) if piece.ndim == 0 else piece for piece in pieces], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(output.keys() != first.keys() for output in outputs):
            raise ValueError("All dicts must have the same keys")
        parts = [[output[key] for output in outputs] for key in first]
    else:
        parts = zip(*outputs, strict=True)
    return _like(first, [gather(part, target_device, dim) for part in parts])


def _like(value, items):
    """A container like another one, with other items."""
    if isinstance(value, dict):
        return type(value)(zip(value, items, strict=True))
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


__getattr__ = missing_in(__name__)
