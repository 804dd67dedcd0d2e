"""Side effects on generators: each call of a compiled function sets their states."""

from __future__ import annotations

import jax
import numpy as np

from ..capture.outputs import OutputSpec
from ..capture.side_effects import SideEffect
from ..core.aval import types_of_trace
from ..late import LateModule
from ..storage.commit import set_all
from ..tape import mode
from .seeded import SeededState

traced_twister = LateModule("jaxgrad.frontend.traced_twister")


class SeedEffect(SideEffect):
    """The final state that a function gives to a generator.

    `output`: the number of the array with the state, None if `known` has it; `moved`: how many of
    the draws of the call the generator has to take back, if it keeps its seed.
    """

    __slots__ = ("generator", "known", "moved", "output")

    def __init__(self, outputs: OutputSpec, generator, state: SeededState):
        self.generator, self.known, self.output, self.moved = generator, None, None, None
        if state.source is not None:
            self.moved = state.source.count - state.count
        elif isinstance(state.words, np.ndarray):
            seed, count = state.words.tolist()
            self.known = seed, count + state.count
        else:
            self.output = outputs.add_array(state.current_words())

    def apply(self, run, number):
        generator = self.generator
        with generator._lock:
            if self.moved is not None:
                seed, count = generator._seed, generator._state - self.moved
            elif self.output is None:
                seed, count = self.known
            else:
                seed, count = np.asarray(run.arrays[self.output]).tolist()
            # not twice
            names = ["_seed", "_state", "applied"]
            set_all([generator, generator, run], names, [seed, count, number])


class RunningEffect(SideEffect):
    """The final state of a generator of PyTorch's stream whose state the program has taken over.

    `output`: the number of the array with the state.
    """

    __slots__ = ("generator", "output")

    def __init__(self, outputs: OutputSpec, generator, state):
        self.generator = generator
        with types_of_trace():
            self.output = outputs.add_array(state.packed())

    def apply(self, run, number):
        generator, packed = self.generator, run.arrays[self.output]
        if isinstance(packed, jax.core.Tracer):  # of a `vmap` in a trace, whose draws go on
            with types_of_trace():
                mode.scope.get().seeded.run_on(generator, traced_twister.unpacked(packed))
            return
        packed = np.asarray(packed)
        seed, state = traced_twister.state_of(packed)
        with generator._lock:
            names = ["_seed", "_state", "applied"]
            set_all([generator, generator, run], names, [seed, state, number])


def seed_effects(outputs: OutputSpec, scope) -> list[SideEffect]:
    """The side effects of a traced function on the states of generators."""
    seeded = scope.seeded
    effects = [SeedEffect(outputs, *of_generator) for of_generator in seeded.states.values()]
    return [*effects, *[RunningEffect(outputs, *one) for one in seeded.running.values()]]
