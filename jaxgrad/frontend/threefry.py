"""The random bits of `jax.random`, computed on the host: no program is compiled for their number.

JAX's counter-based generator gives element i of a draw from the key and i alone. So NumPy draws any
number of elements, and after many of them a program that draws a fixed number from any one on.
"""

from __future__ import annotations

import functools

import jax
import numpy as np
from jax import lax

from ..core import executor, fork
from ..core.host_values import UNGUARDED
from ..core.threefry import PAIRS, encrypt, encrypted_integers, traced

# Of elements of at most 32 bits: how many the program draws at a time, of how many it is faster
# than NumPy, and how many NumPy draws in this process before. XLA takes 0.15 s to compile it. Then
# an element takes 3 ns, and 23 by NumPy.
PIECE, FEW, BEFORE = 1 << 16, 1 << 13, 1 << 22

_drawn_by_numpy = 0


def child(key, number: int) -> tuple[int, int]:
    """The key that `jax.random.fold_in` makes of a key and a number, and `split` in this place.

    key: two ints of 32 bits; number: one.
    """
    return encrypted_integers(*key, 0, number)


def bits(key, begin: int, count: int, width: int) -> np.ndarray:
    """The elements from `begin` on of the draw `jax.random.bits` with a key: unsigned ints.

    key: two ints of 32 bits. width: 8, 16, 32 or 64 bits. The elements must be below 2**32.
    """
    drawn, start = np.empty(count, f"uint{width}"), 0
    if width <= 32 and _may_compile():
        program, words = _program(), np.array(key, np.uint32)
        while count - start >= FEW:
            part = drawn[start : start + PIECE]
            with jax.ensure_compile_time_eval():
                elements = program(words, np.uint32(begin + start))
            np.copyto(part, np.asarray(elements)[: part.size], casting="unsafe")
            start += part.size
    _by_numpy(key, begin + start, drawn[start:])
    return drawn


def _by_numpy(key, begin: int, drawn: np.ndarray):
    """Overwrite an array by the elements from `begin` on."""
    global _drawn_by_numpy
    _drawn_by_numpy += drawn.size
    for start in range(0, drawn.size, PAIRS):
        part = drawn[start : start + PAIRS]
        first = begin + start
        high, low = (
            np.zeros(part.size, np.uint32),
            np.arange(first, first + part.size, dtype=np.uint32),
        )
        encrypt(*key, high, low)
        if drawn.itemsize == 8:
            part[:] = high.astype(np.uint64) << np.uint64(32) | low
        else:
            np.bitwise_xor(high, low, out=part, casting="unsafe")


def _may_compile() -> bool:
    """Whether XLA may draw elements, and as many have been drawn that it pays off."""
    if _drawn_by_numpy < BEFORE or fork.is_forked or executor.chosen == "host":
        return False
    config = jax.config
    is_guarded = config.jax_transfer_guard_host_to_device not in UNGUARDED
    return not (is_guarded or config.jax_disable_jit) and jax.default_backend() == "cpu"


@functools.cache
def _program():
    """The program that draws elements of 32 bits with a key, from any one on."""

    def elements(key, begin):
        low = lax.add(lax.iota(np.uint32, PIECE), lax.broadcast(begin, (PIECE,)))
        return lax.bitwise_xor(*traced(key[0], key[1], lax.full_like(low, 0), low))

    return executor.compiled(elements, wide=True)
