"""A traced function run again, on arrays that are given in place of its inputs.

What it changes is undone at the end. So it is run where JAX is to differentiate it, and where
somebody looks for the operator that went wrong.
"""

from __future__ import annotations

import contextlib
import math

import jax

from ..core.aval import aval_of, traced_aval
from ..ops import autocast
from ..tape import dual_level
from ..tape.mode import switch
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, edge_of, leaf_state, wrap
from .captured import GradientOf
from .graph_input import ArgumentInput
from .partition import pull
from .scope import Scope
from .side_effects import Outcome


class Replay(Scope):
    """A scope in which the inputs of an earlier one are arrays that are given, by their keys.

    `tensors`: those in the places; `edges`: where their gradients arrive, None where they do not
    require grad.
    """

    def __init__(self, trace, inputs):
        super().__init__(trace.name)
        self.is_inner, self.casting = trace.is_inner, trace.casting
        keys = [("tensor", place.number) for place in trace.places]
        keys += [source.key for source in trace.others]
        self.given = dict(zip(keys, inputs, strict=True))
        self.known: dict[int, int] = {}
        self.tensors: list[Tensor] = []
        self.edges: list = []

    @contextlib.contextmanager
    def open(self):
        """As of any scope; levels of forward mode that are begun inside are seen, though it be in
        the midst of the derivative at another.
        """
        tokens = dual_level.window.set((0, math.inf)), dual_level.enabled.set(True)
        try:
            with super().open(), autocast.entered(self.casting):
                yield self
        finally:
            dual_level.window.reset(tokens[0])
            dual_level.enabled.reset(tokens[1])

    def meet(self, tensor, source=None):
        if id(tensor) not in self.places and id(tensor) not in self.known:
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, is run again, and now reads a tensor of "
                f"shape {list(tensor.shape)} from outside that it did not read when it was traced"
            )
        return super().meet(tensor, source)

    def draw(self, generator):
        if self.is_inner:
            raise RuntimeError(
                f"{self.name} under func.vmap draws random numbers, so it cannot be differentiated "
                "twice: draw them outside, and pass them in"
            )
        return super().draw(generator)

    def input(self, array, source):
        if source.place is None:
            return self.given[source.key]
        return self.given["tensor", self.known[id(source.place.tensor)]]

    def fill(self, trace):
        """Put tensors of the given arrays into the places; gives the function's arguments."""
        leaves, held = list(trace.leaves), dict(trace.held)
        for place in trace.places:
            reference = held.get(place.number, place.reference)
            tensor = self.stand_in(place) if reference is None else self.reach(place, reference())
            self.tensors.append(tensor)
            self.edges.append(edge_of(tensor) if place.tracked else None)
            for position in trace.positions.get(place.number, ()):
                leaves[position] = tensor
        for other in trace.others:
            if isinstance(other, ArgumentInput):
                array = self.given[other.key]
                leaves[other.position] = (
                    Varying(array) if other.position in trace.varying else array
                )
        return leaves

    def reach(self, place, tensor):
        if tensor is None:
            raise RuntimeError(
                f"{self.name}, compiled by jaxgrad.jit, is run again, and a tensor of shape "
                f"{list(place.aval.shape)} that it read from outside is gone"
            )
        self.known[id(tensor)] = place.number
        met = self.meet(tensor)
        met.before.hooks.mute()
        met.ignores_slot, tensor._tracked = True, place.tracked
        if place.reads_slot:
            leaf_state(tensor).grad = None
        return tensor

    def stand_in(self, place):
        array = self.given["tensor", place.number]
        is_part = array.shape != place.aval.shape  # one of many examples
        shown = aval_of(array) if is_part else traced_aval(place.aval, array)
        tensor = wrap(array, shown, place.tracked)
        if isinstance(place.source, GradientOf):
            leaf_state(self.tensors[place.source.owner]).grad = tensor
        return tensor


def replay(trace, inputs, gradients=None, wanted=()):
    """What the results of a function with a history are for these inputs; or given their gradients,
    those of some of the tensors that it reads, by number.
    """
    scope, before = Replay(trace, inputs), switch(trace.grad_mode)
    try:
        with scope.open():
            live = outcome_of(trace, scope).live
            if gradients is None:
                return tuple([array for _, _, array in live])
            edges = [scope.edges[number] for number in wanted]
            found = pull([edge for edge, _, _ in live], gradients, edges)
    finally:
        switch(before)
    zeros = jax.numpy.zeros_like
    pairs = zip(wanted, found, strict=True)
    return tuple([zeros(inputs[n]) if array is None else array for n, array in pairs])


def again(trace, inputs):
    """The arrays that come out where the function runs operator by operator."""
    scope = Replay(trace, inputs)
    with scope.open():
        return outcome_of(trace, scope).arrays


def outcome_of(trace, scope) -> Outcome:
    args, kwargs = jax.tree.unflatten(trace.structure, scope.fill(trace))
    return trace.outcome_class(scope, [trace.jitted.function(*args, **kwargs)])


def results(trace, inputs):
    """What the function makes for these inputs, in the order of its outcome."""
    scope = Replay(trace, inputs)
    with scope.open():
        outcome = outcome_of(trace, scope)
        return tuple([outcome.arrays[value.output] for value in outcome.fresh])
