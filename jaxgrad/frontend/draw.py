"""Draws: the numbers of a distribution for a generator's next draw.

Those of the stream "torch" are made on the host (frontend/torch_numbers.py), also for a compiled
function, whose inputs they are. Those of the stream "jax" are those of `jax.random` for the
generator's key. XLA takes 160 milliseconds to compile `jax.random` for one size. So the host draws
the bits (frontend/threefry.py) and NumPy makes numbers of them. What is drawn very often gets a
program of its own.
"""

from __future__ import annotations

import contextvars
import functools
import math
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core import executor
from ..core.aval import check_bytes, types_of_trace
from ..core.bounded_cache import bounded
from ..core.deferred import BARRIERS
from ..late import LateModule
from ..tape import mode
from . import threefry
from .array_creation import computed_late, is_frequent, on_device
from .number_arrays import at_least_single, complex_of, erf_inv, namespace, real, separately
from .request import Drawn, NumbersRequest

torch_numbers = LateModule("jaxgrad.frontend.torch_numbers")

_ALGORITHM = "threefry2x32"

# whether numbers of complex64 stand for those of complex32
is_of_half = contextvars.ContextVar("jaxgrad.draws_of_half", default=False)

# how many uniform numbers are made at once, to stay in the cache
_AT_ONCE = threefry.PIECE

# A draw on the host takes 100 us longer than by a program of its own, and as much again for so many
# elements. For the count of requests, the larger one counts as several.
_SLOWER = 25_000


def fold(words):
    """The key of a draw: the key of the seed, with the number of the draw folded in.

    words: four of 32 bits, from `Generator.next_key`; a tracer or a NumPy array, as is the result.
    """
    if not isinstance(words, jax.core.Tracer):
        seed, number = words[:2].tolist(), words[2:].tolist()
        return np.array(functools.reduce(threefry.child, number, seed), np.uint32)
    with types_of_trace():
        key = jax.random.wrap_key_data(words[:2], impl=_ALGORITHM)
        for word in (words[2], words[3]):
            key = jax.random.fold_in(key, word)
        return jax.random.key_data(key)


def _examples():
    """How many examples draw different numbers in the `vmap`s around, the outermost first, and the
    numbers of the one that is traced.
    """
    scope = mode.scope.get()
    examples = [] if scope is None else scope.examples
    return tuple([size for size, _ in examples]), tuple([number for _, number in examples])


def sizes_of_examples() -> tuple:
    """How many examples draw different numbers in the `vmap`s around, the outermost first."""
    return tuple([max(size, 1) for size in _examples()[0]])


def of_example(values):
    """What the traced example takes of a draw of all examples of the `vmap`s around.

    values(sizes): the numbers that are drawn at once, with these extents in front.
    """
    _, numbers = _examples()
    # without examples one is traced nevertheless
    drawn = values(sizes_of_examples())
    return drawn.at[numbers].get(mode="promise_in_bounds") if numbers else drawn


def counter_of_example(count):
    """Two words: how many elements of a draw the examples have before the one that is traced, of so
    many each.
    """
    sizes, numbers = _examples()
    if not numbers:
        return np.zeros(2, np.uint32)
    places = [max(size, 1) for size in sizes]
    number = jnp.ravel_multi_index(numbers, places, mode="clip").astype(np.uint64) * count
    return jax.lax.bitcast_convert_type(number, np.uint32)[::-1]


def words_of_example(generator):
    """The words of a draw, as `Generator.next_key` gives them, where the examples of the `vmap`s
    around draw one after the other.
    """
    sizes, numbers = _examples()
    words = generator.next_keys(math.prod(sizes))
    if not numbers:
        return words
    with types_of_trace():
        places = [max(size, 1) for size in sizes]
        number = jnp.ravel_multi_index(numbers, places, mode="clip").astype(np.uint64)
        state = jax.lax.bitcast_convert_type(words.reshape(2, 2), np.uint64)
        return jax.lax.bitcast_convert_type(state.at[1].add(number), np.uint32).reshape(4)


