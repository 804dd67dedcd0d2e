"""The nodes of the recorded graph.

A node has an edge for each gradient that it computes: a pair (node, output number). It never holds
its outputs, so a graph dies with its last handle. Most nodes are `ProgramNode`s: a reverse program
and its residuals. A leaf has an `AccumulateGrad`, and a call of a user's Function is a node too
(`autograd/function.py`).
"""

from __future__ import annotations

import functools
import itertools
import weakref

from . import handle_lock
from .hooks import Hooks, register_in_transform

# inlined: the accessors of tape/tensor.py

# Edges lead to nodes with lower numbers only, so descending order is topological.
next_sequence_number = itertools.count().__next__

# not None or (): a node that saves nothing is not freed
FREED = object()

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


class Extras:
    """The state that few nodes have.

    `tensor_hooks`: the hooks of output tensors, by output number; `retained`: weak references to
    output tensors that retain their `.grad`, likewise; `pre_hooks`, `post_hooks`: the node's own;
    `metadata`: the user's dict; `objects`: objects that a replay of the call may need; `packed`:
    packed residuals, by position; `tangents`: the saved tensors that have tangents, by position.
    """

    __slots__ = (
        "metadata",
        "objects",
        "packed",
        "post_hooks",
        "pre_hooks",
        "retained",
        "tangents",
        "tensor_hooks",
    )

    def __init__(self):
        self.metadata = self.packed = self.post_hooks = self.pre_hooks = None
        self.objects = self.retained = self.tangents = self.tensor_hooks = None


