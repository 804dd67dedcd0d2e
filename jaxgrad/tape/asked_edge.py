"""The edge at which the whole gradient of a tensor arrives, for a hook, `retain_grad` or `inputs=`.

If the tensor is a result of a compiled call and other results of the call depend on it, their
gradients do not arrive at the edge of the call's node. The tensor then has another edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .node import Node


class GradientEdge(NamedTuple):
    """An output of a node, to which gradients go; `backward` and `grad` accept it as a tensor.

    node: the node.
    output_nr: the number of its output.
    ownership_token: kept for PyTorch's code; None.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> edge = jaxgrad.autograd.graph.get_gradient_edge(x * x)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


# inlined: the accessors of tape/tensor.py


def find_edge(tensor, is_asked: bool = True):
    """Returns the tensor, after giving it the edge at which all of its gradient arrives: see
    `Node.edge_at`.
    """
    node = tensor._grad_fn
    if isinstance(node, Node):
        edge = node.edge_at(tensor._nr, is_asked)
        if edge[0] is not node:
            tensor._node, tensor._nr = edge
    return tensor
