"""Seeds and states that a traced function gives to generators.

Each call of a program makes the draws of PyTorch's stream before it runs, and the changes of state
in their order with them, as inputs (capture/graph_input.py).

A generator of JAX's stream is a seed and a count of draws. While a function is traced, both are
values of the trace: the state that the generator has at the start of each call, or the state that
the function has set. Each call leaves the generator in the state at the end of the function. So it
is with PyTorch's stream after a draw whose words only the program can count.
"""

from __future__ import annotations

import copy
import functools
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from ..capture import DrawsInTurn
from ..capture.graph_input import (
    GeneratorInput,
    RunningInput,
    StateChange,
    StateInput,
    random_words,
    scopes_around,
)
from ..core.aval import types_of_trace
from ..late import LateModule
from ..tape.mode import random_seed
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, current, held, wrap

INSIDE = (
    "Generator.{name} in a function that is traced once for many runs (a branch or a loop of "
    "jaxgrad.func, a replay of these or of a vmap) would not run in each of them: call it outside"
)


def _where_drawn(method):
    """Call the method for the scope that draws the numbers, which may be the one around."""

    @functools.wraps(method)
    def call(self, generator, *arguments):
        scope = self.scope
        if not scope.draws_outside:
            return method(self, generator, *arguments)
        known = [scope.captured.get(id(argument)) for argument in arguments]
        with scope.outer_trace():
            pairs = zip(arguments, known, strict=True)
            outer = [a if captured is None else captured.snapshot.copy() for a, captured in pairs]
            return call(scope.parent.seeded, generator, *outer)

    return call


mersenne = LateModule("jaxgrad.frontend.mersenne")
traced_twister = LateModule("jaxgrad.frontend.traced_twister")

# the bytes of a state of JAX's stream
_COUNTED_BYTES = 16


class SeededState:
    """The state that a traced function has given to a generator.

    `words`: the seed and a count of draws, as an array; `count`: the draws since then; `seed`: the
    seed as a number, None if it is not known; `source`: the input with the state at the start of
    the call, if the words come from it.
    """

    def __init__(self, words, seed, source: GeneratorInput | None = None):
        self.words, self.seed, self.source, self.count = words, seed, source, 0

    def next_words(self, count):
        self.count += count
        return random_words(self.words, self.count - count)

    def current_words(self):
        """The seed and the count of draws as an array."""
        if not self.count:
            return self.words
        with types_of_trace():
            return jnp.stack([self.words[0], self.words[1] + np.uint64(self.count)])


