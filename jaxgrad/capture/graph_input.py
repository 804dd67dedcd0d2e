"""The inputs of a traced program, and what supplies them at each call."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Hashable

import jax
import jax.numpy as jnp
import numpy as np

from ..core.aval import aval_of, is_key, types_of_trace
from ..frontend.request import KeyRequest
from ..late import LateModule
from ..tape import mode, pytree
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor

traced_twister = LateModule("jaxgrad.frontend.traced_twister")


class GraphInput:
    """An input of a traced program.

    `key`: identifies the input in a replay; `captured`: its captured tensor, None for other inputs;
    `is_read`: whether each call reads it by `array`; `is_number`: whether it is a Python number;
    `description`: a noun for messages.
    """

    captured, is_read, is_number, description = None, False, False, "an argument"

    def array(self, leaves):
        """The array of a call, given its arguments."""
        raise NotImplementedError(f"{type(self).__name__}.array")

    def example(self, leaves):
        """An array or number like that of a call, which changes no state."""
        return self.array(leaves)

    def value_of_call(self, leaves):
        """The number of the call that is going on, once it has been read."""
        return self.array(leaves)


class ArgumentInput(GraphInput):
    """An argument that is a JAX array or a Python number."""

    is_read = True

    def __init__(self, position: int, is_number=False):
        self.position, self.key = position, ("argument", position)
        self.is_number = is_number

    def array(self, leaves):
        return leaves[self.position]

    def value(self, array):
        """What the function gets for an array of the program."""
        return array


class KeyInput(ArgumentInput):
    """An argument that is a random key of JAX: the program takes its data."""

    def __init__(self, position: int, implementation):
        super().__init__(position)
        self.implementation = implementation

    def array(self, leaves):
        return jax.random.key_data(leaves[self.position])

    def value(self, array):
        return jax.random.wrap_key_data(array, impl=self.implementation)


def argument_of(scope, leaf: jax.Array, position: int) -> jax.Array:
    """An argument that is a JAX array, as the traced function gets it."""
    if not is_key(leaf):
        return scope.add_input(leaf, ArgumentInput(position))
    source = KeyInput(position, jax.random.key_impl(leaf))
    data = jax.eval_shape(jax.random.key_data, leaf)  # no equation of the trace
    return source.value(scope.add_input(data, source))


class RandomInput(GraphInput):
    """An input that each call takes from a generator, in the order of the inputs."""

    is_read, description = True, "random numbers"

    def __init__(self, generator, key):
        self.generator, self.key = generator, key


class GeneratorInput(RandomInput):
    """The state of a generator of JAX's stream. Each call takes `count` draws, and so advances the
    generator.
    """

    def __init__(self, generator):
        super().__init__(generator, ("generator", id(generator)))
        self.count = 0

    def array(self, leaves):
        (result,) = self.generator.perform(KeyRequest(self.count))
        return result.array().view(np.uint64)

    def example(self, leaves):
        return np.zeros(2, np.uint64)


class Drawing:
    """A draw of PyTorch's stream, which the host makes before the program runs; `results`: what it
    has given in the call that is going on.
    """

    def __init__(self, generator, request):
        self.generator, self.request, self.results = generator, request, ()


class DrawnInput(RandomInput):
    """A result of a draw, by its number among them."""

    def __init__(self, drawing: Drawing, number: int, key):
        super().__init__(drawing.generator, key)
        self.drawing, self.number = drawing, number

    def array(self, leaves):
        drawing = self.drawing
        if self.number == 0:
            drawing.results = iter(self.generator.perform(drawing.request))
        return next(drawing.results).array()

    def example(self, leaves):
        struct = self.drawing.request.structs[self.number]
        return np.zeros(struct.shape, struct.dtype)


class StateInput(RandomInput):
    """The state of a generator of PyTorch's stream, as bytes; `snapshot`: it in the call that is
    going on.
    """

    snapshot = None

    def array(self, leaves):
        self.snapshot = self.generator.snapshot
        return self.generator.state_bytes()

    def example(self, leaves):
        return self.generator.state_bytes()


class RunningInput(RandomInput):
    """The state of a generator of PyTorch's stream, which the program takes over from here on."""

    def array(self, leaves):
        return traced_twister.packed(*self.generator.begun)

    def example(self, leaves):
        return np.zeros(traced_twister.PACKED, np.uint32)


class StateChange(RandomInput):
    """A seed or a state that the function gives to a generator of PyTorch's stream: an input
    without elements. source: a seed, a symbolic one, the `StateInput` whose state it is, or None
    for a change that was put back.
    """

    def __init__(self, generator, key, source):
        super().__init__(generator, key)
        self.source = source

    def array(self, leaves):
        source = self.source
        if type(source) is StateInput:
            self.generator.snapshot = source.snapshot
        elif type(source) is Varying:
            values = {one: one.value_of_call(leaves) for one in source.origins}
            self.generator.snapshot = int(source.compute(values)) % 2**64, None
        elif source is not None:
            self.generator.snapshot = source, None
        return self.example(leaves)

    def example(self, leaves):
        return np.zeros(0, np.uint8)


class ExampleNumber(GraphInput):
    """The input of a `vmap` that numbers the examples."""

    is_read = True

    def __init__(self, size):
        self.size, self.key = size, ("example",)

    def array(self, leaves):
        return jnp.arange(self.size, dtype=jnp.int32)