class Distribution(NamedTuple):
    """A distribution whose numbers are made one by one.

    value(unit, dtype, *numbers): numbers of a NumPy dtype from uniform numbers `unit` in [0, 1) of
    the same shape (for a complex dtype of the shape (..., 2)). It computes by JAX or by NumPy, as
    `unit` is an array of one or the other, and may overwrite NumPy's array, as `unit *= 2` does.
    unit(dtype): the real dtype of the uniform numbers. name: that of the function of
    frontend/torch_numbers.py with PyTorch's numbers.
    """

    value: Callable
    unit: Callable
    name: str

    def of_torch(self, *arguments):
        return getattr(torch_numbers, self.name)(*arguments)

    def traced(self, key, count: int, dtype, *numbers):
        """The draw of so many numbers in a trace, with a key of `jax.random`."""
        unit, shape = jax.dtypes.canonicalize_dtype(self.unit(dtype)), (count,)
        uniform = jax.random.uniform(key, (*shape, 2) if dtype.kind == "c" else shape, unit)
        return self.value(uniform, jax.dtypes.canonicalize_dtype(dtype), *numbers)

    def on_host(self, key, count: int, dtype, *numbers) -> np.ndarray:
        """The draw of so many numbers outside of traces, with a key of two ints."""
        values, unit = np.empty(count, dtype), self.unit(dtype)
        parts = 2 if dtype.kind == "c" else 1
        with np.errstate(all="ignore"):
            for begin in range(0, count, _AT_ONCE):
                some = values[begin : begin + _AT_ONCE]
                uniform = _uniform(key, begin * parts, some.size * parts, unit)
                uniform = uniform.reshape(-1, 2) if parts == 2 else uniform
                some[:] = self.value(uniform, dtype, *numbers)
        return values


def _uniform(key, begin, count, dtype) -> np.ndarray:
    """Elements of the draw `jax.random.uniform`: random bits after the point, less 1."""
    info = jnp.finfo(dtype)
    width = info.bits if info.nmant >= 8 else 8
    one = np.ones((), dtype).view(f"uint{info.bits}")
    fractions = threefry.bits(key, begin, count, width)
    fractions >>= np.uint8(width - info.nmant)
    elements = (fractions | one).view(dtype)
    elements -= np.ones((), dtype)
    return elements


class _Uniform(Distribution):
    """Uniform numbers themselves."""

    def on_host(self, key, count, dtype):
        parts = 2 if dtype.kind == "c" else 1
        return _uniform(key, 0, count * parts, self.unit(dtype)).view(dtype)


class _Integers:
    """Integers in [low, high), a uniform distribution."""

    def of_torch(self, *arguments):
        return torch_numbers.integers(*arguments)

    def traced(self, key, count, dtype, low, high):
        return jax.random.randint(key, (count,), low, high, jnp.int64).astype(dtype)

    def on_host(self, key, count, dtype, low, high):
        # each of two draws of 64 bits, as one of 128 bits, modulo the width of the range
        span = np.uint64(high - low)
        # 2**64 modulo the width; JAX's is 0 where the width has more than 32 bits
        factor = np.uint64((2**32 % (high - low)) ** 2 % 2**64 % (high - low))
        upper, lower = (threefry.bits(threefry.child(key, i), 0, count, 64) for i in (0, 1))
        offset = (upper % span * factor + lower % span) % span
        return (offset + np.uint64(low % 2**64)).view(np.int64).astype(dtype)


class _AllIntegers(_Integers):
    """Integers in [0, end), where the end may be 2**63."""

    def of_torch(self, *arguments):
        return torch_numbers.all_integers(*arguments)

    def traced(self, key, count, dtype, end):
        return super().traced(key, count, dtype, 0, end)

    def on_host(self, key, count, dtype, end):
        return super().on_host(key, count, dtype, 0, end)


class _Orders:
    """The integers from 0 to `length` - 1 in random order, again and again."""

    def of_torch(self, *arguments):
        return torch_numbers.orders(*arguments)


class _Bits:
    """Random bits, as unsigned integers."""

    def traced(self, key, count, dtype):
        return jax.random.bits(key, (count,), dtype)

    def on_host(self, key, count, dtype):
        return threefry.bits(key, 0, count, 8 * dtype.itemsize)


def _uniform_values(unit, dtype):
    return complex_of(unit) if dtype.kind == "c" else unit


def _normal_values(unit, dtype):
    # as `jax.random.normal` does, of numbers in (-1, 1)
    one, maximum = np.ones((), unit.dtype), namespace(unit).maximum
    low = np.nextafter(-one, one - one)
    unit *= one - low
    unit += low
    values = erf_inv(maximum(low, unit))
    values *= np.sqrt(2).astype(unit.dtype)
    if dtype.kind == "c":
        # each part has half of the variance of 1
        return complex_of(values.astype(real(dtype)) * math.sqrt(0.5))
    return values.astype(dtype, copy=False)


