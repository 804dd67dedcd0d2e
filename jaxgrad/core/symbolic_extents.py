"""Symbolic extents: those of `jax.export`, which stand for the sizes of an exported program.

They calculate like ints. JAX raises where code compares two of them and the answer depends on
numbers.
"""

from __future__ import annotations

import contextlib
import contextvars

import jax
import numpy
from jax import export

# of the open trace of a program that is exported, which serves all extents: a function that gives
# the extents that code calculates with
_exporting = contextvars.ContextVar("jaxgrad.exporting", default=None)


def is_symbolic(value) -> bool:
    """Whether a value is a symbolic extent, which stands for ints."""
    return not isinstance(value, int) and export.is_symbolic_dim(value)


def has_symbolic(value) -> bool:
    """Whether a value is a symbolic extent, or a tuple or list with one at any depth."""
    if isinstance(value, tuple | list):
        return any(map(has_symbolic, value))
    return is_symbolic(value)


@contextlib.contextmanager
def exporting_with(extent_of):
    """The trace in the block is that of a program that is exported. extent_of: a function that
    gives what the shapes of tensors have in the place of a symbolic extent.
    """
    token = _exporting.set(extent_of)
    try:
        yield
    finally:
        _exporting.reset(token)


def is_exported() -> bool:
    """Whether the open trace is that of a program that is exported."""
    return _exporting.get() is not None


def extents_of(shape):
    """A shape with the extents that code calculates with."""
    extent_of = _exporting.get()
    if extent_of is None:
        return shape
    return tuple([extent_of(extent) if is_symbolic(extent) else extent for extent in shape])


def is_open(shape) -> bool:
    """Whether a shape is that of many programs: in one that is exported, with a symbolic extent."""
    return is_exported() and any(map(is_symbolic, shape))


def is_one(extent) -> bool:
    """Whether an extent is 1, on which the shape of a result depends. Raises JAX's error for one
    that varies and may be 1 in a program that is exported.
    """
    if is_exported() and is_symbolic(extent):
        return not extent >= 2
    return extent == 1


def chosen(test, otherwise: bool = False) -> bool:
    """What `test()` says, by which code chooses one of two ways to the same numbers; `otherwise`
    where it depends on the extents for which a program is exported.
    """
    if not is_exported():
        return test()
    try:
        return bool(test())
    except (jax.errors.InconclusiveDimensionOperation, TypeError):
        return otherwise


def namespace(*extents):
    """The module of functions for tables that depend on extents: jax.numpy if one of them is
    symbolic, otherwise numpy, whose tables are constants of the program.
    """
    return jax.numpy if any(map(is_symbolic, extents)) else numpy


_LARGEST = 2**63 - 1  # what programs write for the end of a dimension


def bounds_of(part: slice, extent) -> tuple:
    """The start, the end and the step of a slice, as `slice.indices` has them for an int."""
    if not has_symbolic((part.start, part.stop, extent)):
        return part.indices(extent)
    end = None if isinstance(part.stop, int) and part.stop == _LARGEST else part.stop
    start, length, step = slice_of(slice(part.start, end, part.step), extent)
    return start, start + (length if step == 1 else (length - 1) * step + 1), step


def slice_of(part: slice, extent) -> tuple:
    """The start, the length and the step of a slice of a dimension with a symbolic extent, as
    `slice.indices` has them for an int.
    """
    step = 1 if part.step is None else part.step
    start = _bound(0 if part.start is None else part.start, extent)
    end = _bound(extent if part.stop is None else part.stop, extent)
    length = larger(end - start, 0)
    return start, length if step == 1 or step < 0 else -(-length // step), step


def _bound(bound, extent):
    """A bound of a slice between 0 and the extent."""
    if isinstance(bound, int) and bound < 0:
        return larger(extent + bound, 0)
    return smaller(bound, extent)


def smaller(first, second):
    """The smaller of two extents."""
    return jax.core.min_dim(first, second)


def larger(first, second):
    """The larger of two extents."""
    return jax.core.max_dim(first, second)
