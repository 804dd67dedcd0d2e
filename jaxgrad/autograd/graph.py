"""The recorded graph as torch.autograd.graph shows it: nodes and edges."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..nodes import Node as Node
from ..tensor import Tensor, edge_of


class GradientEdge(NamedTuple):
    """A place that gradients arrive at; `backward` and `grad` take it in place of a tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that the gradient of a tensor arrives at.

    Raises RuntimeError for a tensor that does not require grad.

    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> edge = jaxgrad.autograd.graph.get_gradient_edge(x)
    >>> jaxgrad.autograd.grad(x * x, edge)
    (tensor(4.),)
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            f"gradients: one of shape {list(tensor.shape)}"
        )
    return GradientEdge(*edge_of(tensor))