def _scaled_normal_values(unit, dtype, std, mean):
    # rounded as by one operator after the other
    asarray = namespace(unit).asarray
    std, mean = (
        separately(asarray(number, unit.dtype)).astype(real(dtype)) for number in (std, mean)
    )
    values = separately(_normal_values(unit, dtype))
    values *= std
    values = separately(values)
    values += mean * (1 + 1j) if dtype.kind == "c" else mean
    return values


def _kept_values(unit, dtype, probability):
    return (unit < probability).astype(dtype)


uniform = _Uniform(_uniform_values, real, "uniform")
normal = Distribution(_normal_values, at_least_single, "normal")
# of a standard deviation and a mean
scaled_normal = Distribution(_scaled_normal_values, at_least_single, "normal")
# numbers of complex32
NORMAL_OF_HALF = {
    normal: Distribution(_normal_values, at_least_single, "normal_of_half"),
    scaled_normal: Distribution(_scaled_normal_values, at_least_single, "normal_of_half"),
}
# of a probability: whether an element is kept
kept = Distribution(_kept_values, lambda _: np.dtype(np.float32), "kept")
integers, all_integers, bits, orders = _Integers(), _AllIntegers(), _Bits(), _Orders()


def draw(distribution, shape, dtype, generator, device, *numbers, at_once=True, order=None):
    """The value of a new tensor from a draw; `dtype` is numpy's. Raises RuntimeError for 2**63
    bytes or more.

    at_once: whether the examples of a `vmap` draw at once, or one after the other. order: that of a
    request (frontend/request.py), in which PyTorch's numbers are drawn.
    """
    # a number of a narrow dtype comes from one of up to 64 bits
    check_bytes(shape, max(dtype, np.dtype(np.int64), key=attrgetter("itemsize")))
    if generator.stream == "torch":
        return _of_torch(distribution, tuple(shape), dtype, generator, device, order, numbers)
    # the end of all integers is one too large for JAX
    numbers = [n - 1 if type(n) is int and n == 2**63 else n for n in numbers]
    words, shape = generator.next_key() if at_once else words_of_example(generator), tuple(shape)
    if isinstance(words, jax.core.Tracer):
        with types_of_trace():
            key = fold(words)

            def values(sizes):
                return _shaped(distribution, sizes + shape, dtype, key, *numbers)

            return of_example(values) if at_once else values(())
    if mode.draws.get() is None:
        return _drawn(distribution, shape, dtype, words, device, *numbers)
    # a recomputation repeats earlier draws, possibly inside a trace, where they are constants
    with jax.ensure_compile_time_eval():
        return _drawn(distribution, shape, dtype, words, device, *numbers)


def _of_torch(distribution, shape, dtype, generator, device, order, numbers):
    def values(sizes):
        axes = order
        if order and len(order) == len(shape):  # the examples one behind the other
            axes = (*range(len(sizes)), *[axis + len(sizes) for axis in order])
        request = NumbersRequest(distribution, sizes + shape, dtype, axes, numbers)
        (result,) = generator.numbers(request)
        if type(result) is not Drawn:
            return result.array()
        if mode.draws.get() is None:
            return computed_late(result.array, request.shape, dtype, device)
        # a recomputation repeats earlier draws, possibly inside a trace, where they are constants
        with jax.ensure_compile_time_eval():
            array = result.array_once()
            return computed_late(lambda: array, request.shape, dtype, device)

    with types_of_trace():
        return of_example(values)


def _drawn(distribution, shape, dtype, words, device, *numbers):
    key, count = fold(words), math.prod(shape)
    request = distribution, shape, dtype
    # the other form gives other numbers, which depend on the size of the draw
    is_known = jax.config.jax_threefry_partitionable
    # one program draws the bits of all that are larger
    is_small = count <= threefry.PIECE
    if not is_known or (is_small and is_frequent(*request, times=1 + count // _SLOWER)):
        array = _compiled(jax.default_backend() == "cpu", _shaped, *request)(key, *numbers)
        return on_device(array, device)
    words = key.tolist()

    def values():
        return distribution.on_host(words, count, dtype, *numbers).reshape(shape)

    return computed_late(values, shape, dtype, device)


def _shaped(distribution, shape, dtype, key, *numbers):
    key = jax.random.wrap_key_data(key, impl=_ALGORITHM)
    # in one dimension: the counters of several take twice as long to compile
    return distribution.traced(key, math.prod(shape), dtype, *numbers).reshape(shape)


@bounded()
def _compiled(is_on_cpu, function, *fixed):
    """`function`, compiled with its first arguments fixed."""
    options = BARRIERS if is_on_cpu else None
    return executor.compiled(functools.partial(function, *fixed), wide=True, options=options)
