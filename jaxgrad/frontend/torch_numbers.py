"""The numbers that PyTorch makes of the words of its generator on the CPU.

Each function takes a `Twister`, a count of numbers, NumPy's dtype of the result, whether the target
lies in memory without gaps and in order (`is_dense`), and the parameters of its distribution. It
takes the words, and returns a function that computes the numbers, as an array of shape (count,): by
NumPy, or in a program, with a `TracedTwister`, by JAX.

They are PyTorch's to the bit where only integers, products and sums are computed. Where a logarithm
or a trigonometric function is, NumPy may round the last bit otherwise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from ..core import dtypes
from .mersenne import Twister, doubles, singles
from .number_arrays import complex_of, namespace

# from so many numbers on, dense normal numbers are made in blocks of so many
BLOCK = 16

# how many numbers NumPy makes at once, to stay in the cache
_AT_ONCE = 1 << 15

# from this width on, an integer is made of two words; from this count on, those of a permutation
_WIDE, _MANY = 1 << 28, (2**32 - 1) // 20

# up to so many, the numbers of a permutation are swapped one by one
_FEW = 1 << 10


class _Unit(NamedTuple):
    """Uniform numbers in [0, 1): of how many words each is made, and how."""

    words: int
    numbers: Callable


def _unit(dtype) -> _Unit:
    """float64 for itself, float32 for the other dtypes."""
    return _Unit(2, doubles) if dtype == np.float64 else _Unit(1, singles)


def _in_pieces(formula, words, count: int, dtype):
    """The numbers that a formula makes of words, as many of each."""
    if not isinstance(words, np.ndarray):
        return formula(words).astype(dtype)
    values, width = np.empty(count, dtype), len(words) // max(count, 1)
    with np.errstate(all="ignore"):
        for begin in range(0, count, _AT_ONCE):
            end = begin + _AT_ONCE
            values[begin:end] = formula(words[begin * width : end * width])
    return values


def _of_parts(draw):
    """A distribution for complex dtypes too: of their real and imaginary parts in turns."""

    @functools.wraps(draw)
    def of_any(twister, count, dtype, is_dense, *numbers):
        if dtype.kind != "c":
            return draw(twister, count, dtype, is_dense, *numbers)
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = draw(twister, 2 * count, part, is_dense, *numbers)
        return lambda: complex_of(parts().reshape(-1, 2))

    return of_any


def fused(a, b, c):
    """a * b + c, rounded once."""
    if a.dtype == np.float32:
        return (a.astype(np.float64) * float(b) + float(c)).astype(np.float32)
    # the errors of product and sum. Source: Dekker, "A floating-point technique for extending the
    # available precision", 1971
    high_a, high_b = ((134217729 * x) - (134217729 * x - x) for x in (a, b))
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    rest = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    other = total - product
    return total + ((product - (total - other)) + (c - other) + rest)


@_of_parts
def uniform(twister, count, dtype, is_dense, low=0.0, high=1.0):
    """Uniform numbers in [low, high)."""
    unit = _unit(dtype)
    words = twister.words(unit.words * count)
    wide = np.result_type(dtype, np.float32)
    start, width = wide.type(low), wide.type(high) - wide.type(low)
    low, high = np.array([low, high]).astype(dtype)

    def formula(words):
        if (start, width) != (0, 1):
            numbers = scaled(words, unit, width, start).astype(dtype)
        else:
            numbers = unit.numbers(words)
            if numbers.dtype == dtype:
                return numbers
            numbers = numbers.astype(dtype)
        # what is rounded to the end becomes the start
        is_end = numbers >= high
        if isinstance(is_end, np.ndarray) and not is_end.any():
            return numbers
        return namespace(numbers).where(is_end, low, numbers)

    return lambda: _in_pieces(formula, words, count, dtype)


def scaled(words, unit: _Unit, width, start):
    """Uniform numbers times `width`, plus `start`, rounded once."""
    if unit.words == 2 and width > 2.0**900:  # whose parts would not be finite
        return fused(unit.numbers(words), width * 2.0**-64, start * 2.0**-64) * 2.0**64
    if unit.words == 2:
        return fused(unit.numbers(words), width, start)
    # in double precision the product is exact
    bits = (words & np.uint32(2**24 - 1)).view(np.int32)
    return (bits * (np.float64(width) * 2.0**-24) + np.float64(start)).astype(np.float32)


def _box_muller(unit) -> np.ndarray:
    """Normal numbers in blocks of 16: the first 8 uniform numbers of each give the radii."""
    xp, number = namespace(unit), unit.dtype.type
    # in one dimension, since NumPy is slow for rows of 8
    first, second = unit.reshape(-1, 2, BLOCK // 2).swapaxes(0, 1).reshape(2, -1)
    radius = xp.sqrt(number(-2) * xp.log(number(1) - first))
    angle = number(2 * math.pi) * second
    pairs = radius * xp.cos(angle), radius * xp.sin(angle)
    return xp.stack([part.reshape(-1, BLOCK // 2) for part in pairs], 1).ravel()


def _scaled_blocks(unit, std, mean):
    normals, number = _box_muller(unit), unit.dtype.type
    if (std, mean) == (1, 0):
        return normals
    if unit.dtype == np.float32 and mean:
        return fused(normals, number(std), number(mean))
    return normals * number(std) + number(mean)


def _dense_normal(twister, count, dtype, std, mean):
    """The last block of a count that is no multiple of 16 replaces the last 16 numbers."""
    whole, rest, unit = count - count % BLOCK, count % BLOCK, _unit(dtype)
    words = twister.words(unit.words * whole)
    if rest and dtype.itemsize >= 4:
        twister.words(unit.words * rest)  # they are replaced
    last = twister.words(unit.words * BLOCK) if rest else None

    def formula(words):
        return _scaled_blocks(unit.numbers(words), std, mean)

    def numbers():
        values = _in_pieces(formula, words, whole, dtype)
        if last is None:
            return values
        parts = [values[: count - BLOCK], formula(last).astype(dtype)]
        return namespace(values).concatenate(parts)

    return numbers


def normal(twister, count, dtype, is_dense, std=1.0, mean=0.0):
    """Normal numbers; complex ones have half of the variance, and the mean, in each part."""
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = normal(twister, 2 * count, part, is_dense, std * math.sqrt(0.5), mean)
        return lambda: complex_of(parts().reshape(-1, 2))
    if is_dense and count >= BLOCK:
        return _dense_normal(twister, count, dtype, std, mean)
    values = twister.normals(count)
    return lambda: (values * std + mean).astype(dtype)


def normal_of_half(twister, count, dtype, is_dense, std=1.0, mean=0.0):
    """Normal numbers of complex32, whose parts are drawn as numbers of float16."""
    part, std = np.dtype(np.float16), std * math.sqrt(0.5)
    parts = normal(twister, 2 * count, part, is_dense, std, mean)
    return lambda: complex_of(parts().astype(np.float32).reshape(-1, 2))


def log_normal(twister, count, dtype, is_dense, mean, std):
    values = twister.normals(count)
    return lambda: namespace(values).exp(values * std + mean).astype(dtype)


def _of_doubles(formula):
    """A distribution whose numbers are made of uniform ones in double precision, one of each."""

    def draw(twister, count, dtype, is_dense, *numbers):
        words = twister.words(2 * count)
        return lambda: _in_pieces(
            lambda words: formula(doubles(words), *numbers), words, count, dtype
        )

    return draw


def kept(twister, count, dtype, is_dense, probability):
    """Which uniform numbers in double precision are less than a probability."""
    words = twister.words(2 * count)
    # as integers of 53 bits: by their high 21 bits, and where these are equal by the other ones
    bound = math.ceil(probability * 2**53)
    high, low = np.uint32(bound >> 32), np.uint32(bound % 2**32)

    def formula(words):
        highs = words[::2] & np.uint32(2**21 - 1)
        return (highs < high) | ((highs == high) & (words[1::2] < low))

    return lambda: _in_pieces(formula, words, count, dtype)


@_of_doubles
def cauchy(unit, median, sigma):
    return median + sigma * namespace(unit).tan(np.pi * (unit - 0.5))


@_of_doubles
def exponential(unit, rate):
    return -1.0 / rate * namespace(unit).log1p(-unit)


@_of_doubles
def geometric(unit, log_of_failure):
    xp = namespace(unit)
    return xp.ceil(xp.log(unit) / log_of_failure)


def integers(twister, count, dtype, is_dense, low, high):
    """Integers in [low, high)."""
    low, high = -_rounded_bound(-low, dtype, 1), _rounded_bound(high, dtype, 0)
    span = high - low
    drawn = twister.longs(count) if span >= _WIDE else twister.words(count)
    return lambda: _moved(_remainders(drawn, span), low).astype(dtype)


def all_integers(twister, count, dtype, is_dense, end):
    """Integers in [0, end), all that a dtype holds exactly."""
    is_wide = dtype in (np.float64, np.int64)
    drawn = twister.longs(count) if is_wide else twister.words(count)
    return lambda: _remainders(drawn, end).view(np.int64).astype(dtype)


def _remainders(drawn, span):
    remainders = drawn.astype(np.uint64)
    return remainders if span == 2**64 else remainders % np.uint64(span)


def _moved(remainders, low):
    return (remainders + np.uint64(low % 2**64)).view(np.int64)


def _rounded_bound(bound: int, dtype, least: int) -> int:
    """The end of a range, lowered as in PyTorch where a floating-point dtype rounds the integer
    before it up to the end, or `least` beyond it.
    """
    if dtype.kind in "iub":
        return bound
    digits = -int(math.log2(dtypes.finfo(dtypes.from_numpy(dtype)).eps)) + 1
    nearest = int(np.array(bound - 1, np.float64).astype(dtype).astype(np.float64))
    if nearest < bound + least:
        return bound
    return nearest - (1 << (abs(bound - 1).bit_length() - digits))


def truncated_normal(
    twister, count, dtype, is_dense, low, high, std, mean, least, greatest, is_dense_again
):
    """Normal numbers between two bounds, by rejection of normal or of uniform numbers; low, high:
    the values of the error function at the bounds. is_dense_again: `is_dense` for the tensor that
    takes the later attempts, which lies in the order of the target without its gaps.
    """
    is_likely = (high - low) / 2 > 0.3
    first, again = (
        functools.partial(
            _bounded_normals if is_likely else _shaped_uniforms,
            *(count, dtype, layout, std, mean, least, greatest),
        )
        for layout in (is_dense, bool(is_dense_again))
    )
    values = until_accepted(twister, first, again)
    return lambda: values


def until_accepted(twister, attempt, again=None, keeps_first=True):
    """Numbers of `attempt(twister)`, which gives some and whether each is refused: the first
    accepted ones, or the last. All are drawn anew as long as one is missing, by `again(twister)` if
    it is not None.
    """
    again = again or attempt

    def retried(twister, values, is_missing):
        numbers, is_refused = again(twister)
        is_taken = is_missing if keeps_first else ~is_refused
        values = namespace(values).where(is_taken, numbers, values)
        return values, is_missing & is_refused

    def step(state):
        state, *before = state
        inner = kind(state)
        after = retried(inner, *before)
        return inner.state, *after

    values, is_missing = attempt(twister)
    if not isinstance(twister, Twister):
        kind = type(twister)
        state = twister.state, values, is_missing
        twister.state, values, _ = jax.lax.while_loop(lambda state: state[2].any(), step, state)
        return values
    while is_missing.any():
        values, is_missing = retried(twister, values, is_missing)
    return values


def _bounded_normals(count, dtype, is_dense, std, mean, least, greatest, twister):
    numbers = normal(twister, count, dtype, is_dense, std, mean)()
    least, greatest = np.array([least, greatest]).astype(dtype)
    return numbers, (numbers < least) | (numbers > greatest)


def _shaped_uniforms(count, dtype, is_dense, std, mean, least, greatest, twister):
    """Uniform numbers. One is accepted if its logarithmic density exceeds the logarithm of a second
    uniform number. Each step is rounded to the dtype, as by an operator of PyTorch.
    """
    wide = np.result_type(dtype, np.float32)
    peak = -0.5 * ((max(least, min(mean, greatest)) - mean) / std) ** 2

    def rounded(values):
        return values.astype(dtype).astype(wide)

    numbers = uniform(twister, count, dtype, is_dense, least, greatest)()
    unit = uniform(twister, count, dtype, is_dense)().astype(wide)
    scaled = rounded(rounded(numbers.astype(wide) - wide.type(mean)) / wide.type(std))
    density = rounded(rounded(rounded(scaled * scaled) * wide.type(-0.5)) - wide.type(peak))
    with np.errstate(divide="ignore"):
        return numbers, rounded(namespace(unit).log(unit)) > density


def orders(twister, count, dtype, is_dense, length):
    """The integers from 0 to `length` - 1 in random order, again and again."""
    drawn = [_swaps(twister, length) for _ in range(count // length if length else 0)]
    empty = np.empty(0, dtype)

    def numbers():
        rows = [_order(places, length).astype(dtype) for places in drawn]
        return namespace(rows[0]).concatenate([empty, *rows]) if rows else empty

    return numbers


def _swaps(twister, count: int):
    """With which place each of the first places is swapped, one after the other. Source:
    Durstenfeld, "Algorithm 235: random permutation", 1964.
    """
    draws = max(count - 1, 0)
    spans = np.arange(count, 1, -1, dtype=np.uint64)
    drawn = twister.longs(draws) if count >= _MANY else twister.words(draws)
    return np.arange(draws) + (drawn.astype(np.uint64) % spans).astype(np.int64)


def _order(swaps, count: int):
    if not isinstance(swaps, np.ndarray):

        def swap(place, numbers):
            other = swaps[place]
            first, second = numbers[place], numbers[other]
            return numbers.at[place].set(second).at[other].set(first)

        return jax.lax.fori_loop(0, max(count - 1, 0), swap, jax.numpy.arange(count))
    if count > _FEW:
        return _swapped(np.append(swaps, count - 1))
    numbers = list(range(count))
    for place, other in enumerate(swaps.tolist()):
        numbers[place], numbers[other] = numbers[other], numbers[place]
    return np.array(numbers, np.int64)


def _swapped(others) -> np.ndarray:
    """The numbers 0, 1, ... after each place, one after the other, has swapped its number with that
    of another place, which does not lie before it.
    """
    count = len(others)
    steps = np.arange(count)
    # a place has its number from the last earlier place that swapped with it, and that one before
    origins, is_moved = steps.copy(), others != steps
    origins[others[is_moved]] = steps[is_moved]
    while not np.array_equal(earlier := origins[origins], origins):
        origins = earlier
    # a place takes what the last earlier one that swapped with the same place has left there
    places, numbers = np.divmod(np.sort(others * count + steps), count)
    is_again = places[1:] == places[:-1]
    results = np.empty(count, np.int64)
    results[numbers[0]] = places[0]
    results[numbers[1:]] = np.where(is_again, origins[numbers[:-1]], places[1:])
    return results
