"""Side effects on generators: each call of a compiled function sets their states."""

from __future__ import annotations

import numpy as np

from ..capture.outputs import OutputSpec
from ..capture.side_effects import SideEffect
from ..storage.commit import set_all
from .seeded import SeededState


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


def seed_effects(outputs: OutputSpec, scope) -> list[SeedEffect]:
    """The side effects of a traced function on the states of generators."""
    return [
        SeedEffect(outputs, generator, state) for generator, state in scope.seeded.states.values()
    ]
