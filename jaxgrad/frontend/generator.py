"""Generators of random numbers: a seed, and a count of the draws made."""

from __future__ import annotations

import secrets
import threading

import numpy as np

from ..core import dtypes
from ..core.device import as_device
from ..tape import mode
from ..tape.mode import drawn
from ..tape.tensor import Tensor
from .array_creation import is_traced
from .tensor_data import tensor


class Generator:
    """A source of random numbers with a seed of its own.

    Its numbers are the same on every device, so one serves tensors of all. In a function that
    jaxgrad.jit compiles it draws anew at each call, the numbers that the function would draw as it
    is. Inside a trace of JAX's own (jax.jit) a draw raises RuntimeError: it would be made once,
    while tracing, and be frozen into the program.

    >>> generator = jaxgrad.Generator().manual_seed(0)
    >>> first = jaxgrad.rand(2, generator=generator)
    >>> bool((first == jaxgrad.rand(2, generator=generator.manual_seed(0))).all())
    True
    """

    def __init__(self, device="cpu"):
        self.device = as_device(device)
        self._lock = threading.Lock()
        self._seed, self._draws = 67280421310721, 0  # PyTorch's seed where none is given

    def manual_seed(self, seed: int) -> Generator:
        """Start over from a seed of 64 bits, with a sign or without. Gives the generator itself."""
        self._refuse_traced("manual_seed")
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(
                f"Overflow when unpacking long long: a seed has 64 bits, and {seed} more"
            )
        with self._lock:
            self._seed, self._draws = seed % 2**64, 0
        return self

    def seed(self) -> int:
        """Start over from a seed that the operating system draws; gives the seed."""
        return self.manual_seed(secrets.randbits(64)).initial_seed()

    def initial_seed(self) -> int:
        """The seed that the numbers started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """Seed and count of draws, as 16 bytes, for `set_state`."""
        self._refuse_traced("get_state")
        with self._lock:
            state = np.array([self._seed, self._draws], np.uint64)
        return tensor(state.view(np.uint8))

    def set_state(self, new_state: Tensor) -> None:
        """Go on from where `get_state` was called."""
        self._refuse_traced("set_state")
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not dtypes.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, not one of {new_state.dtype}")
        if new_state.shape != (16,):
            raise RuntimeError(
                "RNG state is wrong size: expected a shape of [16], as get_state gives, "
                f"found {list(new_state.shape)}"
            )
        state = np.array(new_state.tolist(), np.uint8).view(np.uint64).tolist()
        with self._lock:
            self._seed, self._draws = state

    def _refuse_traced(self, name):
        if mode.scope.get() is not None:
            raise RuntimeError(
                f"Generator.{name} inside of jaxgrad.jit would be done once, while tracing, and "
                "not at each call: do it outside"
            )

    def next_key(self):
        """Seed and number of a new draw, as four words. Raises RuntimeError inside a trace of
        JAX's."""
        return drawn(self._new_key)

    def _new_key(self):
        if mode.scope.get() is not None:
            return mode.scope.get().draw(self)
        if is_traced():
            raise RuntimeError(
                "random numbers drawn inside jax.jit would be drawn once, while tracing, and "
                "frozen into the program: use jaxgrad.jit, or draw them outside and pass the "
                "tensor in"
            )
        return self.take(1).view(np.uint32)

    def take(self, count: int) -> np.ndarray:
        """Seed and number of the first of some draws, which are made."""
        with self._lock:
            state = np.array([self._seed, self._draws], np.uint64)
            self._draws += count
        return state


default_generator = Generator()
default_generator.seed()


def manual_seed(seed) -> Generator:
    """Start the default generator over from a seed; gives the generator.

    >>> _ = jaxgrad.manual_seed(0)
    >>> first = jaxgrad.randn(2)
    >>> _ = jaxgrad.manual_seed(0)
    >>> bool((first == jaxgrad.randn(2)).all())
    True
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator over from a seed that the operating system draws; gives the
    seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator go on from where `get_rng_state` was called."""
    default_generator.set_state(new_state)
