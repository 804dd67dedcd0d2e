"""The words of PyTorch's generator on the CPU: MT19937, seeded as in its first publication.

NumPy computes the words. The state is a value, so that it can be kept, compared and put back.

Source: Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
pseudorandom number generator", 1998.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

WORDS = 624

# NumPy draws so many words faster one by one
_FEW = 256

# the state in PyTorch's files: seed, how many words remain before the next twist, whether it was
# seeded, how many words were taken, the words in 64 bits each, and the normal numbers kept back
STATE_LAYOUT = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("taken", "<u8"),
        ("words", "<u8", WORDS),
        ("normals", "<f8", 3),
        ("has_normal", "<i4"),
        ("unused", "<i4"),
        ("single_normal", "<f4"),
        ("has_single_normal", "<i4"),
    ]
)
STATE_BYTES = STATE_LAYOUT.itemsize


class TwisterState(NamedTuple):
    """What a generator will give.

    key: the 624 words of the twister and how many of them were taken, in 32 bits each; None: those
    of the seed, before the first draw. normal: the second of a pair of normal numbers, which the
    next draw of one gives; None where there is none.
    """

    key: bytes | None = None
    normal: float | None = None


SEEDED = TwisterState()


class _Engine(threading.local):
    """NumPy's generator of a thread. `words`: its memory; `key`: the state that it is in."""

    def __init__(self):
        self.bits = np.random.MT19937(0)
        self.seeder, self.drawer = np.random.RandomState(self.bits), np.random.Generator(self.bits)
        memory = np.ctypeslib.as_array(
            (np.ctypeslib.ctypes.c_uint32 * (WORDS + 1)).from_address(
                self.bits.ctypes.state_address
            )
        )
        state = self.bits.state["state"]
        if not (np.array_equal(memory[:WORDS], state["key"]) and memory[WORDS] == state["pos"]):
            raise RuntimeError(
                f"NumPy {np.__version__} keeps the state of MT19937 in another form: "
                'use torch.random.use("jax")'
            )
        self.words, self.key = memory, None


_engine = _Engine()


class Twister:
    """A generator while it draws: from a seed and a state to the next `state()`."""

    def __init__(self, seed: int, state: TwisterState):
        self.engine, self.normal = _engine, state.normal
        if state.key is None:
            _engine.seeder.seed(seed & 0xFFFFFFFF)
        elif state.key is not _engine.key:
            _engine.words[:] = np.frombuffer(state.key, np.uint32)
        self.is_new = state.key is None
        _engine.key = None

    def state(self) -> TwisterState:
        if self.is_new and self.normal is None:
            return SEEDED
        self.engine.key = self.engine.words.tobytes()
        return TwisterState(self.engine.key, self.normal)

    def words(self, count: int) -> np.ndarray:
        """The next words, uint32."""
        if not count:
            return np.empty(0, np.uint32)
        self.is_new = False
        if count < _FEW:
            return self.engine.bits.random_raw(count).astype(np.uint32)
        return self.engine.drawer.integers(0, 2**32, size=count, dtype=np.uint32)

    def longs(self, count: int) -> np.ndarray:
        """Numbers of 64 bits, of two words each; the first is the high one."""
        return longs(self.words(2 * count))

    def normals(self, count: int) -> np.ndarray:
        """Standard normal numbers in double precision, one by one in pairs of Box and Muller."""
        kept = [] if self.normal is None or not count else [self.normal]
        missing = count - len(kept)
        if kept:
            self.normal = None
        unit = doubles(self.words(2 * (missing + missing % 2))).reshape(-1, 2)
        radius, angle = np.sqrt(-2 * np.log1p(-unit[:, 1])), 2 * np.pi * unit[:, 0]
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
        if missing % 2:
            self.normal, pairs = float(pairs[-1]), pairs[:-1]
        return np.concatenate([kept, pairs]) if kept else pairs


def longs(words):
    """Numbers of 64 bits, of two words each; the first is the high one. words: an array of NumPy or
    of JAX, as for the functions below.
    """
    pairs = words.reshape(-1, 2)
    if isinstance(words, np.ndarray) and np.little_endian:
        return pairs[:, ::-1].ravel().view(np.uint64)
    pairs = pairs.astype(np.uint64)
    return pairs[:, 0] << 32 | pairs[:, 1]


def singles(words):
    """Uniform numbers in [0, 1) of 24 bits, float32."""
    # processors convert integers with a sign faster
    bits = (words & np.uint32(2**24 - 1)).view(np.int32)
    return bits.astype(np.float32) * np.float32(2**-24)


def doubles(words):
    """Uniform numbers in [0, 1) of 53 bits, of two words each, float64."""
    bits = (longs(words) & np.uint64(2**53 - 1)).view(np.int64)
    return bits.astype(np.float64) * 2.0**-53


def to_bytes(seed: int, state: TwisterState) -> np.ndarray:
    """PyTorch's form of a state: uint8 of shape (5056,)."""
    shown = np.zeros((), STATE_LAYOUT)
    is_new = state.key is None
    Twister(seed, state)
    words = _engine.words
    shown["seed"], shown["seeded"], shown["words"] = seed, 1, words[:WORDS]
    shown["taken"] = 0 if is_new else words[WORDS]
    shown["left"] = 1 if is_new else WORDS + 1 - int(words[WORDS])
    if state.normal is not None:
        shown["normals"][1], shown["has_normal"] = state.normal, 1
    return np.frombuffer(shown.tobytes(), np.uint8)


def from_bytes(values: np.ndarray) -> tuple[int, TwisterState]:
    """The seed and the state of PyTorch's form. Raises RuntimeError for bytes that are no state."""
    shown = np.frombuffer(values.tobytes(), STATE_LAYOUT)[0]
    left, taken = int(shown["left"]), int(shown["taken"])
    is_new = left == 1 and taken == 0
    is_valid = shown["seeded"] == 1 and 0 < left <= WORDS and (is_new or taken + left == WORDS + 1)
    if not is_valid or (shown["words"] >> np.uint64(32)).any():
        raise RuntimeError(
            "Invalid mt19937 state: the bytes are not those that get_state of a generator gives"
        )
    key = np.empty(WORDS + 1, np.uint32)
    key[:WORDS], key[WORDS] = shown["words"], WORDS if is_new else taken
    normal = float(shown["normals"][1]) if shown["has_normal"] else None
    seed = int(shown["seed"])
    state = TwisterState(key.tobytes(), normal)
    is_seeded = is_new and normal is None and to_bytes(seed, SEEDED).tobytes() == values.tobytes()
    return seed, SEEDED if is_seeded else state
