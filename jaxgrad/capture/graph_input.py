"""The inputs of a trace, and what gives them at a call."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .captured import Place


class Input:
    """An input of a trace: `key` tells it from others; `place`: of a tensor its place; others that
    are given at a call have `array`, which gives it.
    """

    place, is_given = None, False


class TensorInput(Input):
    def __init__(self, place: Place):
        self.place, self.key = place, ("tensor", place.number)


class ArgumentInput(Input):
    """An argument that is an array of JAX's."""

    is_given = True

    def __init__(self, position: int):
        self.position, self.key = position, ("argument", position)

    def array(self, leaves):
        return leaves[self.position]


def words_of(state, number):
    """The four words of a draw: the one so many draws after a generator's seed and count."""
    state = jnp.stack([state[0], state[1] + np.uint64(number)])
    return jax.lax.bitcast_convert_type(state, np.uint32).reshape(4)


class GeneratorInput(Input):
    """The state of a generator, which makes `count` draws at each call."""

    is_given = True

    def __init__(self, generator):
        self.generator, self.count, self.key = generator, 0, ("generator", id(generator))

    def array(self, leaves):
        return self.generator.take(self.count)


class NumberInput(Input):
    """A number that is read at each call."""

    is_given = True

    def __init__(self, read, number):
        self.read, self.key = read, ("number", number)

    def array(self, leaves):
        return self.read()
