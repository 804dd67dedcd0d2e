"""The inputs of a trace, the known numbers among them, and the memory that tensors share."""

from __future__ import annotations

import contextlib
import itertools
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import set_current_trace

from ..core.aval import types_of_trace
from ..core.meta_array import MetaArray
from ..draws.seeded import SeededGenerators
from ..late import LateModule
from ..tape import mode
from ..tape.symbolic_number import Varying
from ..tape.tensor import alias_of, restore_state, state_of
from . import DrawsInTurn, SharesMemory
from .graph_input import (
    Drawing,
    DrawnInput,
    GeneratorInput,
    GraphInput,
    NumberInput,
    random_words,
    reader_of,
    scopes_around,
)
from .known_numbers import answer, input_p

rejection = LateModule("jaxgrad.frontend.rejection")


class ScopeInputs:
    """The inputs of a trace.

    `inputs`: what supplies them at each call; `tracers`: their tracers; `seeded`: the states of
    generators; `inspected`: the inputs whose numbers the function looked at; `rebound`,
    `looked_at`: the numbers that are inputs as long as the function does not look at them, and
    those that it looks at; `derived`: the numbers computed from varying ones; `answers`: the
    numbers that code has looked at, by the lines that asked; `evaluated`: by the id of an equation
    it and its results, for the numbers that code has looked at; `refused`: the error for numbers
    that are not known, and `why_refused`; `can_fall_back`: whether the function runs uncompiled if
    it cannot be traced.
    """

    # of a replay: the answers that it repeats, whether it has come to the passes, which may ask for
    # more, and by the id of what it is given for a captured tensor the numbers looked at
    traced_answers, is_in_passes, pinned_numbers = None, False, MappingProxyType({})

    # whether the scope around draws the numbers
    draws_outside = False

    # the place of a container among the arguments
    position_of = staticmethod(lambda value: None)
    # by id containers from outside in whose place each call may have another
    exchanged = MappingProxyType({})

    def begin_inputs(self):
        self.inputs: list[GraphInput] = []
        self.tracers: list = []
        self.number_keys = itertools.count()
        self.seeded = SeededGenerators(self)
        self.inspected: set[GraphInput] = set()
        self.rebound, self.looked_at, self.can_fall_back = None, frozenset(), False
        self.derived: list[Varying] = []
        self.answers: dict[tuple, list] = {}
        self.evaluated: dict[int, tuple] = {}
        self.refused, self.why_refused = None, ""

    def take_containers(self, containers):
        """Take in the containers among the arguments (capture/argument_containers.py)."""
        if containers.positions:
            self.position_of = containers.position_of

    def is_of_call(self, value) -> bool:
        """Whether each call may have another object in the place of a container."""
        return id(value) in self.exchanged or self.position_of(value) is not None

    def belong_to(self, function):
        """Belong to the trace of a compiled function, in whose cache looks at numbers are noted."""
        cache = function.cache
        self.inspected, self.rebound = cache.inspected, cache.rebound
        self.looked_at, self.can_fall_back = cache.looked_at, function.fallback is not None
        self.joined = None if self.is_inner else set(cache.joined)

    def forget_inputs(self):
        """Let go of tracers."""
        for source in () if self.seeded is None else self.seeded.inputs.values():
            source.words = None
        self.tracers, self.evaluated, self.seeded = [], {}, None

    def add_input(self, array, source: GraphInput):
        """A tracer for an array that each call supplies anew."""
        number = len(self.inputs)
        self.inputs.append(source)
        if type(array) is MetaArray:
            array = array.struct
        with types_of_trace():
            aval = jax.typeof(array if hasattr(array, "dtype") else jnp.asarray(array))
        # in the trace of the scope, also where the function reads the tensor inside a jax.vjp
        with set_current_trace(self.trace):
            self.tracers.append(input_p.bind(number=number, aval=aval))
        return self.tracers[-1]

    @property
    def may_seed(self) -> bool:
        """Whether the function runs once where the user's code does, so that it may set seeds."""
        return not self.is_inner

    @property
    def randomness(self) -> str:
        """How examples of the innermost `vmap` around draw random numbers; "error" without one."""
        return "error" if self.parent is None else self.parent.randomness

    @property
    def examples(self) -> list[tuple]:
        """Of each `vmap` around whose examples draw different numbers, the outermost first: how
        many examples there are, and the number of the one that is traced.
        """
        return [] if self.parent is None else self.parent.examples

    def array_around(self, captured):
        """The array of a captured tensor in the trace around."""
        return captured.snapshot.array

    def steps_of_draw(self, tensor, strides: tuple) -> tuple | None:
        """The strides of what the numbers for a tensor are drawn for, those of all examples of the
        `vmap`s around that draw different ones in front; None if it is contiguous.
        """
        return strides if self.parent is None else self.parent.steps_of_draw(tensor, strides)

    def check_draw(self, parameters, target=None):
        """Raise RuntimeError if a `vmap` around refuses a draw with these tensors as parameters,
        which is written to the tensor `target`.
        """
        if self.parent is not None:
            self.parent.check_draw(parameters, target)

    def refuses_write(self, target, values) -> bool:
        """Whether the examples of a `vmap` around share a tensor, and each has `values` of its own,
        tensors, for it.
        """
        return self.parent is not None and self.parent.refuses_write(target, values)

    def draw(self, generator, request) -> list:
        """What the next draw of a generator gives for a request (frontend/request.py)."""
        if generator.stream == "jax":
            return [self.next_words(generator, self.seeded.inputs, GeneratorInput, request.count)]
        if self.seeded.is_running(generator):
            return self.seeded.draw_running(generator, request)
        self.seeded.guard_stream(generator)
        drawing = Drawing(generator, request)
        return [
            self.add_input(struct, DrawnInput(drawing, number, self.seeded.next_key()))
            for number, struct in enumerate(request.structs)
        ]

    def samples_in_turn(self, generator, name, sampler: str, parameters):
        """Samples whose words only a run of the program counts. From here on the state of the
        generator is a value of the program.
        """
        if self.is_inner:
            raise DrawsInTurn(
                f"{name} draws PyTorch's random numbers one after the other, and how many depends "
                f"on its parameters, which {self.name} traces by themselves: give it a generator "
                "with the stream 'jax'"
            )
        state = self.seeded.running_state(generator)
        samples, state = rejection.traced_samples(sampler, state, parameters)
        self.seeded.run_on(generator, state)
        return samples

    def next_words(self, generator, sources: dict, kind, count):
        """The words of a draw, from the state that is an input, or that was set inside."""
        self.seeded.guard_stream(generator)
        state = self.seeded.get(generator)
        if state is not None:
            return state.next_words(count)
        source = self.source_of_draws(generator, sources, kind)
        number, source.count = source.count, source.count + count
        return random_words(source.words, number)

    def source_of_draws(self, generator, sources: dict, kind):
        """The state of a generator that is an input: `kind` makes it, `sources` keeps it by the id
        of the generator.
        """
        source = sources.get(id(generator))
        if source is None:
            source = sources[id(generator)] = kind(generator)
            # zeros, for their type alone: each call supplies the state
            source.words = self.add_input(np.zeros(2, np.uint64), source)
        return source

    def number(self, read, key=None):
        """A symbolic number, which each call reads anew by `read()`.

        key: identifies it when the function is replayed; by default its place in the order of the
        reads, which a replay repeats.
        """
        if self.is_inner and self.parent is not None:
            return self.parent.number(read, key)
        known = [
            reader_of(number.read) for number in self.inputs if isinstance(number, NumberInput)
        ]
        key = next(self.number_keys) if key is None else key
        source = NumberInput(read, key, known.count(reader_of(read)))
        run = mode.drawn_run.get()
        with self.unobserved(), contextlib.nullcontext() if run is None else run.reading():
            value = read()
        return Varying.of_input(self.add_input(value, source), source, value)

    @contextlib.contextmanager
    def unobserved(self):
        """Code in the block reads state at each call, so its reads need no guard."""
        observation = self.observation
        is_open = observation is not None and observation.is_open
        if is_open:
            observation.is_open = False
        try:
            yield
        finally:
            if is_open:
                observation.is_open = True

    def record_inspected(self, origins):
        """Record that the function looked at numbers that vary."""
        self.inspected |= origins
        if self.parent is not None:
            self.parent.record_inspected(origins)

    def record_derived(self, number: Varying):
        """Record a number that is computed from those that vary: a guard compares its kind."""
        self.derived.append(number)
        if self.parent is not None:
            self.parent.record_derived(number)

    # ---- numbers that code looks at

    def numbers_of(self, array, may_pin=True):
        """See `known_numbers.answer`."""
        return answer(self, array, may_pin)

    def record_refused(self, error: RuntimeError):
        """Record that code looked at numbers that are not known."""
        for scope in scopes_around(self):
            scope.refused = scope.refused or (str(error), error.place)

    def raise_refused(self):
        """Raise the error for numbers that were not known, if the function has caught it: with the
        numbers the function would have gone another way.
        """
        if self.refused is not None:
            error = RuntimeError(self.refused[0])
            error.place = self.refused[1]
            raise error


