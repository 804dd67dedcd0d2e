"""The engine: runs the nodes of a graph, each once, by descending sequence number.

A node's gradients go to nodes recorded before it, whose numbers are lower. So in descending order
every gradient of a node has arrived when its turn comes, and a heap of the nodes that have received
one is all the state there is: no recursion, no counting of dependencies. Gradients are arrays, or
under `create_graph` tensors, so that a backward pass is recorded too.
"""

from __future__ import annotations

from heapq import heappop, heappush

import jax

from .. import avals, execution, layouts
from ..aliasing import assign
from ..modes import switch, with_grad
from ..nodes import FREED, SECOND_TIME, AccumulateGrad, leaf_lock
from ..recording import apply
from ..tensor import Tensor, leaf_state, wrap


class Pass:
    """One run of the engine, which accumulates into every leaf that it reaches."""

    def __init__(self, retain_graph: bool, create_graph: bool):
        self.retain_graph, self.create_graph = retain_graph, create_graph
        self.arrived: dict[int, list] = {}
        self.heap: list[tuple] = []

    def run(self, roots, gradients):
        """Send each gradient to its root, an edge, and run all that follows."""
        before = switch(with_grad(self.create_graph))
        try:
            for (node, output_nr), gradient in zip(roots, gradients, strict=True):
                self.arrive(node, output_nr, gradient)
            heap, arrived, visit = self.heap, self.arrived, self.visit
            while heap:
                node = heappop(heap)[1]
                visit(node, arrived.pop(node.sequence))
        finally:
            switch(before)

    def arrive(self, node, output_nr, gradient):
        """Add a gradient to those that wait for a node."""
        sequence = node.sequence
        waiting = self.arrived.get(sequence)
        if waiting is None:
            self.arrived[sequence] = waiting = [None] * node.output_count
            heappush(self.heap, (-sequence, node))
        before = waiting[output_nr]
        if before is not None:
            gradient = self.sum(before, gradient, node.outputs()[output_nr])
        waiting[output_nr] = gradient

    def sum(self, first, second, aval):
        return first + second if self.create_graph else execution.add(first, second, aval.wide)

    def visit(self, node, gradients):
        """Do with a node what is to be done once all its gradients have arrived."""
        if type(node) is AccumulateGrad:
            self.accumulate(node.variable, gradients[0])
            return
        if node.retained:
            self.fill_retained(node, gradients)
        self.step(node, gradients)

    def step(self, node, gradients):
        """Run a node and send its gradients along its edges."""
        saved, reverse = node.saved, node.reverse
        if saved is FREED:
            raise RuntimeError(SECOND_TIME)
        if saved and not self.retain_graph:
            # before it runs: of two threads that come to it, one gets no further
            node.saved = FREED
        try:
            if reverse.kernel is None:
                execution.prepare(reverse)
            if not reverse.program.single:
                gradients = self.filled(reverse.program, gradients)
            if self.create_graph:
                results = apply(reverse, [*gradients, *_saved_tensors(node, saved)])
            else:
                results = reverse.kernel(*gradients, *saved)
        except BaseException:
            node.saved = saved
            raise
        edges = node.edges
        if len(edges) == 1:
            target, output_nr = edges[0]
            self.arrive(target, output_nr, results)
            return
        for (target, output_nr), gradient in zip(edges, results, strict=True):
            self.arrive(target, output_nr, gradient)

    def filled(self, program, gradients):
        """The gradients of the differentiable outputs, zeros for those that did not arrive."""
        outputs = program.outputs
        return [
            self.zeros(outputs[i]) if gradients[i] is None else gradients[i]
            for i in program.differentiable_outputs
        ]

    def zeros(self, aval):
        array = execution.filled(aval, 0)
        return wrap(array) if self.create_graph else array

    def accumulate(self, leaf: Tensor, gradient):
        """Add to the `.grad` of a leaf: in place, or under `create_graph` by a new tensor."""
        _refuse_leak(leaf, gradient)
        with leaf_lock:
            before = leaf_state(leaf).grad
            if before is None or self.create_graph:
                leaf._leaf.grad = self.total(before, gradient, leaf)
            else:
                total = execution.add(before._array, gradient, leaf._aval.wide)
                assign(before, wrap(total, before._aval), False)

    def total(self, before, gradient, tensor) -> Tensor:
        """A `.grad`, None or a tensor, with a gradient added: a tensor that nobody else has."""
        if self.create_graph:
            return gradient.clone() if before is None else before + gradient
        if before is not None:
            return wrap(execution.add(before._array, gradient, tensor._aval.wide))
        made, strides = wrap(gradient), tensor._aval.strides
        if strides is not None and layouts.is_dense(tensor.shape, strides):
            made._aval = avals.with_strides(made._aval, strides)
        return made

    def fill_retained(self, node, gradients):
        for output_nr, kept in node.retained.items():
            tensor, gradient = kept(), gradients[output_nr]
            if tensor is not None and gradient is not None:
                with leaf_lock:
                    state = leaf_state(tensor)
                    state.grad = self.total(state.grad, gradient, tensor)


