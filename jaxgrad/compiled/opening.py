"""Calls of compiled functions as the tape records them, and results of one call that depend on one
another.

A call of a compiled function is one node. If one of its results depends on another result, the
gradient of the latter never arrives at an edge of its own. Most programs do not ask for it. If one
does (by `retain_grad`, a hook, `inputs=`, `grad_fn`), the function is replayed on the inputs that
the nodes have saved, and the tape records the replay. From then on the nodes of the call pass
gradients on to the recorded graph, so tensors computed from the results before stay right.
"""

from __future__ import annotations

import weakref
from fractions import Fraction

import jax
import numpy as np

from ..capture.graph_input import seen_input
from ..capture.replay import Replay, output_of, part_of
from ..core import elementary
from ..core.aval import Aval, aval_of, tracing
from ..core.jax_internals import outside_of_traces
from ..core.pending import value_of
from ..tape import mode, node_annotations
from ..tape.node import FREED, SECOND_TIME, AccumulateGrad, Node, next_sequence_number
from ..tape.tensor import current, edge_of, known_edge_of, wrap
from ..tape.traversal import nodes_from
from .partition import CompiledCall, CompiledNode, CompiledReverse, LastingNode

# inlined: the accessors of tape/tensor.py


class RecordedCalls:
    """How the tape records the calls of an executable.

    `program`: the program that the nodes record; `reverses`: for each group of outputs with a
    history its reverse program, the numbers of the captured tensors that get a gradient, and the
    class of node.
    """

    def __init__(self, executable, inputs, arrays):
        """inputs, arrays: those of the first call."""
        self.trace, partition = executable.trace, executable.partition
        pullback = self.trace.pullback
        shown = [captured.aval for captured in self.trace.captured]
        shown += map(seen_input, inputs[len(shown) :])
        kept = [aval_of(arrays[number]) for number in partition.numbers]
        self.program = CompiledCall(executable, shown, pullback.avals, kept)
        roots, self.reverses = range(self.trace.output.roots), []
        for group in pullback.groups:
            numbers = group.leads_to if group.is_freed else group.reached
            mask = tuple(map(set(numbers).__contains__, range(len(shown))))
            present = tuple(map(set(group.outputs).__contains__, roots))
            reverse = CompiledReverse(self.program, mask, present)
            # so that its kernels count
            self.program.reverses[present] = reverse
            node_class = class_of_node(executable, group)
            self.reverses.append((group, reverse, numbers, node_class))

    def nodes(self, tensors, inputs, arrays) -> list:
        """For each output with a history its node, one for each group of the pullback. If the
        function has used up its graph, the saved arrays of the node are freed.
        """
        count, objects = self.trace.output.roots, self.trace.arguments.weak_objects
        nodes: list = [None] * count
        for group, reverse, numbers, node_class in self.reverses:
            saves = reverse.saves or node_class is PartlyFreedNode
            saved = [*inputs, *[arrays[n] for n in reverse.numbers]] if saves else []
            saved = FREED if group.is_freed and not saves else saved
            # the guards, or capture, have brought them up to date
            edges = [known_edge_of(tensors[number]) for number in numbers]
            node = node_class(reverse, saved, edges, count)
            if objects:
                node.more().objects = [reference() for reference in objects]
            for number in group.outputs:
                nodes[number] = node
        if self.trace.pullback.inner and len(self.reverses) > 1:
            link(nodes)
        return nodes


def class_of_node(executable, group):
    """The class of the nodes of calls of a program, for a group of outputs."""
    trace, is_lasting = executable.trace, not (group.is_freed or group.frees)
    # a program that deletes its inputs cannot be replayed
    may_replay = not (trace.modes.is_inner or executable.donation)
    if group.is_freed and may_replay and trace.pullback.is_partial:
        return PartlyFreedNode
    if not trace.pullback.inner:
        return LastingNode if is_lasting else CompiledNode
    if trace.modes.is_inner:
        return ClosedLastingNode if is_lasting else ClosedNode
    return OpenableLastingNode if is_lasting else OpenableNode


def link(nodes):
    """Tell nodes that they are those of one call."""
    nodes = {node for node in nodes if isinstance(node, Openable)}
    references = tuple(map(weakref.ref, nodes))
    for node in nodes:
        node.siblings = references