class ScopeMemory:
    """The memory that tensors from outside share.

    `joined`: the memory that is one input, None if none can be; `groups`: the `JoinedMemory` in the
    trace, by its id.
    """

    def begin_memory(self):
        self.joined: set | None = None
        self.groups: dict[int, object] = {}

    @contextlib.contextmanager
    def outer_memory(self, tensor):
        """In the block, a view that is out of date finds its root as it is outside."""
        if not is_view_out_of_date(tensor):
            yield
            return
        storage = alias_of(tensor).storage
        aliases = [(captured, captured.snapshot.alias) for captured in self.captured.values()]
        known = [captured for captured, alias in aliases if alias and alias.storage is storage]
        inside = [(captured.tensor, state_of(captured.tensor)) for captured in known]
        for captured in known:
            restore_state(captured.tensor, captured.snapshot.state)
        try:
            yield
        finally:
            for tensor, state in inside:
                restore_state(tensor, state)

    def require_joined(self, captured, is_of_memory: bool):
        """Raise RuntimeError if a function changes more of a captured tensor than its array, and
        the memory of the tensor is not joined.
        """
        if is_of_memory:
            return
        raise self.refused_memory(
            f"gives another shape or history to a tensor of shape {list(captured.aval.shape)} that "
            "shares its memory (t_, unsqueeze_, detach_ and the like): do that outside of the "
            "function",
            captured.snapshot.alias.storage,
        )

    def refused_memory(self, what: str, storage) -> RuntimeError:
        """The error for what can be done to joined memory only."""
        message = f"{self.name}, compiled by jaxgrad.jit, {what}"
        can_join = self.joined is not None and storage not in self.joined
        return SharesMemory(message, storage) if can_join else RuntimeError(message)


def is_view_out_of_date(tensor) -> bool:
    alias = alias_of(tensor)
    return alias is not None and alias.root is not None and alias.seen != alias.storage.epoch
