"""The nodes of the recorded graph.

A `Node` holds the program of its gradients, what that program reads, and where each gradient goes.
It never holds its outputs, so a graph dies with its last handle. An edge is a pair: a node, and the
number of its output.
"""

from __future__ import annotations

import itertools
import threading
import weakref

# Increasing: gradients go to nodes with lower numbers only; descending order is topological.
next_sequence_number = itertools.count().__next__

# For what threads change together: a leaf's state, its node, its accumulated gradient.
leaf_lock = threading.RLock()

FREED = object()

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Node:
    """One recorded call.

    `reverse`: the program of its gradients; `saved`: the arrays that it reads beside them; `edges`:
    where its gradients go, one edge each.
    """

    __slots__ = ("__weakref__", "edges", "output_count", "retained", "reverse", "saved", "sequence")

    def __init__(self, reverse, saved, edges, output_count=1):
        self.retained = None
        self.output_count = output_count
        self.reverse = reverse
        self.saved = saved
        self.edges = edges
        self.sequence = next_sequence_number()

    def name(self) -> str:
        """The node's name, in PyTorch's words.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> (x * x).grad_fn.name()
        'MulBackward0'
        """
        return self.reverse.node_name

    @property
    def next_functions(self):
        """For each tensor that went in, the edge that its gradient goes along."""
        edges = iter(self.edges)
        return tuple(
            next(edges) if wanted else (None, 0)
            for wanted, array in zip(self.reverse.mask, self.reverse.program.inputs, strict=True)
            if not isinstance(array, type)
        )

    def outputs(self):
        """The abstract value of each gradient that arrives here, by the number of the output."""
        return self.reverse.program.outputs

    def retain(self, output_nr: int, tensor):
        """Have the gradient of an output kept in `tensor.grad`, while somebody holds the tensor."""
        self.retained = {**(self.retained or {}), output_nr: weakref.ref(tensor)}

    def __repr__(self):
        return f"<{self.name()} object at {id(self):#x}>"


class AccumulateGrad:
    """The node of a leaf: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("__weakref__", "sequence", "variable")

    edges = ()
    next_functions = ()
    output_count = 1
    retained = None

    def __init__(self, variable):
        self.variable = variable
        self.sequence = next_sequence_number()

    def name(self) -> str:
        return "AccumulateGrad"

    def outputs(self):
        return (self.variable._aval,)

    def __repr__(self):
        return f"<AccumulateGrad object at {id(self):#x}>"
