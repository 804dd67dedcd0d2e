"""The random bits of `jax.random`, computed on the host: no program is compiled for their number.

JAX's counter-based generator gives element i of a draw from the key and i alone.
"""

from __future__ import annotations

import numpy as np

from ..core.threefry import PAIRS, encrypt, encrypted_integers


def child(key, number: int) -> tuple[int, int]:
    """The key that `jax.random.fold_in` makes of a key and a number, and `split` in this place.

    key: two ints of 32 bits; number: one.
    """
    return encrypted_integers(*key, 0, number)


def bits(key, begin: int, count: int, width: int) -> np.ndarray:
    """The elements from `begin` on of the draw `jax.random.bits` with a key: unsigned ints.

    key: two ints of 32 bits. width: 8, 16, 32 or 64 bits. The elements must be below 2**32.
    """
    drawn = np.empty(count, f"uint{width}")
    for start in range(0, count, PAIRS):
        part = drawn[start : start + PAIRS]
        first = begin + start
        high, low = (
            np.zeros(part.size, np.uint32),
            np.arange(first, first + part.size, dtype=np.uint32),
        )
        encrypt(*key, high, low)
        if width == 64:
            part[:] = high.astype(np.uint64) << np.uint64(32) | low
        else:
            np.bitwise_xor(high, low, out=part, casting="unsafe")
    return drawn
