"""Generators of random numbers: a seed and a count of draws."""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading

import numpy as np

from ..core import dtypes
from ..core.device import as_device
from ..core.pytorch_tensors import type_name
from ..tape import mode
from ..tape.mode import drawn
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor
from .array_creation import is_traced
from .tensor_data import from_numpy


class Generator:
    """A source of random numbers with its own seed.

    device: a device; the numbers do not depend on it, so one generator serves all devices.

    A function that `jaxgrad.jit` compiled draws new numbers in each call: those that the uncompiled
    function would draw, also from states that it sets itself. A draw inside `jax.jit` raises
    RuntimeError, because JAX would make it once and keep it as a constant of the program.

    >>> generator = jaxgrad.Generator().manual_seed(0)
    >>> first = jaxgrad.rand(2, generator=generator)
    >>> bool((first == jaxgrad.rand(2, generator=generator.manual_seed(0))).all())
    True
    """

    def __init__(self, device="cpu"):
        self.device = as_device(device)
        self._lock = threading.Lock()
        self._seed, self._draws = 67280421310721, 0  # PyTorch's default seed

    def __getstate__(self):
        self._refuse_traced("__getstate__")
        with self._lock:
            return {"device": str(self.device), "state": (self._seed, self._draws)}

    def __setstate__(self, state):
        self.__init__(state["device"])
        self._seed, self._draws = state["state"]

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed, reset the count of draws and return the generator.

        seed: an int of 64 bits, signed or unsigned.

        Raises RuntimeError for anything but an int, ValueError for more than 64 bits.

        >>> jaxgrad.Generator().manual_seed(7).initial_seed()
        7
        """
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        scope = mode.scope.get()
        if scope is not None and type(seed) is Varying:
            scope.seeded.set_seed(self, seed)
            return self
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(
                f"Overflow when unpacking long long: a seed has 64 bits, and {seed} more"
            )
        if scope is not None:
            scope.seeded.set_seed(self, seed)
            return self
        with self._lock:
            self._seed, self._draws = seed % 2**64, 0
        return self

    def seed(self) -> int:
        """Set a seed that the operating system draws, and return it.

        >>> generator = jaxgrad.Generator()
        >>> generator.seed() == generator.initial_seed()
        True
        """
        scope = mode.scope.get()
        seed = mode.new_seed() if scope is None else scope.seeded.new_seed()
        return self.manual_seed(seed).initial_seed()

    def initial_seed(self) -> int:
        """Return the seed.

        >>> jaxgrad.Generator().initial_seed()
        67280421310721
        """
        scope = mode.scope.get()
        if scope is not None:
            seed = scope.seeded.seed_of(self)
            if seed is not None:
                return seed
            scope.objects.guard(self, _seed_of)
        return self._seed

    def get_state(self) -> Tensor:
        """Return seed and count of draws as a uint8 tensor of shape (16,), for `set_state`.

        >>> jaxgrad.Generator().get_state().shape
        torch.Size([16])
        """
        scope = mode.scope.get()
        if scope is not None:
            return scope.seeded.get_state(self)
        with self._lock:
            state = np.array([self._seed, self._draws], np.uint64)
        return from_numpy(state.view(np.uint8))

    def clone_state(self) -> Generator:
        """Return another generator of the same device in the same state.

        >>> generator = jaxgrad.Generator()
        >>> _ = generator.manual_seed(5)
        >>> copy = generator.clone_state()
        >>> first = jaxgrad.rand(2, generator=generator)
        >>> jaxgrad.equal(first, jaxgrad.rand(2, generator=copy))
        True
        """
        copy = type(self)(self.device)
        copy.set_state(self.get_state())
        return copy

    def set_state(self, new_state: Tensor) -> Generator:
        """Restore seed and count of draws, and return the generator.

        new_state: a uint8 tensor of shape (16,), from `get_state`.

        Raises TypeError for anything else than a uint8 tensor, RuntimeError for another shape.

        >>> generator = jaxgrad.Generator()
        >>> state, first = generator.get_state(), jaxgrad.rand(2, generator=generator)
        >>> generator = generator.set_state(state)
        >>> bool((first == jaxgrad.rand(2, generator=generator)).all())
        True
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
        if new_state.dtype is not dtypes.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, not one of {new_state.dtype}")
        if new_state.shape != (16,):
            raise RuntimeError(
                "RNG state is wrong size: expected a shape of [16], as get_state gives, "
                f"found {list(new_state.shape)}"
            )
        scope = mode.scope.get()
        if scope is not None:
            scope.seeded.set_state(self, new_state)
            return self
        state = np.array(new_state.tolist(), np.uint8).view(np.uint64).tolist()
        with self._lock:
            self._seed, self._draws = state
        return self

    def _refuse_traced(self, name):
        if mode.scope.get() is not None:
            raise RuntimeError(
                f"Generator.{name} inside of jaxgrad.jit would run once, while tracing, and "
                "not in each call: call it outside"
            )

    def next_key(self):
        """Seed and number of a new draw, as four uint32. Raises RuntimeError inside `jax.jit`."""
        return drawn(self._new_key)

    def next_keys(self, count: int):
        """Seed and number of the first of so many new draws, as `next_key`."""
        return drawn(functools.partial(self._new_key, count))

    def _new_key(self, count=1):
        if mode.scope.get() is not None:
            return mode.scope.get().draw(self, count)
        if is_traced():
            raise RuntimeError(
                "random numbers drawn inside jax.jit would be drawn once, while tracing, and "
                "frozen into the program: use jaxgrad.jit, or draw them outside and pass the "
                "tensor in"
            )
        return self.take(count).view(np.uint32)

    @property
    def draws(self) -> int:
        """How many draws were taken since the seed was set."""
        return self._draws

    @draws.setter
    def draws(self, count: int):
        with self._lock:
            self._draws = count

    def take(self, count: int) -> np.ndarray:
        """Reserve `count` draws; return the seed and the number of the first one."""
        with self._lock:
            state = np.array([self._seed, self._draws], np.uint64)
            self._draws += count
        return state


