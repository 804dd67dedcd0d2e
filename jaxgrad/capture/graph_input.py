"""The inputs of a traced program, and what supplies them at each call."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..core.aval import types_of_trace
from .captured import CapturedTensor


class GraphInput:
    """An input of a traced program.

    `key`: identifies it when the function is replayed; `captured`: the captured tensor that it is,
    None for other inputs; `is_read`: whether each call gets it from `array`.
    """

    captured, is_read = None, False

    def array(self, leaves):
        """The array of a call, given its arguments."""
        raise NotImplementedError(f"{type(self).__name__}.array")


class TensorInput(GraphInput):
    """The array of a captured tensor."""

    def __init__(self, captured: CapturedTensor):
        self.captured, self.key = captured, ("tensor", captured.number)


class ArgumentInput(GraphInput):
    """An argument that is a JAX array or a Python number."""

    is_read = True

    def __init__(self, position: int):
        self.position, self.key = position, ("argument", position)

    def array(self, leaves):
        return leaves[self.position]


class GeneratorInput(GraphInput):
    """The state of a generator. Each call takes `count` draws, and so advances the generator."""

    is_read = True

    def __init__(self, generator):
        self.generator, self.count, self.key = generator, 0, ("generator", id(generator))

    def array(self, leaves):
        return self.generator.take(self.count)


class NumberInput(GraphInput):
    """A Python number that `read()` gives at each call."""

    is_read = True

    def __init__(self, read, number):
        self.read, self.key = read, ("number", number)

    def array(self, leaves):
        return self.read()


def random_words(state, number):
    """The four words of draw `number`, counted from a generator's state: its seed and its count."""
    with types_of_trace():
        state = jnp.stack([state[0], state[1] + np.uint64(number)])
        return jax.lax.bitcast_convert_type(state, np.uint32).reshape(4)
