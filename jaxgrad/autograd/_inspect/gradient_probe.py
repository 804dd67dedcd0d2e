"""A backward pass without side effects, which finds where the gradient of a tensor becomes zero.

It runs the nodes between a loss and a tensor, without hooks. It frees nothing and changes no
`.grad`; if a node cannot run twice, it stops.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...core import executor
from ...core.aval import has_numbers
from ...core.pending import value_of
from ...tape.mode import switch, with_grad
from ...tape.node import Node
from .._engine import graph_task
from .._function.call import FunctionNode
from .graph_reader import is_freed, nodes_of

FREED, TRACED, ZERO, UNDEFINED, CANCELLED, ALIVE, UNKNOWN = (
    "freed", "traced", "zero", "undefined", "cancelled", "alive", "unknown",
)  # fmt: skip


class Finding(NamedTuple):
    """The fate of a gradient.

    kind: one of the words above; ALIVE if the gradient is not zero.
    node: the node where it was lost; of several the one that gradients reach first.
    error: the exception that stopped the probe, if any.
    """

    kind: str
    node: Node | None = None
    error: Exception | None = None


class Probe(graph_task.Pass):
    """The attributes of a pass that nodes read when they run."""

    def __init__(self):
        self.retain_graph, self.create_graph, self.tensors = True, False, False
        self.callbacks, self.ending, self.watchers = [], [], ()
        self.depth, self.is_to_all, self.logs = 0, False, False


def probe(roots, edge) -> Finding:
    """Send gradients of ones from the roots to an edge; returns what arrives there."""
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
        return _GradientWalk(needed, edge).run(roots, nodes)
    except _Traced:
        return Finding(TRACED)
    except Exception as error:  # a user's backward may raise any error
        return Finding(UNKNOWN, None, error)
    finally:
        graph_task.current.reset(around)
        switch(before)


class _Traced(Exception):
    """The gradient is a tracer, or on the device meta, so its numbers are unknown."""


class _GradientWalk:
    """Carries gradients from node to node, and notes where they become zero."""

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
        """Run a node, and note it if no gradient leaves it towards the end."""
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
        """Add a gradient to those that wait for a node, and note a sum that is zero."""
        waiting = self.arrived.setdefault(node.sequence, [None] * node.output_count)
        before = waiting[number]
        if before is None or gradient is None:
            waiting[number] = gradient if before is None else before
            return
        total = executor.add(before, gradient, node.outputs()[number])
        if is_alive(before) and is_alive(gradient) and not is_alive(total):
            self.lost.append(Finding(CANCELLED, node))
        waiting[number] = total


def is_alive(gradient) -> bool:
    """Whether a gradient is defined and not all zeros."""
    if gradient is None:
        return False
    gradient = value_of(gradient)
    if not has_numbers(gradient):
        raise _Traced
    with jax.enable_x64(True):
        return bool(jnp.any(gradient != 0))
