"""Rules of primitives that make random bits by threefry (core/threefry.py).

On the host a key is one integer of 64 bits whose first four bytes are its first word (`KEY` in
block.py). Which words are the bits of which element depends on JAX's option
`jax_threefry_partitionable`.
"""

from __future__ import annotations

import math

import jax
import numpy

from ..threefry import MASK, WORD, encrypt
from .block import KEY
from .equation import NotOnHostError, rule

# ---- the cipher


@rule("threefry2x32")
def _threefry2x32(equation):
    shape = equation.outputs[0].shape
    has_one_key = all(math.prod(form.shape) == 1 for form in equation.inputs[:2])

    def one_key(first, second, left, right):
        left, right = (
            numpy.array(numpy.broadcast_to(words, shape), order="C") for words in (left, right)
        )
        encrypt(first.item(), second.item(), left.reshape(-1), right.reshape(-1))
        return [left, right]

    def many_keys(*words):
        keys_and_words = [numpy.array(numpy.broadcast_to(w, shape), order="C") for w in words]
        flat = [words.reshape(-1) for words in keys_and_words]
        for place in range(flat[0].size):
            first, second, left, right = (words[place : place + 1] for words in flat)
            encrypt(first.item(), second.item(), left, right)
        return keys_and_words[2:]

    return one_key if has_one_key else many_keys


def _words_of_count(first: int, second: int, count: int, is_split: bool):
    """The two arrays of encrypted numbers from 0 on.

    is_split: whether the numbers from 0 to `count` are cut in two halves, which are encrypted
    together, and a zero fills the second half; else each number has 64 bits, the high word first.
    """
    if is_split:
        size = (count + 1) // 2
        left, right = numpy.arange(2 * size, dtype=WORD).reshape(2, size)
        if count % 2:
            right[-1] = 0
    else:
        left, right = numpy.zeros(count, WORD), numpy.arange(count, dtype=WORD)
    encrypt(first, second, left, right)
    return left, right


def _words_in_line(first: int, second: int, count: int):
    return numpy.concatenate(_words_of_count(first, second, count, is_split=True))[:count]


def _is_partitionable() -> bool:
    return jax.config.jax_threefry_partitionable


# ---- keys


def _key_of(words):
    """Keys of arrays of words whose last dimension is 2."""
    return numpy.ascontiguousarray(words).view(KEY)[..., 0]


def _words_of(key):
    return numpy.asarray(key)[..., None].view(WORD)


def _for_keys(shape_of_keys, shape, dtype, function):
    """A function that computes an array of the shape for each key."""
    if not shape_of_keys:
        return lambda key: function(*_words_of(key).tolist()).reshape(shape)

    def for_keys(keys):
        result = numpy.empty((*shape_of_keys, *shape), dtype)
        rows = result.reshape(math.prod(shape_of_keys), math.prod(shape))
        for row, words in zip(rows, _words_of(keys).reshape(-1, 2).tolist(), strict=True):
            row[:] = function(*words)
        return result

    return for_keys


def _check_kind(equation):
    if equation.params["impl"].name != "threefry2x32":
        raise NotOnHostError(f"keys of {equation.params['impl'].name}")


@rule("random_wrap")
def _random_wrap(equation):
    _check_kind(equation)
    return _key_of


@rule("random_unwrap")
def _random_unwrap(_equation):
    return _words_of


@rule("random_clone")
def _random_clone(_equation):
    return lambda key: key


def _seed_words(seed):
    """The words of the keys of seeds: the high and the low half of an integer."""
    seed = numpy.asarray(seed)
    # shifted by 32 bits, an integer of fewer is 0
    high = (seed.astype(numpy.uint64) >> numpy.uint64(32)) if seed.dtype.itemsize == 8 else 0
    words = numpy.empty((*seed.shape, 2), WORD)
    words[..., 0], words[..., 1] = high, seed.astype(numpy.uint64) & numpy.uint64(MASK)
    return words


@rule("random_seed")
def _random_seed(equation):
    _check_kind(equation)
    return lambda seed: _key_of(_seed_words(seed))


@rule("random_fold_in")
def _random_fold_in(equation):
    shape = equation.outputs[0].shape

    def fold_in(key, data):
        keys = numpy.broadcast_to(_words_of(key), (*shape, 2)).reshape(-1, 2)
        words = numpy.array(numpy.broadcast_to(_seed_words(data), (*shape, 2)), order="C")
        for key_words, pair in zip(keys.tolist(), words.reshape(-1, 2), strict=True):
            encrypt(*key_words, pair[:1], pair[1:])
        return _key_of(words)

    return fold_in


@rule("random_split")
def _random_split(equation):
    shape_of_keys, shape = equation.inputs[0].shape, equation.params["shape"]
    count = math.prod(shape)

    def split(first, second):
        if _is_partitionable():
            words = numpy.stack(_words_of_count(first, second, count, is_split=False), -1)
        else:
            words = _words_in_line(first, second, 2 * count)
        return words.reshape(count, 2).view(KEY)[:, 0]

    return _for_keys(shape_of_keys, shape, KEY, split)


# ---- bits


@rule("random_bits")
def _random_bits(equation):
    width, shape = equation.params["bit_width"], equation.params["shape"]
    count, dtype = math.prod(shape), equation.outputs[0].dtype
    if count * width >= 32 * MASK or width not in (8, 16, 32, 64):
        raise NotOnHostError("random_bits of so many elements")
    partitionable = _joined_bits(width, dtype, count)
    original = _cut_bits(width, dtype, count)

    def bits(first, second):
        return (partitionable if _is_partitionable() else original)(first, second)

    return _for_keys(equation.inputs[0].shape, shape, dtype, bits)


def _joined_bits(width, dtype, count):
    """The bits of an element are those of one pair of words."""

    def bits(first, second):
        high, low = _words_of_count(first, second, count, is_split=False)
        if width == 64:
            return _wide(high, low)
        high ^= low
        return high.astype(dtype, copy=False)

    return bits


def _cut_bits(width, dtype, count):
    """The words in line are cut into elements, or joined to elements."""
    words = -(-width * count // 32)

    def bits(first, second):
        line = _words_in_line(first, second, words)
        if width == 64:
            return _wide(*line.reshape(2, -1))
        if width == 32:
            return line
        shifts = numpy.arange(0, 32, width, dtype=WORD)
        return (line[:, None] >> shifts).astype(dtype).reshape(-1)[:count]

    return bits


def _wide(high, low):
    wide = high.astype(numpy.uint64)
    wide <<= numpy.uint64(32)
    wide |= low
    return wide
