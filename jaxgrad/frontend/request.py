"""Requests of random numbers, and what a generator gives for them.

A request says what a draw is for. `take(seed, state)` makes the draw: it gives a list of results,
whose `array()` are the numbers, and the next state. `structs` are shapes and dtypes of the results.
`traced(twister)` makes the draw in a program, of a `TracedTwister`, and gives the arrays.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..late import LateModule

mersenne = LateModule("jaxgrad.frontend.mersenne")

# draws of fewer numbers are made at once
_MANY = 1 << 12


class Ready(NamedTuple):
    """A result that exists: a tracer or an array of NumPy."""

    values: object

    def array(self):
        return self.values


class Drawn:
    """A result that is made of the words of a draw when it is read. `after`: the state after the
    draw, while the words are not drawn.
    """

    __slots__ = ("__weakref__", "after", "late", "place", "request")

    def __init__(self, request, place: tuple, late: Callable | None):
        self.request, self.place, self.late, self.after = request, place, late, None

    def array(self) -> np.ndarray:
        if self.after is not None:
            self.after.settle()
        late = self.late
        if late is None:  # the words are drawn again
            seed, state = self.place
            return self.request.take(seed, settled(state))[0][0].late()
        return late()

    def array_once(self) -> np.ndarray:
        """The numbers, whose words are not kept for the next time."""
        numbers, self.late = self.array(), None
        return numbers


class LaterState:
    """The state after a draw whose words are drawn when a number of it, or of a later draw, is
    read. So none are drawn for weights that are overwritten by those of a file.

    `value`: the state, once it is known.
    """

    __slots__ = ("drawn", "place", "request", "value")

    def __init__(self, drawn: Drawn):
        self.drawn, self.request, self.place = weakref.ref(drawn), drawn.request, drawn.place
        self.value = None

    def settle(self):
        """The state; draws the words of the draws before it."""
        with _settling:
            waiting, state = [], self
            while type(state) is LaterState and state.value is None:
                waiting.append(state)
                state = state.place[1]
            for later in reversed(waiting):
                seed, before = later.place
                (result,), later.value = later.request.take(seed, settled(before))
                drawn = later.drawn()
                if drawn is not None:
                    drawn.late, drawn.after = result.late, None
                later.place = later.request = None
            return self.value


_settling = threading.RLock()


def settled(state):
    """A state without draws that wait."""
    return state.settle() if type(state) is LaterState else state


def never_waits(request, state) -> bool:
    return False


class KeyRequest(NamedTuple):
    """The key of the first of `count` draws of JAX's numbers, four uint32. Of PyTorch's stream it
    takes two words.
    """

    count: int = 1
    waits_after = never_waits

    @property
    def structs(self):
        return [jax.ShapeDtypeStruct((4,), np.uint32)]

    def take(self, seed, state):
        if type(state) is int:
            return [Ready(np.array([seed, state], np.uint64).view(np.uint32))], state + self.count
        twister = mersenne.Twister(seed, state)
        high, low = twister.words(2)
        return [Ready(np.array([low, high, 0, 0], np.uint32))], twister.state()

    def traced(self, twister):
        high, low = twister.words(2)
        return [jnp.array([low, high, 0, 0], np.uint32)]


class NumbersRequest(NamedTuple):
    """The numbers of a distribution, of PyTorch's stream.

    dtype: NumPy's. order: the axes of the target, the one with the longest steps in memory first,
    in which its elements are drawn; None for a target that is contiguous. parameters: of the
    distribution, Python numbers.
    """

    distribution: object
    shape: tuple
    dtype: np.dtype
    order: tuple | None
    parameters: tuple

    @property
    def structs(self):
        return [jax.ShapeDtypeStruct(self.shape, self.dtype)]

    def take(self, seed, state):
        twister = mersenne.Twister(seed, state)
        numbers = self.distribution.of_torch(
            twister, math.prod(self.shape), self.dtype, self.order is None, *self.parameters
        )
        return [Drawn(self, (seed, state), lambda: self.arranged(numbers()))], twister.state()

    def waits_after(self, state) -> bool:
        """Whether to put off the draw is worth it, after draws that may wait themselves."""
        return type(state) is LaterState or math.prod(self.shape) >= _MANY

    def drawn_later(self, seed, state):
        """`take`, whose words are drawn when they are needed."""
        drawn = Drawn(self, (seed, state), None)
        drawn.after = LaterState(drawn)
        return [drawn], drawn.after

    def traced(self, twister):
        numbers = self.distribution.of_torch(
            twister, math.prod(self.shape), self.dtype, self.order is None, *self.parameters
        )
        return [self.arranged(numbers())]

    def arranged(self, numbers):
        """Numbers in the order of memory, in the shape of the target."""
        if self.order is None:
            return numbers.reshape(self.shape)
        rows = numbers.reshape([self.shape[axis] for axis in self.order])
        moved = rows.transpose(np.argsort(self.order))
        return np.ascontiguousarray(moved) if isinstance(moved, np.ndarray) else moved


class RunsRequest(NamedTuple):
    """What each of some runs of a loop requests, one run after the other: of each request an array
    with the runs in front.
    """

    requests: tuple
    runs: int
    waits_after = never_waits

    @property
    def structs(self):
        of_a_run = [struct for request in self.requests for struct in request.structs]
        return [jax.ShapeDtypeStruct((self.runs, *one.shape), one.dtype) for one in of_a_run]

    def take(self, seed, state):
        arrays = [np.empty(struct.shape, struct.dtype) for struct in self.structs]
        for run in range(self.runs):
            results = []
            for request in self.requests:
                drawn, state = request.take(seed, state)
                results += drawn
            for array, result in zip(arrays, results, strict=True):
                array[run] = result.array()
        return [*map(Ready, arrays)], state

    def traced(self, twister):
        kind = type(twister)

        def of_a_run(state, _):
            inner = kind(state)
            arrays = [array for request in self.requests for array in request.traced(inner)]
            return inner.state, arrays

        twister.state, arrays = jax.lax.scan(of_a_run, twister.state, length=self.runs)
        return arrays


def order_in_memory(shape, strides) -> tuple | None:
    """The `order` of a request for a target with these strides."""
    expected = 1
    for extent, step in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and step != expected:
            return tuple(sorted(range(len(shape)), key=lambda axis: -strides[axis]))
        expected *= extent
    return None


def is_dense_copy(shape, strides) -> bool:
    """Whether `empty_like` of a tensor with these strides is contiguous."""
    steps = [step for extent, step in zip(shape, strides, strict=True) if extent != 1]
    return steps == sorted(steps, reverse=True)
