"""Sparse gradients of dense leaves, of `embedding(sparse=True)` and `gather(sparse_grad=True)`.

A `SparseGradient` node stands for the node of a lookup. To a leaf it sends a sparse tensor, with an
element for each lookup; everywhere else it runs the node, whose gradient is dense. So only leaves
and the ends of `autograd.grad` meet sparse gradients. A `LeafGradient` is such a node for any class
of gradients (`CARRIED` in tape/sparse_tensor.py), such as those of `masked.as_masked_tensor`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...storage.alias import assign
from ...tape.node import FREED, SECOND_TIME, AccumulateGrad, Node, ProgramNode, next_sequence_number
from ...tape.sparse_tensor import is_sparse, sparse
from ...tape.tensor import (
    Tensor,
    abstract_value,
    known_leaf_state,
    node_or_mark,
    output_number,
    set_node,
    wrap,
)
from ...tape.version_counter import CheckedNode


class LeafGradient(Node):
    """A node whose gradient for a leaf is of another class.

    `node`: the node of the dense gradient; `of_leaf`: computes the gradient of a leaf from the
    gradient of the output, a tensor.
    """

    def __init__(self, node: ProgramNode, name: str, of_leaf: Callable):
        self.node, self._name, self.of_leaf = node, name, of_leaf
        self.edges, self.output_count, self.extras = node.edges, 1, None
        self.sequence = next_sequence_number()

    def name(self) -> str:
        return self._name

    @property
    def next_functions(self):
        return self.node.next_functions

    @property
    def is_freed(self) -> bool:
        return self.node.is_freed

    def outputs(self):
        return self.node.outputs()

    def run(self, run, gradients):
        """The gradient for the engine: of another class where a leaf gets it."""
        target = self.edges[0][0]
        is_leaf = type(target) is AccumulateGrad and not is_sparse(target.variable)
        if not (run.takes_sparse and is_leaf) or gradients[0] is None:
            return run.execute(self.node, gradients)
        if self.node.saved is FREED:
            raise RuntimeError(SECOND_TIME)
        gradient = self.leaf_gradient(run, run.as_tensor(gradients[0]))
        if not run.retain_graph:
            self.node.saved, self.of_leaf = FREED, None
        return gradient

    def leaf_gradient(self, run, gradient):
        return self.of_leaf(gradient)


class SparseGradient(LeafGradient):
    """The node of a lookup in a tensor.

    `of_leaf`: computes the size, the indices and the values of the sparse gradient, and whether it
    is coalesced, which a `Padding` says where a trace holds more elements than the gradient has.
    """

    def leaf_gradient(self, run, gradient):
        size, indices, values, is_coalesced = self.of_leaf(gradient)
        # a gradient of its own, which shares no memory with one that the user gave
        values = values.clone() if run.tensors else wrap(values._array)
        return sparse(values, indices, size, is_coalesced)


def give(output: Tensor, name: str, of_leaf: Callable, kind: type = SparseGradient):
    """Let an operation, just recorded, send gradients of another class to a leaf."""
    if type(node_or_mark(output)) in (ProgramNode, CheckedNode):
        node = kind(node_or_mark(output), name, of_leaf)
        set_node(output, node, output_number(output))


def total(run, first, second):
    """The sum of two gradients for the engine, at least one of them sparse: sparse if both are."""
    first, second = (x if isinstance(x, Tensor) else wrap(x) for x in (first, second))
    if not is_sparse(second):
        first, second = second, first  # a sum of a sparse and a dense tensor raises
    return run.carried(first + second)


def accumulate(run, leaf: Tensor, before: Tensor | None, gradient):
    """Add to the `.grad` of a dense leaf, where it or the gradient is sparse.

    A dense `.grad` gets the sparse gradient in place, as in PyTorch.
    """
    if before is None:
        grad = gradient
    else:
        grad = total(run, before, gradient)
        shown = abstract_value(leaf if is_sparse(before) else before)
        grad = grad if isinstance(grad, Tensor) else wrap(grad, shown)
    if before is None or run.create_graph or is_sparse(before):
        known_leaf_state(leaf).grad = grad
        return
    run.before.save_value(before)
    assign(before, grad, False)
