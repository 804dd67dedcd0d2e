"""The nodes of the recorded graph.

A node knows where each gradient that it gives goes: its edges, each a pair of a node and the number
of its output. It never holds its outputs, so a graph dies with its last handle. Most are
`ProgramNode`s, a recorded program and what its gradients are computed from; a leaf has an
`AccumulateGrad`, and a call of a user's Function is a node of its own (`autograd/function.py`).
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref

from .hooks import Hooks, register

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


class Extras:
    """What few nodes have.

    `tensor_hooks`: by an output's number the hooks of the tensor that came out there; `retained`:
    likewise the tensors whose `.grad` is to be filled; `pre_hooks`, `post_hooks`: the node's own;
    `metadata`: what users note on it; `packed`: by position what saved-tensor hooks made of a saved
    array; `tangents`: by position the tensors with tangents that were saved.
    """

    __slots__ = (
        "metadata", "packed", "post_hooks", "pre_hooks", "retained", "tangents", "tensor_hooks",
    )  # fmt: skip

    def __init__(self):
        self.metadata = self.packed = self.post_hooks = self.pre_hooks = None
        self.retained = self.tangents = self.tensor_hooks = None


class Node:
    """One recorded call; `isinstance(tensor.grad_fn, Node)` holds for every node.

    `edges`: where its gradients go, one edge for each; `output_count`: how many gradients arrive;
    `extras`: what few nodes have; `sequence`: its number.
    """

    __slots__ = ("__weakref__",)

    reverse = None  # the program that a ProgramNode runs; others have `run(pass, gradients)`
    saved = ()
    named = True  # whether its class has its name
    tells_none = True  # whether hooks of outputs are told that there is no gradient

    def name(self) -> str:
        """The node's name, in PyTorch's words.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> (x * x).grad_fn.name()
        'MulBackward0'
        """
        raise NotImplementedError(f"{type(self).__name__}.name")

    @property
    def next_functions(self):
        """For each tensor that went in, the edge that its gradient goes along."""
        return tuple([(shown(node), output_nr) for node, output_nr in self.edges])

    @property
    def metadata(self) -> dict:
        """A dict for whoever wants to note something on the node."""
        extras = self.more()
        if extras.metadata is None:
            extras.metadata = {}
        return extras.metadata

    def more(self) -> Extras:
        """The node's extras, made when they are first asked for."""
        if self.extras is None:
            with leaf_lock:
                self.extras = self.extras or Extras()
        return self.extras

    @property
    def is_freed(self) -> bool:
        """Whether what it has saved is gone."""
        return self.saved is FREED

    def outputs(self):
        """The abstract value of each gradient that arrives here, by the number of the output."""
        raise NotImplementedError(f"{type(self).__name__}.outputs")

    def retain(self, output_nr: int, tensor):
        """Have the gradient of an output kept in `tensor.grad`, while somebody holds the tensor."""
        extras = self.more()
        extras.retained = {**(extras.retained or {}), output_nr: weakref.ref(tensor)}

    def retained_at(self, output_nr: int):
        """The tensor whose `.grad` is filled with the gradient of an output, None if none."""
        extras = self.extras
        kept = None if extras is None else (extras.retained or {}).get(output_nr)
        return None if kept is None else kept()

    def hooks_of(self, output_nr: int) -> Hooks:
        """The hooks of the tensor that came out at a number."""
        extras = self.more()
        hooks = (extras.tensor_hooks or {}).get(output_nr)
        if hooks is None:
            hooks = Hooks()
            extras.tensor_hooks = {**(extras.tensor_hooks or {}), output_nr: hooks}
        return hooks

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after each run of the node: what it computed, and
        what had arrived. A tuple that `fn` returns takes the place of `grad_inputs`.

        Gives a handle whose `remove()` takes the hook away again.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> y = (x * x).sum()
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: print(grad_outputs))
        >>> y.backward()
        (tensor(1.),)
        """
        extras = self.more()
        extras.post_hooks = Hooks() if extras.post_hooks is None else extras.post_hooks
        return register(extras.post_hooks, fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before each run of the node, with what has arrived. A tuple that
        `fn` returns takes its place.
        """
        extras = self.more()
        extras.pre_hooks = Hooks() if extras.pre_hooks is None else extras.pre_hooks
        return register(extras.pre_hooks, fn)

    def _sequence_nr(self) -> int:
        return self.sequence

    @property
    def _input_metadata(self):
        return tuple(self.outputs())

    @property
    def requires_grad(self) -> bool:
        return True

    def __repr__(self):
        return f"<{self.name()} object at {id(self):#x}>"


class ProgramNode(Node):
    """A recorded program.

    `reverse`: the program of its gradients; `saved`: the arrays that it reads beside them.
    """

    __slots__ = ("edges", "extras", "output_count", "reverse", "saved", "sequence")
    named = False

    def __init__(self, reverse, saved, edges, output_count=1):
        self.extras = None
        self.output_count = output_count
        self.reverse = reverse
        self.saved = saved
        self.edges = edges
        self.sequence = next_sequence_number()

    def name(self) -> str:
        return self.reverse.node_name

    @property
    def next_functions(self):
        edges = dict(zip(self.reverse.wanted, super().next_functions, strict=True))
        return tuple(edges.get(position, (None, 0)) for position in self.reverse.shown)

    def outputs(self):
        return self.reverse.program.outputs


@functools.cache
def _class_of(base: type[Node], name: str) -> type[Node]:
    members = {"__slots__": (), "__module__": base.__module__, "named": True}
    return type(name, (base,), members)


def shown(node: Node) -> Node:
    """A node as users see it: its class has its name, as code looks at `type(node).__name__`.

    It is given that class only here, since the engine is faster on nodes of one class.
    """
    if not node.named:
        node.__class__ = _class_of(type(node), node.name())
    return node


class AccumulateGrad(Node):
    """The node of a leaf: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("extras", "sequence", "variable")

    edges = ()
    output_count = 1

    def __init__(self, variable):
        self.extras = None
        self.variable = variable
        self.sequence = next_sequence_number()

    def name(self) -> str:
        return "AccumulateGrad"

    def outputs(self):
        return (self.variable._aval,)
