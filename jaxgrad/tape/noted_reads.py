"""Properties of tensors that no abstract value has, such as the offset in a storage.

A program that reads one of a tensor from outside holds for tensors with the same alone.
"""

from __future__ import annotations

from . import mode


def noted_read(tensor, read):
    """What `read(tensor)` gives: outside, where a function that is being captured got the tensor
    from there.
    """
    scope = mode.scope.get()
    return read(tensor) if scope is None else scope.read_of(tensor, read)


def history_of(tensor) -> tuple:
    """What a captured function may read of the history of a tensor that was computed."""
    node, number = tensor._grad_fn, tensor._output_nr
    # not the node itself: those of two calls are never the same
    return node.name(), number, node.retained_at(number) is tensor
