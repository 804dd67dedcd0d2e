"""Calls of nodes by users: `tensor.grad_fn(gradient)`."""

from __future__ import annotations

from ... import ops
from ...core.tracebacks import shows_users_frames
from ...tape.asked_edge import GradientEdge
from ...tape.mode import is_grad_enabled
from ...tape.node import AccumulateGrad, Node, ProgramNode
from ...tape.tensor import Tensor
from . import run_hooks
from .graph_task import Pass
from .root_arguments import gradient_for


@shows_users_frames
def call(node: Node, *gradients: Tensor | None):
    """The gradients that a node computes, one for each of its `next_functions`.

    gradients: the gradient of each differentiable output, in its shape or one that expands to it;
    None for zeros. The node of a leaf adds the gradient to the leaf's `.grad` and returns ().
    Neither hooks of the node nor of its outputs run.

    Raises TypeError for another number of gradients and for objects that are not tensors,
    RuntimeError for other shapes and for a freed graph.

    >>> y = jaxgrad.tensor([1.0, 2.0], requires_grad=True) * 3
    >>> with jaxgrad.no_grad():
    ...     y.grad_fn(jaxgrad.ones(2))
    (tensor([3., 3.]), None)
    """
    run = Pass(retain_graph=True, create_graph=is_grad_enabled())
    carried = [run.carried(gradient) for gradient in _gradients_of_outputs(node, gradients)]
    if isinstance(node, AccumulateGrad):
        if carried[0] is not None:
            run.accumulate(node.variable, carried[0])
            run_hooks.accumulated(node.variable)
        return ()
    results = run.execute(node, carried)
    results = [results] if len(node.edges) == 1 else results
    input_gradients = run_hooks.for_each_input(node, [run.as_tensor(result) for result in results])
    return input_gradients[0] if len(input_gradients) == 1 else input_gradients


def _gradients_of_outputs(node, gradients) -> list[Tensor | None]:
    """A gradient or None for each output of a node, from those of its differentiable outputs."""
    count = node.output_count
    places = range(count)
    if isinstance(node, ProgramNode):
        places = node.reverse.program.differentiable_outputs
    if len(gradients) != len(places):
        raise TypeError(
            f"expected {len(places)} arguments, got {len(gradients)} instead: {node.name()} takes "
            "the gradient of each differentiable output, None for zeros"
        )
    output_gradients = [None] * count
    for position, (place, gradient) in enumerate(zip(places, gradients, strict=True)):
        if gradient is None:
            continue
        if not isinstance(gradient, Tensor):
            raise TypeError(
                f"argument {position} is not a Variable but a {type(gradient).__name__}: "
                f"{node.name()} takes tensors or None"
            )
        expanded = _expanded(node, place, gradient)
        output_gradients[place] = gradient_for(position, GradientEdge(node, place), expanded)
    return output_gradients


def _expanded(node, place, gradient):
    """A gradient, expanded to the shape of an output if it can be."""
    shape = node.outputs()[place].shape
    lead = len(shape) - gradient.ndim
    fits = lead >= 0 and all(
        extent in (1, wanted) for extent, wanted in zip(gradient.shape, shape[lead:], strict=True)
    )
    return ops.expand(gradient, shape) if fits and gradient.shape != shape else gradient


Node.__call__ = call