class NumberInput(GraphInput):
    """A Python number that `read()` gives at each call. `turn`: how often the trace had called this
    reader before.
    """

    is_read = is_number = True

    def __init__(self, read, number, turn: int):
        self.read, self.turn, self.key = read, turn, ("number", number)

    def array(self, leaves):
        reads = number_reads.get()
        self.latest = self.read() if reads is None else reads.repeat(self)
        return self.latest

    def value_of_call(self, leaves):
        return self.latest


def in_order(inputs: list[GraphInput]) -> list[GraphInput]:
    """The inputs that are captured tensors, by their numbers."""
    tensors = [source for source in inputs if source.captured is not None]
    return sorted(tensors, key=lambda source: source.captured.number)


def number_readers(inputs: list[GraphInput]) -> list:
    """The code of the functions by which each call reads a number (`tracing.number`)."""
    reads = [source.read for source in inputs if isinstance(source, NumberInput)]
    return [read.__code__ for read in reads if hasattr(read, "__code__")]


def reader_of(read):
    """The key that equal readers share, though they are made again at each call."""
    reader = getattr(read, "__code__", read)
    return reader if isinstance(reader, Hashable) else id(reader)


class NumberReads:
    """The numbers that the uncompiled run of a verified call reads by `tracing.number`, by reader.

    Clocks and random numbers change from run to run, so the other runs get these numbers.
    """

    def __init__(self):
        self.values: dict[object, list] = {}
        self.turns: Counter = Counter()

    @contextlib.contextmanager
    def open(self):
        """Inside of the block a run of the call reads numbers."""
        self.turns.clear()
        token = number_reads.set(self)
        try:
            yield
        finally:
            number_reads.reset(token)

    def read(self, read):
        """A number that a run without a trace reads."""
        reader = reader_of(read)
        values, turn = self.values.setdefault(reader, []), self.turns[reader]
        self.turns[reader] += 1
        if turn == len(values):
            values.append(read())
        return values[turn]

    def repeat(self, source: NumberInput):
        """The number of an input of a program."""
        number, known = source.read(), self.values.get(reader_of(source.read), ())
        # what depends on state alone is the same again: if it differs, the comparison is to tell
        if source.turn >= len(known) or number == known[source.turn] or number == source.read():
            return number
        return known[source.turn]


# those of the verified call that is going on in this context
number_reads = mode.number_reads


def scopes_around(scope):
    """Yield a scope and those around it."""
    while scope is not None:
        yield scope
        scope = scope.parent


def random_words(state, number):
    """The four words of draw `number`, counted from a generator's state: its seed and its count."""
    with types_of_trace():
        state = jnp.stack([state[0], state[1] + np.uint64(number)])
        return jax.lax.bitcast_convert_type(state, np.uint32).reshape(4)


def seen_input(value):
    """The abstract value of an input that is no captured tensor; a type for numbers and keys."""
    return aval_of(value) if hasattr(value, "shape") and not is_key(value) else type(value)


# ---- the Python numbers among the arguments that become inputs

NUMBERS = (int, float)


class VaryingNumbers:
    """The Python numbers among the arguments of one structure.

    `varying`: the positions of those that have had several values; they are inputs of the program.
    """

    def __init__(self, static, leaves, structure):
        args, kwargs = jax.tree.unflatten(structure, range(len(leaves)))
        chosen = args, kwargs
        if static is not None:
            chosen = [argument_at(args, kwargs, key) for key in static]
        fixed = set(pytree.flatten(chosen)[0])
        self.first = {
            i: leaf for i, leaf in enumerate(leaves) if type(leaf) in NUMBERS and i not in fixed
        }
        self.varying = frozenset()

    def update(self, leaves):
        known = [(i, leaves[i], first) for i, first in self.first.items()]
        self.varying |= {i for i, leaf, first in known if type(leaf) in NUMBERS and leaf != first}

    def give_up(self, positions) -> bool:
        """Make the numbers at these positions constants again; whether there were any."""
        constants = self.varying.intersection(positions)
        self.varying -= constants
        for position in constants:
            # for good: the function needed the value, and would again
            del self.first[position]
        return bool(constants)


def argument_at(args, kwargs, key):
    """An argument by position or name; None where the call does not give it."""
    if isinstance(key, str):
        return kwargs.get(key)
    return args[key] if key < len(args) else None


# ---- where a later call finds a captured tensor


class TensorSource:
    """Finds a captured tensor in a later call."""

    def find(self, leaves, tensors) -> Tensor | None:
        """The tensor, given the arguments and the captured tensors found before it."""
        raise NotImplementedError(f"{type(self).__name__}.find")


class ArgumentSource(TensorSource):
    """An argument, by its position among the leaves."""

    def __init__(self, position: int):
        self.position = position

    def find(self, leaves, tensors):
        return leaves[self.position]


class HandleSource(TensorSource):
    """A tensor that the function reaches by closure, attribute or global: the handle itself, for as
    long as it is referenced elsewhere.
    """

    def __init__(self, tensor: Tensor):
        self.reference = weakref.ref(tensor)

    def find(self, leaves, tensors):
        return self.reference()
