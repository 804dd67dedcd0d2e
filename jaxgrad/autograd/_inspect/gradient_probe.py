"""A backward pass without side effects, which finds where the gradient of a tensor becomes zero, or
NaN.

It runs the nodes between a loss and a tensor, without hooks. It frees nothing and changes no
`.grad`; if a node cannot run twice, it stops.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy

from ...core import elementary
from ...core.aval import has_numbers
from ...core.pending import value_of
from ...tape.mode import current_pass, switch, with_grad
from ...tape.node import Node
from .._engine import graph_task
from .._function.call import FunctionNode
from .._gradcheck.problem import directions
from .graph_reader import is_freed, nodes_of

FREED, TRACED, ZERO, UNDEFINED, CANCELLED, ALIVE, UNKNOWN = (
    "freed",
    "traced",
    "zero",
    "undefined",
    "cancelled",
    "alive",
    "unknown",
)
NAN, NAN_SUM = "nan", "nan sum"


class Finding(NamedTuple):
    """The fate of a gradient.

    kind: one of the words above; ALIVE if the gradient is not zero. node: the node where the
    gradient was lost; of several such nodes the one that gradients reach first. For NAN the node
    that made the first NaN, for NAN_SUM the node where a sum of gradients did. error: the exception
    that stopped the probe, if any. slope: for ZERO, a description of the derivative of the node.
    """

    kind: str
    node: Node | None = None
    error: Exception | None = None
    slope: str | None = None


# What is known of a derivative whose product with a gradient is zero: that it is zero itself, for
# all elements of the gradient or for those that are not zero, or that it is not.
FLAT, FLAT_WHERE_REACHED, STEEP = "flat", "flat where reached", "steep"


class Probe(graph_task.Pass):
    """The attributes of a pass that nodes read when they run."""

    takes_sparse = False

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
    before, around = switch(with_grad(False)), current_pass.set(Probe())
    try:
        return _GradientWalk(needed, edge).run(roots, nodes)
    except _Traced:
        return Finding(TRACED)
    except Exception as error:  # a user's backward may raise any error
        return Finding(UNKNOWN, None, error)
    finally:
        current_pass.reset(around)
        switch(before)


class _Traced(Exception):
    """The gradient is a tracer, or on the device meta, so its numbers are unknown."""


class _GradientWalk:
    """Carries gradients from node to node, and notes where they become zero or NaN."""

    def __init__(self, needed, edge):
        self.needed, self.end = needed, (edge[0].sequence, edge[1])
        self.arrived, self.lost = {}, []
        self.nans = {}  # for each edge with NaNs, where the first of them was made

    def run(self, roots, nodes) -> Finding:
        for node, number in roots:
            self.arrive(node, number, elementary.filled(node.outputs()[number], 1), None)
        for node in nodes:
            gradients = self.arrived.pop(node.sequence, None)
            # gradients of zeros go on, as in a pass of the engine: 0 * inf is NaN
            if gradients is not None:
                self.step(node, gradients)
        waiting = self.arrived.get(self.end[0])
        gradient = None if waiting is None else waiting[self.end[1]]
        if is_alive(gradient):
            return self.nans.get(self.end, Finding(ALIVE))
        return self.lost[0] if self.lost else Finding(ZERO)

    def step(self, node, gradients):
        """Run a node, and note it if a gradient arrives and none leaves it towards the end."""
        ahead = self.ahead(node, gradients)
        places = [(node.sequence, number) for number in range(len(gradients))]
        known = [self.nans[place] for place in places if place in self.nans]
        for target, number, gradient in ahead:
            self.arrive(target, number, gradient, known[0] if known else Finding(NAN, node))
        leaving = [gradient for _, _, gradient in ahead]
        if any(map(is_alive, leaving)) or not any(map(is_alive, gradients)):
            return
        if all(gradient is None for gradient in leaving):
            self.lost.append(Finding(UNDEFINED, node))
        else:
            self.lost.append(Finding(ZERO, node, slope=self.slope(node, gradients)))

    def ahead(self, node, gradients) -> list:
        """The gradients that a node sends towards the end: for each edge its node, its number and a
        gradient.
        """
        results = current_pass.get().execute(node, gradients)
        results = [results] if len(node.edges) == 1 else results
        return [
            (target, number, gradient)
            for (target, number), gradient in zip(node.edges, results, strict=True)
            if target.sequence in self.needed or (target.sequence, number) == self.end
        ]

    def slope(self, node, gradients) -> str | None:
        """Whether a node that made zeros does so for any gradient; None for a Function, since its
        author's `backward` runs once only.
        """
        if node.reverse is None:
            return None
        others = directions(node.outputs(), numpy.random.default_rng(0))
        pairs = zip(gradients, others, strict=True)
        others = [
            None if gradient is None else _where_alive(gradient, other) for gradient, other in pairs
        ]
        if any(is_alive(gradient) for _, _, gradient in self.ahead(node, others)):
            return STEEP
        return FLAT if all(map(_is_alive_throughout, gradients)) else FLAT_WHERE_REACHED

    def arrive(self, node, number, gradient, origin):
        """Add a gradient to those that wait for a node, and note a sum that is zero or NaN.

        origin: what to note if the gradient has NaNs.
        """
        place = node.sequence, number
        waiting = self.arrived.setdefault(node.sequence, [None] * node.output_count)
        before = waiting[number]
        if has_nans(gradient):
            self.nans.setdefault(place, origin)
        if before is None or gradient is None:
            waiting[number] = gradient if before is None else before
            return
        total = elementary.add(before, gradient, node.outputs()[number])
        if has_nans(total):
            self.nans.setdefault(place, Finding(NAN_SUM, node))
        if is_alive(before) and is_alive(gradient) and not is_alive(total):
            self.lost.append(Finding(CANCELLED, node))
        waiting[number] = total


def is_alive(gradient) -> bool:
    """Whether a gradient is defined and not all zeros."""
    if gradient is None:
        return False
    gradient = _with_numbers(gradient)
    with jax.enable_x64(True):
        return bool(jnp.any(gradient != 0))


def has_nans(gradient) -> bool:
    """Whether a gradient, or another array or tensor, is defined and has NaNs."""
    if gradient is None:
        return False
    gradient = _with_numbers(getattr(gradient, "_array", gradient))
    if not jnp.issubdtype(gradient.dtype, jnp.inexact):
        return False
    with jax.enable_x64(True):
        return bool(jnp.isnan(gradient).any())


def _with_numbers(gradient):
    gradient = value_of(gradient)
    if not has_numbers(gradient):
        raise _Traced
    return gradient


def _where_alive(gradient, other):
    """A gradient with other numbers where it is not zero."""
    gradient = value_of(gradient)
    with jax.enable_x64(True):
        return jnp.where(gradient != 0, jnp.asarray(other), gradient)


def _is_alive_throughout(gradient) -> bool:
    with jax.enable_x64(True):
        return gradient is not None and bool(jnp.all(value_of(gradient) != 0))
