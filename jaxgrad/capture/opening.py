"""Calls of compiled functions as the tape records them, and results of one call that depend on one
another.

A call of a compiled function is one node, so the gradient of a result on which another result
depends never arrives at an edge of its own. Most programs do not ask for it. Where one does (by
`retain_grad`, a hook, `inputs=`, `grad_fn`), the function is replayed on the inputs that the nodes
have saved, recorded by the tape. The nodes of the call pass gradients on to the recorded graph from
then on, so what was computed from its results in between stays right.
"""

from __future__ import annotations

import weakref
from fractions import Fraction

import jax

from ..autograd._engine import graph_task
from ..core import executor
from ..core.aval import Aval, aval_of, tracing
from ..tape import mode, node_annotations
from ..tape.node import FREED, AccumulateGrad, Node
from ..tape.tensor import current, edge_of, wrap
from ..tape.traversal import nodes_from
from .graph_input import seen_input
from .partition import CompiledCall, CompiledNode, CompiledReverse, LastingNode
from .replay import Replay, output_of, part_of


class RecordedCalls:
    """The calls of an executable, as the tape records them.

    `program`: what the nodes record; `reverses`: for each group of outputs with a history its
    reverse program, and the numbers of the captured tensors that get a gradient.
    """

    def __init__(self, executable, inputs, arrays):
        """inputs, arrays: those of the first call."""
        self.trace, partition = executable.trace, executable.partition
        # no call of a program of one example of many
        self.may_open = executable.runs_jaxpr and not self.trace.is_inner
        pullback = self.trace.pullback
        shown = [captured.aval for captured in self.trace.captured]
        shown += map(seen_input, inputs[len(shown) :])
        kept = [aval_of(arrays[number]) for number in partition.numbers]
        self.program = CompiledCall(executable, shown, pullback.avals, kept)
        tracked = [captured.number for captured in self.trace.captured if captured.tracked]
        roots, self.reverses = range(self.trace.output.roots), []
        for group in pullback.groups:
            numbers = tracked if group.is_freed else group.reached
            mask = tuple(map(set(numbers).__contains__, range(len(shown))))
            present = tuple(map(set(group.outputs).__contains__, roots))
            reverse = CompiledReverse(self.program, mask, present)
            # so that its kernels count
            self.program.reverses[present] = reverse
            self.reverses.append((group, reverse, numbers))

    def nodes(self, tensors, inputs, arrays) -> list:
        """For each output with a history its node, one for each group of the pullback. Where the
        function has used its graph up, the saved arrays of the node are freed.
        """
        count, objects = self.trace.output.roots, self.trace.arguments.weak_objects
        nodes: list = [None] * count
        call = self.trace.pullback.inner and self.openable_call()
        for group, reverse, numbers in self.reverses:
            saved = [*inputs, *[arrays[n] for n in reverse.numbers]] if reverse.saves else []
            saved = FREED if group.is_freed else saved
            node_class = CompiledNode if group.is_freed or group.frees else LastingNode
            edges = [edge_of(tensors[number]) for number in numbers]
            make = call.node(node_class) if call else node_class
            node = make(reverse, saved, edges, count)
            if objects:
                node.more().objects = [reference() for reference in objects]
            for number in group.outputs:
                nodes[number] = node
        return nodes

    def openable_call(self) -> OpenableCall | None:
        """A call that can be opened."""
        return OpenableCall(self) if self.may_open else None


class OpenableCall:
    """One call whose results depend on one another.

    `trace`: that of its program; `program`: what its nodes record; `nodes`: weak references to
    these, one for each group of results; `inner`: the numbers of the results on which others
    depend; `packing`: the hooks for saved tensors under which it ran.
    """

    def __init__(self, calls: RecordedCalls):
        self.trace, self.program, self.nodes = calls.trace, calls.program, []
        self.inner: frozenset[int] = calls.trace.pullback.inner
        self.packing = node_annotations.packing.get()

    def node(self, node_class):
        """What makes a node of the call in place of a `node_class`."""
        openable = OpenableLastingNode if node_class is LastingNode else OpenableNode

        def make(*arguments):
            node = openable(*arguments)
            node.call, self.name = self, node.reverse.node_name
            self.nodes.append(weakref.ref(node))
            return node

        return make

    def live(self) -> list:
        """The nodes from which a pass can start."""
        nodes = [reference() for reference in self.nodes]
        return [node for node in nodes if node is not None and not node.is_freed]

    def open(self):
        """Record what the call has computed, and lead its nodes there."""
        nodes = self.live()
        targets = {}
        for node in nodes:
            targets |= zip(node.reverse.wanted, node.edges, strict=True)
        packing, token = node_annotations.packing.set(self.packing), mode.scope.set(None)
        try:
            with jax.ensure_compile_time_eval(), tracing(wide=True):
                recording = Recording(self.trace, self.inputs(nodes), targets)
                edges = recording.edges_of_results(min(node.sequence for node in nodes))
        finally:
            mode.scope.reset(token)
            node_annotations.packing.reset(packing)
        for node in nodes:
            node.lead_to(edges)
        run = graph_task.current.get()
        while run is not None:
            run.graph_has_grown()
            run = run.around

    def inputs(self, nodes) -> list:
        """The inputs of the call. Where no node has saved them, the gradients do not depend on
        them.
        """
        avals = self.program.inputs
        with jax.enable_x64(True):
            for node in nodes:
                if node.reverse.saves:
                    # numbers too, as arrays
                    return list(map(as_array, node.saved[: len(avals)]))
            return [executor.filled(a, 0) if isinstance(a, Aval) else as_array(a()) for a in avals]


def as_array(value):
    return value if hasattr(value, "shape") else jax.numpy.asarray(value)


class Openable:
    """What a node has whose call can be opened. Once it is, `reverse` is None."""

    __slots__ = ()

    def edge_at(self, output_nr: int):
        """See `Node.edge_at`."""
        call = self.call
        if output_nr not in call.inner or mode.scope.get() is not None:
            return self, output_nr
        if self.reverse is not None and not self.is_freed:
            call.open()
        return self.edges[output_nr] if self.reverse is None else (self, output_nr)

    def lead_to(self, edges):
        """Pass gradients on to these edges, one for each result, from now on."""
        self.reverse, self.edges, self.saved = None, edges, ()
        if self.extras is not None:
            self.extras.objects = None

    def run(self, run, gradients):
        """Pass the gradients on, for the engine."""
        return gradients if len(gradients) > 1 else gradients[0]

    def name(self) -> str:
        return self.call.name

    def outputs(self):
        return self.call.program.outputs

    @property
    def next_functions(self):
        if self.reverse is None:
            return Node.next_functions.fget(self)
        return super().next_functions


class OpenableNode(Openable, CompiledNode):
    """The node of a call that can be opened."""

    __slots__ = ("call",)


class OpenableLastingNode(Openable, LastingNode):
    """The node of a call that can be opened, whose graph has saved nothing."""

    __slots__ = ("call",)


class EntryNode(Node):
    """Where the gradient of an input leaves a recorded graph: it passes it on along its one edge.

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
            leaf = wrap(self.given["tensor", captured.number], tensor._aval, True)
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
