"""Threefry, the cipher by which JAX makes random bits from a key and a counter.

Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011: Threefry with two words
of 32 bits and 20 rounds. NumPy computes it, so that no program is compiled for a number of words;
`traced` is for a program that serves all of them.
"""

from __future__ import annotations

import functools

import numpy
from jax import lax

WORD = numpy.dtype(numpy.uint32)
MASK = 0xFFFFFFFF
# what the third word of the schedule has besides those of the key
PARITY = 0x1BD11BDA
# So many pairs of words are computed at once, to stay in the cache.
PAIRS = 1 << 14
# So few pairs are computed faster in one long integer of Python.
FEW = 128

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_AS_WORDS = [[(WORD.type(r), WORD.type(32 - r)) for r in four] for four in _ROTATIONS]


def _schedule(first: int, second: int) -> list[tuple[int, int]]:
    """The numbers added to both words before the rounds and after every fourth one."""
    words = first, second, first ^ second ^ PARITY
    return [(words[i % 3], (words[(i + 1) % 3] + i) & MASK) for i in range(6)]


@functools.lru_cache(maxsize=FEW)
def _lanes(count: int) -> int:
    """A one in every 64 bits of an integer."""
    return sum(1 << 64 * lane for lane in range(count))


def encrypted_integers(first: int, second: int, left: int, right: int, count: int = 1):
    """The two words of a pair encrypted by the key of two words; of several pairs, each word is in
    the low half of 64 bits of an integer.
    """
    schedule, lanes = _schedule(first, second), _lanes(count)
    mask = lanes * MASK
    left, right = (left + lanes * schedule[0][0]) & mask, (right + lanes * schedule[0][1]) & mask
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            left = (left + right) & mask
            right <<= rotation
            # what is shifted into the high half belongs at the end of the low one
            right = ((right & mask) | ((right >> 32) & mask)) ^ left
        left = (left + lanes * schedule[group + 1][0]) & mask
        right = (right + lanes * schedule[group + 1][1]) & mask
    return left, right


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


def traced(first, second, left, right):
    """Arrays of words of one dimension, encrypted by the key of two words, for a trace of JAX."""
    shape = left.shape

    def everywhere(word):
        return lax.broadcast(lax.convert_element_type(word, WORD), shape)

    words = [*map(everywhere, (first, second))]
    words.append(lax.bitwise_xor(lax.bitwise_xor(*words), everywhere(WORD.type(PARITY))))
    left, right = lax.add(left, words[0]), lax.add(right, words[1])
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            left = lax.add(left, right)
            up, down = everywhere(WORD.type(rotation)), everywhere(WORD.type(32 - rotation))
            rotated = lax.shift_left(right, up), lax.shift_right_logical(right, down)
            right = lax.bitwise_xor(lax.bitwise_or(*rotated), left)
        left = lax.add(left, words[(group + 1) % 3])
        number = everywhere(WORD.type(group + 1))
        right = lax.add(right, lax.add(words[(group + 2) % 3], number))
    return left, right


def encrypt(first: int, second: int, left, right):
    """Encrypt arrays of words of one dimension in place, by the key of two words."""
    if left.size <= FEW:
        pair = [int.from_bytes(a.astype("<u8").tobytes(), "little") for a in (left, right)]
        pair = encrypted_integers(first, second, *pair, left.size)
        for words, value in zip((left, right), pair, strict=True):
            words[:] = numpy.frombuffer(value.to_bytes(8 * words.size, "little"), "<u8")
        return
    schedule = _schedule(first, second)
    rotated = numpy.empty(min(PAIRS, left.size), WORD)
    for begin in range(0, left.size, PAIRS):
        part = left[begin : begin + PAIRS]
        _encrypt_block(schedule, part, right[begin : begin + PAIRS], rotated[: part.size])