class Node:
    """One recorded call, the type of every `tensor.grad_fn`.

    `edges`: the target of each gradient; `output_count`: the number of gradients that arrive;
    `extras`: an `Extras` or None; `sequence`: the node's number.

    >>> x = jaxgrad.ones(2, requires_grad=True)
    >>> isinstance((2 * x).grad_fn, jaxgrad.autograd.graph.Node)
    True
    """

    __slots__ = ("__weakref__",)

    reverse = None  # the program of a ProgramNode; other nodes have `run(pass, gradients)`
    saved = ()
    _residuals = ()  # the attributes that a pass frees
    named = True  # whether the class has the node's name
    # whether a missing gradient goes on: as None to hooks of outputs, and along the edges
    tells_none = True
    _fills_missing = False  # whether it gets zeros in place of a missing gradient

    def name(self) -> str:
        """PyTorch's name of the node.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> (x * x).grad_fn.name()
        'MulBackward0'
        """
        raise NotImplementedError(f"{type(self).__name__}.name")

    @property
    def next_functions(self):
        """The edge of each input tensor: a tuple of pairs (node, output number).

        A tensor that does not require grad has `(None, 0)`.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> [(node and node.name(), number) for node, number in (x * 2).grad_fn.next_functions]
        [('AccumulateGrad', 0), (None, 0)]
        """
        edges = [node.edge_at(output_nr, False) for node, output_nr in self.edges]
        return tuple([(shown(node), output_nr) for node, output_nr in edges])

    @property
    def metadata(self) -> dict:
        """A dict for the user's own notes on the node."""
        extras = self.more()
        if extras.metadata is None:
            extras.metadata = {}
        return extras.metadata

    def more(self) -> Extras:
        """The node's extras, created at the first use."""
        if self.extras is None:
            with handle_lock.lock:
                self.extras = self.extras or Extras()
        return self.extras

    @property
    def is_freed(self) -> bool:
        """Whether the residuals were freed."""
        return self.saved is FREED

    def outputs(self):
        """The abstract value of each gradient that arrives here, by output number."""
        raise NotImplementedError(f"{type(self).__name__}.outputs")

    def edge_at(self, output_nr: int, is_asked: bool = True):
        """The edge at which all of the gradient of an output arrives: another one where the output
        is a result of a compiled call on which another result depends.

        is_asked: whether the gradient is asked for. Raises RuntimeError where it never arrives.
        """
        return self, output_nr

    def retain(self, output_nr: int, tensor):
        """Fill `tensor.grad` with the gradient of an output, as long as the tensor lives."""
        extras = self.more()
        # a new dict, since a pass in another thread may read the old one
        extras.retained = {**(extras.retained or {}), output_nr: weakref.ref(tensor)}

    def release(self, output_nr: int):
        """Undo `retain` for an output."""
        retained = self.extras.retained
        self.extras.retained = {k: v for k, v in retained.items() if k != output_nr}

    def retained_at(self, output_nr: int):
        """The tensor that retains the gradient of an output, or None."""
        extras = self.extras
        kept = None if extras is None else (extras.retained or {}).get(output_nr)
        return None if kept is None else kept()

    def hooks_of(self, output_nr: int) -> Hooks:
        """The hooks of the output tensor with this number."""
        extras = self.more()
        hooks = (extras.tensor_hooks or {}).get(output_nr)
        if hooks is None:
            hooks = Hooks()
            extras.tensor_hooks = {**(extras.tensor_hooks or {}), output_nr: hooks}
        return hooks

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after each run of the node.

        grad_inputs: the gradients that it computed, a tuple with one for each of `next_functions`;
        grad_outputs: the tuple of gradients that arrived. Both hold tensors or None. A tuple that
        `fn` returns replaces `grad_inputs`. Returns a handle whose `remove()` removes the hook.
        Raises TypeError if `fn` is not callable.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> y = (x * x).sum()
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: print(grad_outputs))
        >>> y.backward()
        (tensor(1.),)
        """
        extras = self.more()
        extras.post_hooks = Hooks() if extras.post_hooks is None else extras.post_hooks
        return register_in_transform(extras.post_hooks, fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before each run of the node, with the gradients that arrived.

        A tuple of the same length that `fn` returns replaces them. Returns a handle whose
        `remove()` removes the hook. Raises TypeError if `fn` is not callable.

        >>> x = jaxgrad.ones(2, requires_grad=True)
        >>> y = (x * x).sum()
        >>> handle = y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
        >>> y.backward()
        >>> x.grad
        tensor([20., 20.])
        """
        extras = self.more()
        extras.pre_hooks = Hooks() if extras.pre_hooks is None else extras.pre_hooks
        return register_in_transform(extras.pre_hooks, fn)

    def _sequence_nr(self) -> int:
        return int(self.sequence)  # a fraction in the graph of a call that was opened

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

    `reverse`: the program of its gradients; `saved`: the residuals.
    """

    __slots__ = ("edges", "extras", "output_count", "reverse", "saved", "sequence")
    _residuals = ("saved",)
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
    # no slots of its own: Python assigns `__class__` only between classes of one layout
    members = {"__slots__": (), "__module__": base.__module__, "named": True}
    return type(name, (base,), members)


def shown(node: Node) -> Node:
    """The node with a class of its own name, since code reads `type(node).__name__`.

    Only nodes that users see get that class: the engine is faster on nodes of one class.
    """
    if not node.named:
        node.__class__ = _class_of(type(node), node.name())
    return node


class NotImplementedNode(Node):
    """The node of a value whose derivative is not defined: to run it raises RuntimeError.

    shown: the abstract value; cause: the text of the error.
    """

    __slots__ = ("cause", "extras", "sequence", "shown")

    edges = ()
    output_count = 1

    def __init__(self, shown, cause: str):
        self.shown, self.cause, self.extras = shown, cause, None
        self.sequence = next_sequence_number()

    def name(self) -> str:
        return "NotImplemented"

    def outputs(self):
        return (self.shown,)

    def run(self, _graph_task, _gradients):
        raise RuntimeError(self.cause)


class AccumulateGrad(Node):
    """The node of a leaf: adds the gradient to the leaf's `.grad`."""

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
