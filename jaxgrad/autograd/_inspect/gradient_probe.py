"""A backward pass that leaves everything as it was: where the gradient of a tensor gets lost.

It runs the nodes between a result and a tensor, and no hooks; nothing is freed, and no `.grad`
changed. It stops where a pass would change something.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...core import executor
from ...tape.mode import switch, with_grad
from ...tape.node import Node
from .._engine import graph_task
from .._function.call import FunctionNode
from .graph_reader import is_freed, nodes_of

FREED, TRACED, ZERO, UNDEFINED, CANCELLED, ALIVE, UNKNOWN = (
    "freed", "traced", "zero", "undefined", "cancelled", "alive", "unknown",
)  # fmt: skip


class Finding(NamedTuple):
    """kind: one of the words above, ALIVE where the gradient is not zero; node: where it was lost,
    of several the one that gradients reach first; error: what was raised, if something was.
    """

    kind: str
    node: Node | None = None
    error: Exception | None = None


class Probe(graph_task.Pass):
    """What nodes need of the pass that runs them."""

    def __init__(self):
        self.retain_graph, self.create_graph, self.tensors = True, False, False
        self.callbacks, self.ending, self.watchers = [], [], ()
        self.depth, self.is_to_all, self.logs = 0, False, False


def probe(roots, edge) -> Finding:
    """What becomes of a gradient of ones that goes from the roots to an edge they lead to."""
    end, number = edge
    needed = graph_task.leading_to({end.sequence: [number]}, roots, stops=False)
    nodes = [node for node in nodes_of(roots) if node.sequence in needed]
    for node in nodes:
        if is_freed(node):
            return Finding(FREED, node)
        if isinstance(node, FunctionNode) and node._forward_cls.clear_saved_tensors_on_access:
            return Finding(UNKNOWN, node)
    before, around = switch(with_grad(False)), graph_task.current.set(Probe())
    try:
        return _Walk(needed, edge).run(roots, nodes)
    except _Traced:
        return Finding(TRACED)
    except Exception as error:  # a user's backward may raise anything
        return Finding(UNKNOWN, None, error)
    finally:
        graph_task.current.reset(around)
        switch(before)


class _Traced(Exception):
    """There are no numbers yet."""


class _Walk:
    """Carries gradients from node to node, and notes where they get lost."""

    def __init__(self, needed, edge):
        self.needed, self.end = needed, (edge[0].sequence, edge[1])
        self.arrived, self.lost = {}, []

    def run(self, roots, nodes) -> Finding:
        for node, number in roots:
            self.arrive(node, number, executor.filled(node.outputs()[number], 1))
        for node in nodes:
            gradients = self.arrived.pop(node.sequence, None)
            if gradients is not None and any(map(is_alive, gradients)):
                self.step(node, gradients)
        waiting = self.arrived.get(self.end[0])
        found = None if waiting is None else waiting[self.end[1]]
        if is_alive(found):
            return Finding(ALIVE)
        return self.lost[0] if self.lost else Finding(ZERO)

    def step(self, node, gradients):
        results = graph_task.current.get().execute(node, gradients)
        results = [results] if len(node.edges) == 1 else results
        ahead = []
        for (target, number), gradient in zip(node.edges, results, strict=True):
            if target.sequence in self.needed or (target.sequence, number) == self.end:
                ahead.append(gradient)
                self.arrive(target, number, gradient)
        if not any(map(is_alive, ahead)):
            undefined = all(gradient is None for gradient in ahead)
            self.lost.append(Finding(UNDEFINED if undefined else ZERO, node))

    def arrive(self, node, number, gradient):
        waiting = self.arrived.setdefault(node.sequence, [None] * node.output_count)
        before = waiting[number]
        if before is None or gradient is None:
            waiting[number] = gradient if before is None else before
            return
        total = executor.add(before, gradient, node.outputs()[number].wide)
        if is_alive(before) and is_alive(gradient) and not is_alive(total):
            self.lost.append(Finding(CANCELLED, node))
        waiting[number] = total


def is_alive(gradient) -> bool:
    """Whether a gradient is there and not all zeros."""
    if gradient is None:
        return False
    if isinstance(gradient, jax.core.Tracer):
        raise _Traced
    with jax.enable_x64(True):
        return bool(jnp.any(gradient != 0))
