"""The random bits of `jax.random`, computed on the host: no program is compiled for their number.

JAX's counter-based generator gives element i of a draw from the key and i alone. Source: Salmon et
al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011: Threefry with two words of 32 bits and 20
rounds.
"""

from __future__ import annotations

import numpy as np

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_MASK = 0xFFFFFFFF

# so many elements at a time, whose words stay in the cache of a processor
_CHUNK = 1 << 14


def _schedule(key):
    """The words that are added before the first and after every fourth round."""
    first, second = key
    words = (first, second, first ^ second ^ 0x1BD11BDA)
    return [(words[i % 3], (words[(i + 1) % 3] + i) & _MASK) for i in range(6)]


def child(key, number: int) -> tuple[int, int]:
    """The key that `jax.random.fold_in` makes of a key and a number, and `split` in this place.

    key: two ints of 32 bits; number: one.
    """
    added = _schedule(key)
    first, second = added[0][0], (number + added[0][1]) & _MASK
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            first = (first + second) & _MASK
            second = (second << distance | second >> (32 - distance)) & _MASK ^ first
        first, second = (first + added[i + 1][0]) & _MASK, (second + added[i + 1][1]) & _MASK
    return first, second


def bits(key, begin: int, count: int, width: int) -> np.ndarray:
    """The elements from `begin` on of the draw `jax.random.bits` with a key: unsigned ints.

    key: two ints of 32 bits. width: 8, 16, 32 or 64 bits. The elements must be below 2**32.
    """
    made = np.empty(count, f"uint{width}")
    for start in range(0, count, _CHUNK):
        part = made[start : start + _CHUNK]
        first = begin + start
        high, low = _encrypted(key, np.arange(first, first + part.size, dtype=np.uint32))
        part[:] = high.astype(np.uint64) << np.uint64(32) | low if width == 64 else high ^ low
    return made


def _encrypted(key, second):
    """The two words that the generator makes of 0 and `second`, whose memory it uses."""
    added = [tuple(map(np.uint32, pair)) for pair in _schedule(key)]
    first = np.full_like(second, added[0][0])
    second += added[0][1]
    left = np.empty_like(second)
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            first += second
            np.left_shift(second, np.uint32(distance), out=left)
            second >>= np.uint32(32 - distance)
            second |= left
            second ^= first
        first += added[i + 1][0]
        second += added[i + 1][1]
    return first, second