default_generator = Generator().manual_seed(secrets.randbits(64))


def manual_seed(seed) -> Generator:
    """Set the seed of the default generator and return it; see `Generator.manual_seed`.

    >>> _ = jaxgrad.manual_seed(0)
    >>> first = jaxgrad.randn(2)
    >>> _ = jaxgrad.manual_seed(0)
    >>> bool((first == jaxgrad.randn(2)).all())
    True
    """
    return default_generator.manual_seed(seed if type(seed) is Varying else int(seed))


def seed() -> int:
    """Set a seed of the default generator that the operating system draws, and return it.

    >>> jaxgrad.seed() == jaxgrad.initial_seed()
    True
    """
    return default_generator.seed()


def _seed_of(generator) -> int:
    return generator._seed


def initial_seed() -> int:
    """Return the seed of the default generator.

    >>> jaxgrad.manual_seed(7).initial_seed() == jaxgrad.initial_seed()
    True
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator, a uint8 tensor of shape (16,).

    >>> jaxgrad.get_rng_state().dtype
    torch.uint8
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore the state of the default generator; see `Generator.set_state`.

    >>> state, first = jaxgrad.get_rng_state(), jaxgrad.rand(2)
    >>> jaxgrad.set_rng_state(state)
    >>> bool((first == jaxgrad.rand(2)).all())
    True
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type="cuda", **names):
    """A context after which the default generator goes on as if nothing had been drawn in it.

    enabled: False changes nothing. devices, device_type and PyTorch's private keywords have no
    effect: one generator serves all devices.

    >>> _ = jaxgrad.manual_seed(0)
    >>> with jaxgrad.random.fork_rng():
    ...     inside = jaxgrad.rand(2)
    >>> bool((inside == jaxgrad.rand(2)).all())
    True
    """
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)
