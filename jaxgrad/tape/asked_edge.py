"""The edge of a tensor for who asks for its own gradient: by a hook, `retain_grad`, `inputs=`.

Where the tensor is a result of a compiled call, and other results of the call depend on it, this is
another edge than that of the call's node, at which no gradients of these others arrive.
"""

from __future__ import annotations

from .node import Node


def find_edge(tensor, is_asked: bool = True):
    """The tensor, which gets the edge at which all of its gradient arrives: see `Node.edge_at`."""
    node = tensor._grad_fn
    if isinstance(node, Node):
        edge = node.edge_at(tensor._nr, is_asked)
        if edge[0] is not node:
            tensor._node, tensor._nr = edge
    return tensor
