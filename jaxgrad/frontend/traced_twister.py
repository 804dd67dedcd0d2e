"""The words of MT19937 in a program: after a draw whose count of words no trace knows, the state of
a generator is a value of the program. Source: as frontend/mersenne.py.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .mersenne import STATE_LAYOUT, WORDS, Twister, TwisterState, doubles, longs

# the length of a state as one array: words, how many were taken, a normal number, whether there is
# one, and the seed
PACKED = WORDS + 6

# how far apart two words lie that the twister combines
_SHIFT = 397
_FIRST = WORDS - _SHIFT


class TracedState(NamedTuple):
    """A seed and a `TwisterState`, of arrays: uint32 of shape (624,), and an int32, a float64, a
    bool and a uint64.
    """

    key: jax.Array
    taken: jax.Array
    normal: jax.Array
    has_normal: jax.Array
    seed: jax.Array

    def packed(self):
        """The state as one array, uint32 of shape (PACKED,)."""
        pairs = [_words_of(self.normal), _words_of(self.seed)]
        rest = [self.taken.astype(np.uint32), self.has_normal.astype(np.uint32)]
        return jnp.concatenate([self.key, *pairs, jnp.stack(rest)])

    def bytes(self):
        """The state in PyTorch's form, uint8 of shape (5056,)."""
        zero = jnp.zeros((), np.float64)
        parts = [
            *(self.seed, WORDS + 1 - self.taken, np.int32(1), self.taken.astype(np.uint64)),
            *(self.key.astype(np.uint64), jnp.stack([zero, self.normal, zero])),
            *(self.has_normal.astype(np.int32), jnp.zeros(3, np.int32)),
        ]
        return jnp.concatenate([_words_of(part, np.uint8) for part in parts])


def _words_of(array, dtype=np.uint32):
    return lax.bitcast_convert_type(array, dtype).ravel()


def unpacked(array) -> TracedState:
    normal, seed = (
        lax.bitcast_convert_type(array[begin : begin + 2], dtype)
        for begin, dtype in ((WORDS, np.float64), (WORDS + 2, np.uint64))
    )
    return TracedState(array[:WORDS], array[-2].astype(np.int32), normal, array[-1] != 0, seed)


def of_bytes(array) -> TracedState:
    """The state of PyTorch's form, in a program."""

    def field(name, dtype):
        layout, begin = STATE_LAYOUT.fields[name]
        part = array[begin : begin + layout.itemsize].reshape(-1, np.dtype(dtype).itemsize)
        return lax.bitcast_convert_type(part, dtype)

    key = field("words", np.uint32)[::2]
    taken = field("taken", np.uint32)[0].astype(np.int32)
    taken = jnp.where(taken == 0, WORDS, taken)  # of a generator that has drawn nothing
    normal, has_normal = field("normals", np.float64)[1], field("has_normal", np.int32)[0] != 0
    return TracedState(key, taken, normal, has_normal, field("seed", np.uint64)[0])


def packed(seed: int, state: TwisterState) -> np.ndarray:
    """The packed form of a state outside of traces."""
    words = Twister(seed, state).engine.words
    pairs = [
        np.array([number]).view(np.uint32) for number in (state.normal or 0.0, np.uint64(seed))
    ]
    rest = words[WORDS], state.normal is not None
    return np.array([*words[:WORDS], *pairs[0], *pairs[1], *rest], np.uint32)


def state_of(array: np.ndarray) -> tuple[int, TwisterState]:
    """The seed and the state of a packed form, outside of traces."""
    pairs = array[WORDS : WORDS + 4].copy()
    normal = pairs[:2].view(np.float64).item() if array[-1] else None
    state = TwisterState(array[[*range(WORDS), PACKED - 2]].tobytes(), normal)
    return pairs[2:].view(np.uint64).item(), state


def _mixed(upper, lower):
    y = (upper & np.uint32(0x80000000)) | (lower & np.uint32(0x7FFFFFFF))
    return (y >> 1) ^ jnp.where(y & 1, np.uint32(0x9908B0DF), np.uint32(0))


def _twisted(key):
    """The next 624 words, before they are tempered."""
    first = key[_SHIFT:] ^ _mixed(key[:_FIRST], key[1 : _FIRST + 1])
    second = first ^ _mixed(key[_FIRST : 2 * _FIRST], key[_FIRST + 1 : 2 * _FIRST + 1])
    third = second[: WORDS - 1 - 2 * _FIRST] ^ _mixed(key[2 * _FIRST : -1], key[2 * _FIRST + 1 :])
    last = second[WORDS - 1 - 2 * _FIRST] ^ _mixed(key[-1], first[0])
    return jnp.concatenate([first, second, third, last[None]])


def _tempered(words):
    words = words ^ (words >> 11)
    words = words ^ ((words << 7) & np.uint32(0x9D2C5680))
    words = words ^ ((words << 15) & np.uint32(0xEFC60000))
    return words ^ (words >> 18)


class Window(NamedTuple):
    """The words that follow a state. `keys`: of each 624 of them those before they are tempered."""

    state: TracedState
    words: jax.Array
    keys: jax.Array

    def state_after(self, count) -> TracedState:
        """The state after so many of the words."""
        place = self.state.taken + count
        block = jnp.maximum(place - 1, 0) // WORDS
        return self.state._replace(key=self.keys[block], taken=place - block * WORDS)


def window(state: TracedState, count: int) -> Window:
    blocks = -(-count // WORDS)

    def step(key, _):
        following = _twisted(key)
        return following, following

    _, later = lax.scan(step, state.key, length=blocks)
    keys = jnp.concatenate([state.key[None], later])
    words = lax.dynamic_slice(_tempered(keys).ravel(), [state.taken], [count])
    return Window(state, words, keys)


class TracedTwister:
    """A `Twister` of a program."""

    def __init__(self, state: TracedState):
        self.state = state

    def words(self, count: int):
        if not count:
            return jnp.zeros(0, np.uint32)
        following = window(self.state, count)
        self.state = following.state_after(count)
        return following.words

    def longs(self, count: int):
        return longs(self.words(2 * count))

    def normals(self, count: int):
        if not count:
            return jnp.zeros(0)
        before = self.state
        # as many pairs as without a number kept back, or one less
        pairs = -(-count // 2)
        following = window(before, 4 * pairs)
        unit = doubles(following.words).reshape(-1, 2)
        radius, angle = jnp.sqrt(-2 * jnp.log1p(-unit[:, 1])), 2 * np.pi * unit[:, 0]
        numbers = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], 1).ravel()
        numbers = jnp.concatenate([before.normal[None], numbers])
        begin = jnp.where(before.has_normal, 0, 1)
        missing = count - before.has_normal.astype(np.int32)
        has_normal = missing % 2 == 1
        after = following.state_after(4 * ((missing + 1) // 2))
        # one place more, where the pairs suffice exactly
        padded = jnp.concatenate([numbers, jnp.zeros(1)])
        normal = jnp.where(has_normal, padded[begin + count], 0.0)
        self.state = after._replace(normal=normal, has_normal=has_normal)
        return lax.dynamic_slice(padded, [begin], [count])