def open_call(node: Openable):
    """Record the computations of the call of a node, and lead all nodes of the call there."""
    nodes = [reference() for reference in getattr(node, "siblings", ())] or [node]
    # those from which a pass can start
    nodes = [sibling for sibling in nodes if sibling is not None and not sibling.is_freed]
    targets, compiled = {}, node.reverse_of_call.compiled
    for sibling in nodes:
        targets |= zip(sibling.reverse_of_call.wanted, sibling.ends, strict=True)
    packing = node_annotations.packing.set(compiled.trace.pullback.packing)
    token = mode.scope.set(None)
    try:
        with outside_of_traces(), tracing(wide=True):
            recording = Recording(compiled.trace, inputs_of(compiled, nodes), targets)
            edges = recording.edges_of_results(min(sibling.sequence for sibling in nodes))
    finally:
        mode.scope.reset(token)
        node_annotations.packing.reset(packing)
    for sibling in nodes:
        sibling.lead_to(edges)
    run = mode.current_pass.get()
    while run is not None:
        run.graph_has_grown()
        run = run.around


def inputs_of(compiled, nodes) -> list:
    """The inputs of a call. If no node has saved them, the gradients do not depend on them."""
    avals = compiled.recorded.program.inputs
    with jax.enable_x64(True):
        saved = next((node.saved for node in nodes if node.saved), None)
        if saved is None:
            saved = [elementary.filled(a, 0) if isinstance(a, Aval) else a() for a in avals]
        return list(map(as_array, saved[: len(avals)]))


def as_array(value):
    """An input, which may be a number, as an array of JAX. Not by a handle: a handle would replace
    a pending array or an array of the host, which counts as a write.
    """
    value = value_of(value)
    is_arrays = hasattr(value, "shape") and not isinstance(value, np.ndarray)
    return value if is_arrays else jax.numpy.asarray(value)


class Openable:
    """The mixin of nodes whose call can be opened. Once it is, `reverse` is None.

    `siblings`: weak references to all nodes of the call, unset if there are no others; `call`: once
    the call is opened, the former reverse program.
    """

    __slots__ = ()

    @property
    def reverse_of_call(self):
        """The reverse program of the compiled call."""
        return self.reverse or self.call

    @property
    def ends(self):
        """The edges of the captured tensors, before the call is opened."""
        return self.edges

    def edge_at(self, output_nr: int, is_asked: bool = True):
        """See `Node.edge_at`."""
        reverse = self.reverse_of_call
        if output_nr not in reverse.compiled.trace.pullback.inner or mode.scope.get() is not None:
            return self, output_nr
        if self.reverse is not None:
            if self.is_freed:
                self.refuse_partial(is_asked)
                return self, output_nr
            open_call(self)
        return self.edges[output_nr]

    def refuse_partial(self, is_asked: bool):
        """Raise RuntimeError if the gradient of a result is asked for that may arrive from another
        result, and the function has used up a part of the graph between them.
        """
        compiled = self.reverse.compiled
        if is_asked and compiled.donation and compiled.trace.pullback.is_partial:
            raise RuntimeError(
                f"{compiled.name}, compiled by jaxgrad.jit, has run a backward pass through the "
                "graph of this result, and has taken the memory of what it read: its gradient "
                "cannot be computed any more. Return it detached, or take the gradient inside of "
                "the function"
            )

    def lead_to(self, edges):
        """Pass gradients on to these edges, one for each result, from now on."""
        self.call, self.reverse, self.edges, self.saved = self.reverse, None, edges, ()
        if self.extras is not None:
            self.extras.objects = None

    def run(self, run, gradients):
        """Pass the gradients on, for the engine."""
        return gradients if len(gradients) > 1 else gradients[0]

    def name(self) -> str:
        return self.reverse_of_call.node_name

    def outputs(self):
        return self.reverse_of_call.program.outputs

    @property
    def next_functions(self):
        if self.reverse is None:
            return Node.next_functions.fget(self)
        return super().next_functions


class OpenableNode(Openable, CompiledNode):
    """The node of a call that can be opened."""

    __slots__ = ("call", "siblings")


class OpenableLastingNode(Openable, LastingNode):
    """The node of a call that can be opened and whose graph has saved nothing."""

    __slots__ = ("call", "siblings")


