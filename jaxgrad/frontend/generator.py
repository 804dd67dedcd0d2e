"""Generators of random numbers: a seed, and a state of one of two streams.

The stream "torch" has PyTorch's numbers on the CPU (frontend/mersenne.py); its state is that of a
Mersenne Twister. The stream "jax" has the numbers of JAX's keys (frontend/threefry.py); its state
is a count of draws, so no number depends on those before it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import threading

import numpy as np

from ..core import dtypes
from ..core.device import as_device, has_accelerator
from ..core.pytorch_tensors import type_name
from ..late import LateModule
from ..tape import mode
from ..tape.mode import drawn
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor
from .array_creation import is_traced
from .request import KeyRequest, Ready, settled
from .tensor_data import from_numpy

mersenne = LateModule("jaxgrad.frontend.mersenne")  # it needs NumPy's random numbers

STREAMS = "torch", "jax"

# the bytes of a state of JAX's stream: the seed and the count of draws
_COUNTED_BYTES = 16


def checked_stream(stream: str | None) -> str | None:
    """A stream by its name; None for the one that `use` has chosen. Raises ValueError for another
    name.
    """
    if stream is not None and stream not in STREAMS:
        raise ValueError(f"a stream of random numbers is 'torch' or 'jax', not {stream!r}")
    return stream


# what `use` has chosen; None: PyTorch's numbers on the CPU, JAX's where there is an accelerator
_chosen = checked_stream(os.environ.get("JAXGRAD_RANDOM") or None)


def _usual_stream() -> str:
    return _chosen or ("jax" if has_accelerator() else "torch")


class Generator:
    """A source of random numbers with its own seed.

    device: a device; the numbers do not depend on it, so one generator serves all devices.
    stream: "torch" for PyTorch's numbers on the CPU, "jax" for those of JAX's keys; by default what
    `jaxgrad.random.use` has chosen.

    A function that `jaxgrad.jit` compiled draws new numbers in each call: those that the uncompiled
    function would draw, also from states that it sets itself. A draw inside `jax.jit` raises
    RuntimeError, because JAX would make it once and keep it as a constant of the program.

    >>> generator = jaxgrad.Generator().manual_seed(0)
    >>> first = jaxgrad.rand(2, generator=generator)
    >>> bool((first == jaxgrad.rand(2, generator=generator.manual_seed(0))).all())
    True
    """

    def __init__(self, device="cpu", stream: str | None = None):
        self.device = as_device(device)
        self._lock = threading.Lock()
        self._stream = checked_stream(stream)
        self._seed = 67280421310721  # PyTorch's default seed
        # a TwisterState, or the count of draws; None: that of the seed, in either stream
        self._state = None

    def __reduce__(self):
        if mode.scope.get() is not None:
            raise RuntimeError(
                "a Generator copied or pickled inside of jaxgrad.jit would be copied once, while "
                "tracing, and not in each call: do it outside"
            )
        return type(self), (self.device,), (self._seed, None, self.get_state())

    def __setstate__(self, state):
        """Restore the seed, the offset that generators of GPUs have, and the state, as PyTorch's
        files hold them.
        """
        seed, _, values = state
        self.manual_seed(seed).set_state(values)

    @property
    def stream(self) -> str:
        """Whose numbers the generator gives: "torch" or "jax".

        >>> jaxgrad.Generator(stream="jax").stream
        'jax'
        """
        if mode.key_source.get() is not None:
            return "jax"
        if self._state is None:
            return self._stream or _usual_stream()
        return "jax" if type(self._state) is int else "torch"

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
            self._seed, self._state = seed % 2**64, None
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
        """Return the state as a uint8 tensor, for `set_state`: of shape (5056,), as PyTorch's, or
        with the stream "jax" seed and count of draws, of shape (16,).

        >>> jaxgrad.Generator(stream="jax").get_state().shape
        torch.Size([16])
        """
        scope = mode.scope.get()
        if scope is not None:
            return scope.seeded.get_state(self)
        return from_numpy(self.state_bytes().copy())

    def state_bytes(self) -> np.ndarray:
        """What `get_state` gives, as an array."""
        seed, state = self.begun
        if type(state) is int:
            return np.array([seed, state], np.uint64).view(np.uint8)
        return mersenne.to_bytes(seed, state)

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
        """Restore a state, which also tells the stream, and return the generator.

        new_state: a uint8 tensor from `get_state` of this library or of PyTorch.

        Raises TypeError for anything else than a uint8 tensor, RuntimeError for another shape and
        for bytes that are no state. Then the generator is as before.

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
        sizes = (mersenne.STATE_BYTES,), (_COUNTED_BYTES,)
        if new_state.shape not in sizes:
            raise RuntimeError(
                f"RNG state is wrong size: expected a shape of {list(sizes[0])}, as get_state "
                f"gives, or {list(sizes[1])} for the stream 'jax', found {list(new_state.shape)}"
            )
        scope = mode.scope.get()
        if scope is not None:
            scope.seeded.set_state(self, new_state)
            return self
        self.set_bytes(np.array(new_state.tolist(), np.uint8))
        return self

    def set_bytes(self, values: np.ndarray):
        """Restore a state from the bytes of `state_bytes`."""
        if len(values) == _COUNTED_BYTES:
            seed, state = values.view(np.uint64).tolist()
        else:
            seed, state = mersenne.from_bytes(values)
        with self._lock:
            self._seed, self._state = seed, state

    def get_offset(self) -> int:
        """Raise RuntimeError: generators of the CPU have no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int):
        """Raise RuntimeError; see `get_offset`."""
        self.get_offset()

    def graphsafe_get_state(self) -> Generator:
        """Raise NotImplementedError: only generators of CUDA's graphs have such a state."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator):
        """Raise NotImplementedError; see `graphsafe_get_state`."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def next_key(self):
        """The key of a new draw, as four uint32. Raises RuntimeError inside `jax.jit`."""
        return self.next_keys(1)

    def next_keys(self, count: int):
        """The key of the first of so many new draws, as `next_key`."""
        return self.numbers(KeyRequest(count))[0].array()

    def numbers(self, request) -> list:
        """What a new draw gives for a request, `Ready` or `Drawn` (frontend/request.py): in a trace
        tracers, else arrays that are made when they are read. Raises RuntimeError inside `jax.jit`.
        """
        return drawn(functools.partial(self._draw, request))

    def _draw(self, request):
        scope = mode.scope.get()
        if scope is not None:
            return [Ready(tracer) for tracer in scope.draw(self, request)]
        if is_traced():
            source = mode.key_source.get()
            if source is not None and self is default_generator:
                return [Ready(source(request.count))]
            raise RuntimeError(
                "random numbers drawn inside jax.jit would be drawn once, while tracing, and "
                "frozen into the program: use jaxgrad.jit, or draw them outside and pass the "
                "tensor in"
            )
        # the runs of a verified call compare states
        if mode.draws.get() is None and mode.number_reads.get() is None:
            with self._lock:
                before = self._begun()
                if request.waits_after(before):
                    results, self._state = request.drawn_later(self._seed, before)
                    return results
        return self.perform(request)

    def perform(self, request) -> list:
        """Make a draw now, whatever is traced."""
        with self._lock:
            results, self._state = request.take(self._seed, settled(self._begun()))
        return results

    def settle(self):
        """Draw the words of the draws that wait."""
        with self._lock:
            self._state = settled(self._state)

    def _begun(self):
        """The state; of a generator that has drawn nothing the first one of its stream."""
        if self._state is None:
            return 0 if self.stream == "jax" else mersenne.SEEDED
        return self._state

    @property
    def begun(self) -> tuple:
        """Seed and state, where nothing was drawn the first state of the stream."""
        with self._lock:
            return self._seed, settled(self._begun())

    @property
    def snapshot(self) -> tuple:
        """Seed and state, as values."""
        self.settle()
        return self._seed, self._state

    @snapshot.setter
    def snapshot(self, values: tuple):
        with self._lock:
            self._seed, self._state = values


default_generator = Generator().manual_seed(secrets.randbits(64))


def use(stream: str | None) -> None:
    """Choose whose numbers the generators give that name no stream.

    stream: "torch" for PyTorch's on the CPU, "jax" for those of JAX's keys, None for PyTorch's on
    the CPU and JAX's where there is an accelerator. The environment variable JAXGRAD_RANDOM chooses
    at the start. The default generator begins anew from its seed; other generators do so when they
    are seeded.

    Raises ValueError for another name.

    >>> jaxgrad.random.use("jax")
    >>> jaxgrad.default_generator.stream
    'jax'
    >>> jaxgrad.random.use(None)
    """
    global _chosen
    _chosen = checked_stream(stream)
    default_generator.snapshot = default_generator.snapshot[0], None


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
    """Return the state of the default generator, a uint8 tensor; see `Generator.get_state`.

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
