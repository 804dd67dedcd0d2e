"""Rules of primitives that make random bits by threefry, a counter-based generator.

On the host a key is one integer of 64 bits whose first four bytes are its first word (`KEY` in
block.py). Numbers of pairs of words follow the layout of JAX, which depends on its option
`jax_threefry_partitionable`.
"""

from __future__ import annotations

import functools
import math

import jax
import numpy

from .block import KEY
from .equation import NotOnHostError, rule

WORD = numpy.dtype(numpy.uint32)
MASK = 0xFFFFFFFF
# So many pairs of words are computed at once, to stay in the cache.
PAIRS = 1 << 14
# So few pairs are computed faster in one long integer of Python.
FEW = 128

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_AS_WORDS = [[(WORD.type(r), WORD.type(32 - r)) for r in four] for four in _ROTATIONS]


# ---- threefry


def _schedule(first: int, second: int) -> list[tuple[int, int]]:
    """What is added to both words before the rounds and after every fourth one."""
    words = first, second, first ^ second ^ 0x1BD11BDA
    return [(words[i % 3], (words[(i + 1) % 3] + i) & MASK) for i in range(6)]


@functools.lru_cache(maxsize=FEW)
def _lanes(count: int) -> int:
    """A one in every 64 bits of an integer."""
    return sum(1 << 64 * lane for lane in range(count))


def _encrypt_few(schedule, left, right):
    """Encrypt words in place. One integer has all of them, each in the low half of 64 bits, and
    what is carried or shifted into the high half is cut off or moved to the low one.
    """
    lanes = _lanes(left.size)
    mask = lanes * MASK
    x, y = (int.from_bytes(words.astype("<u8").tobytes(), "little") for words in (left, right))
    x, y = (x + lanes * schedule[0][0]) & mask, (y + lanes * schedule[0][1]) & mask
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = (x + y) & mask
            y <<= rotation
            y = ((y & mask) | ((y >> 32) & mask)) ^ x
        x = (x + lanes * schedule[group + 1][0]) & mask
        y = (y + lanes * schedule[group + 1][1]) & mask
    for words, value in ((left, x), (right, y)):
        words[:] = numpy.frombuffer(value.to_bytes(8 * words.size, "little"), "<u8")


def _encrypt_block(schedule, left, right, rotated):
    """Encrypt words in place; rotated: memory of as many words."""
    left += WORD.type(schedule[0][0])
    right += WORD.type(schedule[0][1])
    for group in range(5):
        for up, down in _AS_WORDS[group % 2]:
            left += right
            numpy.left_shift(right, up, rotated)
            right >>= down
            right |= rotated
            right ^= left
        left += WORD.type(schedule[group + 1][0])
        right += WORD.type(schedule[group + 1][1])


def encrypt(first: int, second: int, left, right):
    """Encrypt arrays of words of one dimension in place, by the key of two words."""
    schedule = _schedule(first, second)
    if left.size <= FEW:
        _encrypt_few(schedule, left, right)
        return
    rotated = numpy.empty(min(PAIRS, left.size), WORD)
    for begin in range(0, left.size, PAIRS):
        part = left[begin : begin + PAIRS]
        _encrypt_block(schedule, part, right[begin : begin + PAIRS], rotated[: part.size])


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
