"""The residuals of nodes as tensors."""

from __future__ import annotations

from ...tape import dual
from ...tape.tensor import wrap


def saved_tensors(node, saved) -> list:
    """A node's residuals as tensors with their history.

    Saved inputs get the node's edges, saved outputs the node itself.
    """
    reverse, saved = node.reverse, iter(saved)
    edges = dict(zip(reverse.wanted, node.edges, strict=True))
    tensors = [_tensor_at(next(saved), edges.get(i)) for i in reverse.saved_inputs]
    differentiable = reverse.program.differentiable_outputs
    outputs = [
        _tensor_at(next(saved), (node, i) if i in differentiable else None)
        for i in reverse.saved_outputs
    ]
    if node.extras is None or node.extras.tangents is None:
        return tensors + outputs
    return list(map(dual.restore, tensors + outputs, node.extras.tangents))


def _tensor_at(array, edge):
    """A residual as a tensor; a number stays a number."""
    if not hasattr(array, "shape"):
        return array
    if edge is None:
        return wrap(array)
    return wrap(array, None, True, *edge)
