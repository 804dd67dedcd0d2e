"""The numbers of a new tensor, until an array holds them."""

from __future__ import annotations

import contextlib

import jax
import numpy

from . import fork
from .jax_internals import is_traced
from .jax_state import keeps_jax_state
from .pending import Pending, value_of

# the settings of JAX's guard under which a program may be called with NumPy's values
UNGUARDED = (None, "allow")


class HostValues:
    """The values of a new tensor, which NumPy holds and no other code writes to, in place of a
    stretch. It would take longer to make an array of JAX than most operators take. A compiled
    program takes the values themselves, once: a second program takes an array, which is then kept.
    """

    __slots__ = ("compute", "is_taken", "values")
    waits, is_new = False, True

    def __init__(self, values: numpy.ndarray):
        self.values, self.is_taken = values, False
        values.flags.writeable = False

    @classmethod
    def late(cls, compute) -> HostValues:
        """The values that `compute()` gives, which is called when they are read, and so not at all
        for a tensor that is overwritten before. It gives the same values at any time, in any thread
        and in a trace.
        """
        late = object.__new__(cls)
        late.compute, late.is_taken = compute, False
        return late

    def __getattr__(self, name):
        """The values, while they have not been computed: the slot is empty."""
        if name != "values":
            raise AttributeError(name)
        values = self.compute()
        values.flags.writeable = False
        self.values = values
        return values

    def run(self, wanted: Pending):
        """Make the array."""
        values = self.values
        if values is None:
            return  # another thread has
        # a forked process keeps the values: JAX would wait for threads that are not there
        wanted.array = values if fork.is_forked else _on_default_device(values)
        self.values = None

    peek = run

    def take(self) -> numpy.ndarray | None:
        """The values for a compiled program; None where it must take the array."""
        if self.is_taken or jax.config.jax_transfer_guard_host_to_device not in UNGUARDED:
            return None
        self.is_taken = True
        return self.values


@keeps_jax_state
def _on_default_device(values):
    """An array, where JAX makes one outside of traces and of contexts with other devices."""
    with contextlib.ExitStack() as stack:
        if is_traced():
            stack.enter_context(jax.ensure_compile_time_eval())
        if jax.config.jax_default_device is not None:
            stack.enter_context(jax.default_device(None))
        stack.enter_context(jax.enable_x64(True))
        return jax.device_put(values)


def is_new(value) -> bool:
    """Whether these are the values of a new tensor, which is not an array yet."""
    return type(value) is Pending and type(value.stretch) is HostValues and value.array is None


def values_or_array(value):
    """The values of a new tensor, or of a result of the host, which NumPy holds; else the array of
    a pending result, or the array itself.
    """
    if type(value) is not Pending:
        return value
    if value.array is None and type(value.stretch) is HostValues:
        values = value.stretch.values
        if values is not None:  # else another thread has made the array
            return values
    return value_of(value)


def owned_apart(results, dtypes) -> list[numpy.ndarray]:
    """Results of the host executor as arrays that share no memory with one another or with others:
    that of an operand may be donated. What may be shared is read-only: operands, constants, and
    views of both.
    """
    owners, arrays = set(), []
    for result, dtype in zip(results, dtypes, strict=True):
        if type(result) is not numpy.ndarray:
            result = numpy.asarray(result, dtype)
        base = result.base
        is_whole = base is None or getattr(base, "nbytes", None) == result.nbytes
        owner = id(result if base is None else base)
        if owner in owners or not (is_whole and result.flags.carray):
            result = numpy.array(result, order="C")
            owner = id(result)
        owners.add(owner)
        arrays.append(result)
    return arrays


def pending_results(results, dtypes, avals) -> list[Pending]:
    """Results of the host executor as values of new tensors, with these abstract values."""
    pending = []
    for values, aval in zip(owned_apart(results, dtypes), avals, strict=True):
        # the constructors inlined
        values.flags.writeable = False
        held = _new(HostValues)
        held.values, held.is_taken = values, False
        result = _new(Pending)
        result.array, result.aval, result.stretch = None, aval, held
        pending.append(result)
    return pending


_new = object.__new__