class PartlyFreedNode(Openable, Node):
    """The node of a result whose graph the function has used up in part. A pass that comes here
    opens the call: the recorded graph then has the part that the function has left.
    """

    __slots__ = (
        "call",
        "ends",
        "extras",
        "led_to",
        "output_count",
        "saved",
        "sequence",
        "siblings",
    )
    _residuals = ("saved",)
    named = False

    def __init__(self, reverse, saved, edges, output_count):
        self.call, self.saved, self.ends, self.led_to = reverse, saved, edges, None
        self.extras, self.output_count = None, output_count
        self.sequence = next_sequence_number()

    @property
    def edges(self):
        if self.led_to is None and mode.scope.get() is None and not self.is_freed:
            open_call(self)
        return self.led_to or self.ends

    def edge_at(self, output_nr: int, is_asked: bool = True):
        """See `Node.edge_at`."""
        edges = self.edges
        return (self, output_nr) if self.led_to is None else edges[output_nr]

    def lead_to(self, edges):
        """Pass gradients on to these edges, one for each result, from now on."""
        self.led_to, self.saved = edges, ()
        if self.extras is not None:
            self.extras.objects = None

    def run(self, run, gradients):
        """Pass the gradients on, for the engine."""
        if self.edges is self.ends:
            raise RuntimeError(SECOND_TIME)
        return super().run(run, gradients)


class Closed:
    """The mixin of nodes of a call for many examples, which the tape cannot replay as one."""

    __slots__ = ()

    def edge_at(self, output_nr: int, is_asked: bool = True):
        """See `Node.edge_at`."""
        compiled = self.reverse.compiled
        is_inner = output_nr in compiled.trace.pullback.inner and mode.scope.get() is None
        if is_inner and is_asked and not self.is_freed:
            raise RuntimeError(
                f"the gradient of a result of vmap({compiled.name}) on which another result "
                "depends, or that has hooks, does not arrive outside: compute the other result "
                "outside of the vmap, or the gradient inside"
            )
        return self, output_nr


class ClosedNode(Closed, CompiledNode):
    """The node of such a call."""

    __slots__ = ()


class ClosedLastingNode(Closed, LastingNode):
    """The node of such a call, whose graph has saved nothing."""

    __slots__ = ()


class EntryNode(Node):
    """The node at which the gradient of an input leaves a recorded graph: it passes the gradient on
    along its one edge.

    While the graph was recorded, it was the node of the leaf that stood for the input.
    """

    # those of an AccumulateGrad, whose place it takes
    __slots__ = ("extras", "sequence", "variable")
    output_count = 1
    tells_none = False

    @property
    def edges(self):
        return (self.variable,)

    def run(self, run, gradients):
        return gradients[0]

    def name(self) -> str:
        return "CompiledInput"

    def outputs(self):
        node, output_nr = self.variable
        return (node.outputs()[output_nr],)


class Recording(Replay):
    """A replay that the tape records, for the graph of its results.

    targets: by the number of a captured tensor the edge where its gradient goes.
    """

    def __init__(self, trace, inputs, targets):
        super().__init__(trace, inputs)
        self.traced, self.targets = trace, targets
        self.is_differentiated = False  # by the tape, not by JAX
        self.places: list[tuple] = []  # of captured tensors in the graph, before

    def recapture(self, captured, tensor):
        with self.outer_trace():
            node = None if tensor is None else current(tensor)._node
        if isinstance(node, Node):
            # its history may be another one by now
            self.places.append((tensor, node, tensor._nr))
            leaf = wrap(self.input_arrays["tensor", captured.number], tensor._aval, True)
            tensor._node, tensor._nr = edge_of(leaf)
        return super().recapture(captured, tensor)

    def restore(self):
        super().restore()
        for tensor, node, output_nr in self.places:
            tensor._node, tensor._nr = node, output_nr

    def edges_of_results(self, before: int) -> tuple:
        """The edges of the results with a history, in a graph whose nodes have numbers directly
        below `before`.
        """
        with self.open():
            roots = part_of(output_of(self.traced, self), "roots")
            ends = {n: self.edges[n] or edge_of(self.tensors[n]) for n in self.targets}
        edges = tuple([edge for edge, _, _ in roots])
        outer = {target[0] for target in self.targets.values()}
        for number, (node, _) in ends.items():
            if node not in outer:
                self.enter(node, self.targets[number])
        inside = sorted(
            nodes_from([node for node, _ in edges], lambda node: node not in outer),
            key=lambda node: node.sequence,
        )
        for place, node in enumerate(inside, 1):
            node.sequence = before - Fraction(len(inside) + 1 - place, len(inside) + 1)
        return edges

    def enter(self, node, target):
        """Let the node that stood for an input lead to its target."""
        if type(node) is not AccumulateGrad or node.sequence < self.outer.begun:
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, runs again for the gradient of a result on "
                "which another one depends, and a tensor that it read from outside has another "
                "history since: ask for the gradient (retain_grad, a hook) before it changes"
            )
        node.__class__, node.variable = EntryNode, target
