"""Conditions on sizes, as torch.fx.experimental.symbolic_shapes: sizes are numbers here."""

from __future__ import annotations

import operator
from functools import reduce

from ...names.not_provided import names_of
from ...tape.symbolic_number import GuardOnDataDependentSymNode as GuardOnDataDependentSymNode

__getattr__, __dir__ = names_of(__name__)


class ConstraintViolationError(RuntimeError):
    """The sizes of an example are not those that its dimensions allow."""


def guard_or_false(a) -> bool:
    """Return the truth of a condition on sizes, which is known.

    >>> from jaxgrad.fx.experimental.symbolic_shapes import guard_or_false
    >>> guard_or_false(jaxgrad.ones(2).shape[0] == 2)
    True
    """
    return bool(a)


guard_or_true = guard_size_oblivious = guard_bool = guard_or_false
statically_known_true = expect_true = guard_or_false


def statically_known_false(x) -> bool:
    """Return whether a condition on sizes is false."""
    return not x


def guard_int(a) -> int:
    """Return a size as a number."""
    return int(a)


def guard_float(a) -> float:
    """Return a number of a program as a float."""
    return float(a)


def guard_scalar(a):
    """Return a number as it is."""
    return a


def size_hint(a):
    """Return a size as it is."""
    return a


def is_symbolic(val) -> bool:
    """Return False: sizes are numbers."""
    return False


def has_free_symbols(val) -> bool:
    """Return False: sizes are numbers."""
    return False


has_free_unbacked_symbols = has_symbolic_sizes_strides = has_free_symbols


def free_symbols(val) -> set:
    """Return the symbols in sizes: none.

    >>> from jaxgrad.fx.experimental.symbolic_shapes import free_symbols
    >>> free_symbols(jaxgrad.ones(2).shape)
    set()
    """
    return set()


free_unbacked_symbols = free_symbols


def is_concrete_int(a) -> bool:
    """Return whether a value is an int."""
    return isinstance(a, int)


def is_concrete_bool(a) -> bool:
    """Return whether a value is a bool."""
    return isinstance(a, bool)


def is_concrete_float(a) -> bool:
    """Return whether a value is a float."""
    return isinstance(a, float)


def sym_eq(x, y) -> bool:
    """Return whether two sizes, or shapes, are equal.

    >>> from jaxgrad.fx.experimental.symbolic_shapes import sym_eq
    >>> sym_eq(jaxgrad.ones(2, 3).shape, (2, 3))
    True
    """
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(operator.eq, x, y))
    return x == y


def sym_and(x, *others):
    """Return whether all conditions hold."""
    return reduce(operator.and_, others, x)


def sym_or(x, *others):
    """Return whether one of the conditions holds."""
    return reduce(operator.or_, others, x)
