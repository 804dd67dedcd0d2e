"""Properties of tensors that are no part of abstract values, such as the offset in a storage.

If a program reads such a property of a tensor from outside, it serves only tensors with the same
value.
"""

from __future__ import annotations

from . import mode


def noted_read(tensor, read):
    """The result of `read(tensor)`: in a trace, of the tensor as it is outside of the captured
    function.
    """
    scope = mode.scope.get()
    return read(tensor) if scope is None else scope.read_of(tensor, read)


def history_of(tensor) -> tuple:
    """The part of a computed tensor's history that a captured function may read."""
    node, number = tensor._grad_fn, tensor._output_nr
    # not the node itself: those of two calls are never the same
    return node.name(), number, node.retained_at(number) is tensor