class SeededGenerators:
    """The states of generators in the trace of a scope.

    `inputs`: by the id of a generator the input that is its earlier state; `states`: by the id of a
    generator that the trace has set, it and its state; `known`: by the id of a tensor of bytes that
    shows a state, the tensor, its array, and this state, or its `StateInput`; `seeds`: by the id of
    a generator of PyTorch's stream that the trace has set, its seed, None if it is not known;
    `changes`: the inputs that set these; `running`: by the id of a generator of PyTorch's stream it
    and its state, where that is a value of the program.
    """

    def __init__(self, scope):
        self.scope = scope
        self.inputs: dict[int, GeneratorInput] = {}
        self.states: dict[int, tuple] = {}
        self.known: dict[int, tuple] = {}
        self.seeds: dict[int, int | None] = {}
        self.changes: list[StateChange] = []
        self.running: dict[int, tuple] = {}
        self._keys = 0

    def next_key(self, moves=True) -> tuple:
        """The key of the next input of PyTorch's stream."""
        key = "drawn", self._keys
        self._keys += moves
        return key

    def guard_stream(self, generator):
        """A program serves the stream that it was traced for."""
        if id(generator) not in self.seeds:
            self.scope.objects.guard(generator, _stream_of)

    def _change(self, generator, source, seed: int | None):
        """Have each call change the state of a generator of PyTorch's stream, here."""
        self.guard_stream(generator)
        change = StateChange(generator, self.next_key(), source)
        self.scope.add_input(change.example(()), change)
        self.changes.append(change)
        self.seeds[id(generator)] = seed

    def get(self, generator) -> SeededState | None:
        return self.states.get(id(generator), (None, None))[1]

    def save(self) -> tuple:
        """The states of now, for `put_back`."""
        return _copied(self.states), dict(self.seeds), len(self.changes), dict(self.running)

    def put_back(self, saved: tuple):
        states, seeds, count, running = saved
        self.states, self.seeds, self.running = _copied(states), dict(seeds), dict(running)
        for change in self.changes[count:]:
            change.source = None

    # ---- PyTorch's stream in the program

    def is_running(self, generator) -> bool:
        """Whether the state of a generator is a value of the program here."""
        return id(generator) in self.running

    def running_state(self, generator):
        """The state of a generator as a value of the program, from here on."""
        if not self.is_running(generator):
            self.guard_stream(generator)
            source = RunningInput(generator, self.next_key())
            state = traced_twister.unpacked(self.scope.add_input(source.example(()), source))
            self.run_on(generator, state)
        return self.running[id(generator)][1]

    def run_on(self, generator, state):
        self.running[id(generator)] = generator, state

    def draw_running(self, generator, request) -> list:
        with types_of_trace():
            twister = traced_twister.TracedTwister(self.running_state(generator))
            arrays = request.traced(twister)
        self.run_on(generator, twister.state)
        return arrays

    # ---- what the function does

    @_where_drawn
    def set_seed(self, generator, seed):
        """Set the seed of a generator. seed: an int, or a symbolic one."""
        self.refuse_inside("manual_seed")
        if generator.stream == "torch":
            if type(seed) is Varying and seed.compute is None:
                int(seed)  # raises
            self._set_seed(generator, seed)
            return
        if type(seed) is Varying:
            with types_of_trace():
                number = jnp.asarray(seed._array).astype(np.int64).astype(np.uint64)
                words = jnp.stack([number, jnp.zeros((), np.uint64)])
        else:
            words, seed = np.array([seed % 2**64, 0], np.uint64), seed % 2**64
        self.states[id(generator)] = generator, SeededState(words, seed)

    def _set_seed(self, generator, seed):
        """`set_seed` of a generator of PyTorch's stream."""
        source = seed if type(seed) is Varying else seed % 2**64
        if not self.is_running(generator):
            self._change(generator, source, seed)
        elif type(seed) is Varying:
            raise DrawsInTurn(
                "manual_seed gets a number that varies, after a draw whose words only the program "
                "can count"
            )
        else:
            words = traced_twister.packed(source, mersenne.SEEDED)
            with types_of_trace():
                self.run_on(generator, traced_twister.unpacked(jnp.asarray(words)))
            self.seeds[id(generator)] = seed

    def new_seed(self) -> Varying:
        """A seed that the operating system draws at each call, of the 63 bits that a symbolic
        number has.
        """
        self.refuse_inside("seed")
        return self.scope.number(random_seed)

    @_where_drawn
    def seed_of(self, generator):
        """The seed that the function has given to a generator; None where it has given none. Raises
        RuntimeError where it is not known.
        """
        scopes = [*scopes_around(self.scope)]
        seeds = [scope.seeded.seeds for scope in scopes if id(generator) in scope.seeded.seeds]
        if seeds:
            return self._known(seeds[0][id(generator)])
        state = next(filter(None, [scope.seeded.get(generator) for scope in scopes]), None)
        if state is None or state.source is not None:
            return None
        return self._known(state.seed)

    def _known(self, seed: int | None) -> int:
        if seed is None:
            raise RuntimeError(
                "initial_seed() inside of jaxgrad.jit, after a state was set that comes from "
                "outside: the seed in it is an input of the program, and no number for Python"
            )
        return seed

    @_where_drawn
    def get_state(self, generator) -> Tensor:
        """The state of a generator as a tensor of bytes."""
        self.refuse_inside("get_state")
        if generator.stream == "torch":
            if self.is_running(generator):
                with types_of_trace():
                    return self._shown(self.running_state(generator).bytes(), None)
            self.guard_stream(generator)
            source = StateInput(generator, self.next_key())
            array = self.scope.add_input(source.example(()), source)
            return self._shown(array, source)
        state = self.get(generator)
        if state is None:
            scope = self.scope
            source = scope.source_of_draws(generator, scope.seeded.inputs, GeneratorInput)
            state = SeededState(source.words, None, source)
            state.count = source.count
        with types_of_trace():
            array = jax.lax.bitcast_convert_type(
                jnp.asarray(state.current_words()), np.uint8
            ).reshape(16)
        return self._shown(array, copy.copy(state))

    def _shown(self, array, state) -> Tensor:
        """The tensor of a state."""
        tensor = wrap(array)
        self.known[id(tensor)] = weakref.ref(tensor), array, state
        return tensor

    @_where_drawn
    def set_state(self, generator, tensor: Tensor):
        """Set the state of a generator from a tensor of bytes."""
        self.refuse_inside("set_state")
        array = held(current(tensor))
        reference, known, state = self.known.get(id(tensor), (None, None, None))
        if known is not array or reference() is not tensor:
            state = None
        if tensor.shape != (_COUNTED_BYTES,):
            self._set_bytes(generator, array, state)
            return
        if state is not None and (state.source is None or state.source.generator is generator):
            state = copy.copy(state)
        else:
            with types_of_trace():
                parts = jnp.reshape(array, (2, 8)).astype(np.uint64) << _SHIFTS
                words = parts.sum(1, dtype=np.uint64)
            state = SeededState(words, None if state is None else state.seed)
        self.states[id(generator)] = generator, state

    def _set_bytes(self, generator, array, source: StateInput | None):
        """Give a generator the state of PyTorch's form; source: the input that shows it."""
        if source is not None and not self.is_running(generator):
            self._change(generator, source, self.seeds.get(id(source.generator)))
            return
        with types_of_trace():
            self.run_on(generator, traced_twister.of_bytes(jnp.asarray(array)))
        self.guard_stream(generator)
        self.seeds[id(generator)] = None

    def refuse_inside(self, name: str):
        """Raise RuntimeError in a part of the trace that runs more than once for one run of the
        user's code, or not at all.
        """
        if not all(scope.may_seed for scope in scopes_around(self.scope)):
            raise RuntimeError(INSIDE.format(name=name))


def _copied(states: dict) -> dict:
    return {key: (generator, copy.copy(state)) for key, (generator, state) in states.items()}


def _stream_of(generator) -> str:
    return generator.stream


# by how many bits the bytes of a number are moved, the lowest first
_SHIFTS = np.arange(0, 64, 8, dtype=np.uint64)
