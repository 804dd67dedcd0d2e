"""Views of tensors in graphs, and copies where their memory has another order."""

from __future__ import annotations

from .. import ops
from ..core.device import contiguous_format

aten = ops.aten


def viewed(input, shape):
    """The tensor in another shape; that of a copy where it has to be."""
    if [*input.shape] == [*shape]:
        return input
    try:
        return aten.view.default(input, [*shape])
    except RuntimeError:  # its memory has another order
        copy = aten.clone.default(input, memory_format=contiguous_format)
        return aten.view.default(copy, [*shape])