class PassTo(Pass):
    """A run of the nodes that lead to `ends`, edges; what arrives there is left in `captured`."""

    def __init__(self, retain_graph, create_graph, ends):
        super().__init__(retain_graph, create_graph)
        self.captured: dict[tuple, object] = {}
        self.ends: dict[int, list[int]] = {}
        for node, output_nr in ends:
            self.ends.setdefault(node.sequence, []).append(output_nr)

    def run(self, roots, gradients):
        self.needed = leading_to(self.ends, roots)
        super().run(roots, gradients)

    def visit(self, node, gradients):
        sequence = node.sequence
        ends = self.ends.get(sequence, ())
        for output_nr in ends:
            self.captured[sequence, output_nr] = gradients[output_nr]
        if sequence in self.needed:
            super().visit(node, gradients)
        elif ends and node.retained:
            self.fill_retained(node, gradients)


def leading_to(ends, roots) -> set[int]:
    """The numbers of the nodes from which an end, given by number, is reached beyond them."""
    lowest = min(ends)
    nodes, stack = {}, [node for node, _ in roots]
    while stack:
        node = stack.pop()
        if node.sequence > lowest and node.sequence not in nodes:
            nodes[node.sequence] = node
            stack.extend([edge[0] for edge in node.edges])
    needed, reached = set(), set(ends)
    for sequence in sorted(nodes):
        if not reached.isdisjoint([edge[0].sequence for edge in nodes[sequence].edges]):
            needed.add(sequence)
            reached.add(sequence)
    return needed


def _refuse_leak(leaf, gradient):
    if leaf._aval.mode == avals.IMMEDIATE and isinstance(gradient, jax.core.Tracer):
        raise RuntimeError(
            f"the gradient of a tensor of shape {list(leaf.shape)} was traced, but the tensor was "
            "not: pass the tensor to the compiled function as an argument instead of reaching it "
            "from outside, and return its gradient"
        )


def _saved_tensors(node, saved):
    """A node's saved arrays as tensors with their history.

    What went in has it by the node's edges; what came out, by the node.
    """
    reverse, saved = node.reverse, iter(saved)
    edges = dict(zip(reverse.wanted, node.edges, strict=True))
    tensors = [_tensor_at(next(saved), edges.get(i)) for i in reverse.saved_inputs]
    differentiable = reverse.program.differentiable_outputs
    outputs = [
        _tensor_at(next(saved), (node, i) if i in differentiable else None)
        for i in reverse.saved_outputs
    ]
    return tensors + outputs


def _tensor_at(array, edge):
    """A saved array as a tensor; numbers stay numbers."""
    if not hasattr(array, "shape"):
        return array
    if edge is None:
        return wrap(array)
    return wrap(array, None, True, *edge)
