"""The engine: runs the nodes of a graph, each once, by descending sequence number.

A node's gradients go to nodes recorded before it, whose numbers are lower. So in descending order every gradient of a node has
arrived when its turn comes, and a heap of the nodes that have received one is all the state there is: no recursion, no
counting of dependencies. Gradients are arrays, or under `create_graph` tensors, so that a backward pass is recorded too.
"""

from __future__ import annotations

import heapq

from .. import avals, execution
from ..dispatch import apply
from ..tensor import Tensor, leaf_state, wrap
from .grad_mode import set_grad_enabled
from ..nodes import FREED, SECOND_TIME, AccumulateGrad


class Pass:
    """One run of the engine.

    `captures`: the edges whose gradients are asked for, or None to accumulate into all leaves that are reached;
    `accumulate`: what is called with a leaf's node and its gradient.
    """

    def __init__(self, retain_graph: bool, create_graph: bool, captures=None):
        self.retain_graph, self.create_graph = retain_graph, create_graph
        self.captured = {}
        self.captures = captures
        self.arrived: dict[int, list] = {}
        self.heap: list[tuple] = []

    def run(self, roots, gradients):
        """Send each gradient to its root, an edge, and run all that follows; gives what was captured, by edge."""
        needed = None if self.captures is None else _leading_to(roots, self.captures)
        with set_grad_enabled(self.create_graph):
            for (node, output_nr), gradient in zip(roots, gradients, strict=True):
                self.arrive(node, output_nr, gradient)
            while self.heap:
                node = heapq.heappop(self.heap)[1]
                self.visit(node, self.arrived.pop(node.sequence), needed)
        return self.captured

    def arrive(self, node, output_nr, gradient):
        """Add a gradient to those that wait for a node."""
        waiting = self.arrived.get(node.sequence)
        if waiting is None:
            self.arrived[node.sequence] = waiting = [None] * node.output_count
            heapq.heappush(self.heap, (-node.sequence, node))
        before = waiting[output_nr]
        waiting[output_nr] = gradient if before is None else self.add(before, gradient, node, output_nr)

    def add(self, first, second, node, output_nr):
        if self.create_graph:
            return first + second
        return execution.add(first, second, node.outputs()[output_nr].wide)

    def visit(self, node, gradients, needed):
        """Keep what is asked for of a node's gradients, then pass them on."""
        if self.captures is not None:
            self.capture(node, gradients)
        if type(node) is AccumulateGrad:
            if self.captures is None:
                self.accumulate(node.variable, gradients[0])
            return
        if node.retained:
            self.fill_retained(node, gradients)
        if needed is None or node.sequence in needed:
            self.step(node, gradients)

    def step(self, node, gradients):
        """Run a node and send its gradients along its edges."""
        saved, reverse = node.saved, node.reverse
        if saved is FREED:
            raise RuntimeError(SECOND_TIME)
        if reverse.kernel is None:
            execution.prepare(reverse)
        if not reverse.program.single:
            outputs, positions = reverse.program.outputs, reverse.program.differentiable_outputs
            gradients = [self.zeros(outputs[i]) if gradients[i] is None else gradients[i] for i in positions]
        if self.create_graph:
            results = apply(reverse, [*gradients, *_saved_tensors(node)])
        else:
            results = reverse.kernel(*gradients, *saved)
        if not self.retain_graph and saved:
            node.saved = FREED
        edges = node.edges
        if len(edges) == 1:
            self.arrive(*edges[0], results)
            return
        for edge, gradient in zip(edges, results, strict=True):
            self.arrive(*edge, gradient)

    def zeros(self, aval):
        array = execution.zeros(aval)
        return wrap(array) if self.create_graph else array

    def capture(self, node, gradients):
        for output_nr, gradient in enumerate(gradients):
            edge = (node.sequence, output_nr)
            if edge in self.captures and gradient is not None:
                self.captured[edge] = gradient

    def fill_retained(self, node, gradients):
        for output_nr, kept in node.retained.items():
            tensor = kept()
            if tensor is not None and gradients[output_nr] is not None:
                self.accumulate(tensor, gradients[output_nr])

    def accumulate(self, tensor: Tensor, gradient):
        """Add to `tensor.grad`: in place, so that it stays the same object, or by a new one under `create_graph`."""
        state = leaf_state(tensor)
        before = state.grad
        if self.create_graph:
            state.grad = gradient if before is None else before + gradient
            return
        _refuse_leak(tensor, gradient)
        if before is None:
            state.grad = wrap(gradient)
            return
        before._array = execution.add(before._array, gradient, tensor._aval.wide)


def _refuse_leak(tensor, gradient):
    if tensor._aval.mode == avals.IMMEDIATE and avals.mode_of(gradient) != avals.IMMEDIATE:
        raise RuntimeError(
            f"the gradient of a tensor of shape {list(tensor.shape)} was traced, but the tensor was not: pass the tensor to the "
            "compiled function as an argument instead of reaching it from outside, and return its gradient"
        )


def _saved_tensors(node):
    """A node's saved arrays as tensors with their history: what went in, by the node's edges; what came out, by the node."""
    reverse, saved = node.reverse, iter(node.saved)
    edges = dict(zip(reverse.wanted, node.edges, strict=True))
    tensors = [_tensor_at(next(saved), edges.get(i)) for i in reverse.saved_inputs]
    differentiable = reverse.program.differentiable_outputs
    outputs = [_tensor_at(next(saved), (node, i) if i in differentiable else None) for i in reverse.saved_outputs]
    return tensors + outputs


def _tensor_at(array, edge):
    """A saved array as a tensor; numbers stay numbers."""
    if not hasattr(array, "shape"):
        return array
    if edge is None:
        return wrap(array)
    return wrap(array, None, True, *edge)


def _leading_to(roots, captures) -> set[int]:
    """The sequence numbers of the nodes from which a captured edge is reached beyond the node itself."""
    nodes = _reachable(roots)
    ends = {sequence for sequence, _ in captures}
    needed: set[int] = set()
    for sequence in sorted(nodes):
        targets = [edge[0].sequence for edge in nodes[sequence].edges]
        if any(target in ends or target in needed for target in targets):
            needed.add(sequence)
    return needed


def _reachable(roots) -> dict:
    found, stack = {}, [node for node, _ in roots]
    while stack:
        node = stack.pop()
        if node.sequence not in found:
            found[node.sequence] = node
            stack.extend(edge[0] for edge in node.edges)
    return found
