"""Sizes that vary in programs that are exported: JAX's symbolic extents, which calculate with
numbers of Python as ints do.
"""

from __future__ import annotations

import contextlib
import functools
import numbers

import jax

from ..core.jax_internals import derived_extents
from ..core.symbolic_extents import exporting_with, is_symbolic
from .symbolic_number import Varying
from .tensor import Tensor


@contextlib.contextmanager
def exporting():
    """The trace in the block is that of a program that is exported."""
    with exporting_with(symbolic_sizes()):
        yield


@functools.cache
def symbolic_sizes():
    """The function that gives a symbolic extent as a size, which code calculates with."""
    _, size_of = derived_extents(_method)
    return size_of


def _method(method):
    """A method of sizes, of that of JAX's extents: it gives sizes, and numbers of the program where
    the result is no extent.
    """
    name = method.__name__

    def calculate(size, *others):
        if any(isinstance(other, Tensor) for other in others):
            return NotImplemented  # the tensor computes
        if _is_of_numbers(name, others):
            return getattr(Varying.of_extent(size), name)(*others)
        try:
            result = method(size, *others)
            if name == "__mod__" and is_symbolic(result):
                # as a sum: then JAX sees that `size + -size % 4` is a multiple of 4
                result = size - others[0] * (size // others[0])
            return _sized(result)
        except jax.errors.InconclusiveDimensionOperation as error:
            if name not in _COMPARISONS:
                raise
            return _undecided(name, size, others, error)

    return calculate


_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__")


def _is_of_numbers(name, others) -> bool:
    """Whether a calculation of a size gives a number, and no size."""
    if any(type(other) is Varying for other in others):
        return True
    if name in ("__truediv__", "__rtruediv__", "__rpow__"):
        return all(isinstance(other, numbers.Number) or is_symbolic(other) for other in others)
    (other,) = others or (0,)
    if name == "__pow__" and isinstance(other, int):
        return other < 0
    return isinstance(other, numbers.Number) and not isinstance(other, numbers.Integral)


def _undecided(name, size, others, error) -> Varying:
    """The outcome of a comparison that depends on sizes; code that needs it raises JAX's error."""
    try:
        outcome = getattr(Varying.of_extent(size), name)(*others)
    except NotImplementedError:  # outside of the trace sizes are no numbers
        raise error from None
    outcome.error = error
    return outcome


def _sized(result):
    if isinstance(result, tuple):
        return tuple(map(_sized, result))
    return symbolic_sizes()(result)
