"""Stand-ins for generators, iterators and functions that draw, put where a traced function finds
them.

Methods of classes in C cannot be replaced in their classes. So the objects themselves have
stand-ins, and so have functions under other names (`from time import perf_counter`).
"""

from __future__ import annotations

import functools
import io
import random
import types
from collections.abc import Iterator

from ..state.holder import ArrayHolder, LeafHolder, LibraryHolder, ProxyHolder, SetHolder
from ..tape import mode
from .python_reads import (
    NUMPY_GENERATORS,
    RANDOM_METHODS,
    Call,
    OfNumbers,
    Refusal,
    Today,
    replacements,
)


class StandIn:
    """Stands for a generator of NumPy while a function is traced. `original`: the generator."""

    def __init__(self, original):
        self.original = original

    @property
    def __class__(self):
        return type(self.original)

    def __getattr__(self, name):
        attribute = getattr(self.original, name)
        if not callable(attribute):
            return attribute
        return Call(attribute, self.original, f"{type(self.original).__name__}.{name}")


class IteratorStandIn:
    """Stands for an iterator while a function is traced. `original`: the iterator."""

    def __init__(self, original):
        vars(self)["original"] = original

    @property
    def __class__(self):
        return type(self.original)

    def __iter__(self):
        return self

    def __next__(self):
        run = mode.drawn_run.get()
        if run is None or run.is_own(self.original):
            return next(self.original)
        return run.event(self.original, "next", next, (), {})

    def __getattr__(self, name):
        self.refuse(name)
        return getattr(self.original, name)

    def __setattr__(self, name, value):
        self.refuse(name)
        setattr(self.original, name, value)

    def refuse(self, name):
        run = mode.drawn_run.get()
        if run is not None and not name.startswith("__"):
            run.refuse(f"it uses {name} of a {type(self.original).__name__}")


class BoundStandIn(functools.partial):
    """Stands for a bound method whose class has a replacement of the method: `original` is the
    bound method. A call of it has no frame of its own.
    """

    def __getattr__(self, name):
        return getattr(self.original, name)


STAND_INS = (StandIn, IteratorStandIn, Call, Refusal, OfNumbers, BoundStandIn, Today)


def original(value):
    """The object behind a stand-in; any other value itself."""
    return value.original if type(value) in STAND_INS else value


def put_stand_ins(holder, run) -> dict:
    """Replace the generators, iterators and drawing functions in a holder by stand-ins; returns
    these by name.
    """
    target, placed = holder.reference(), {}
    for name, value in () if isinstance(holder, _FIXED) else holder.before.items():
        stand_in = stand_in_for(value)
        if stand_in is not None:
            run.meet(getattr(value, "__self__", value))
            holder.bind(target, name, stand_in)
            placed[name] = stand_in
    return placed


# the holders whose contents have no names, cannot be set, or are a library's
_FIXED = (SetHolder, ArrayHolder, ProxyHolder, LeafHolder, LibraryHolder)


def is_output(value) -> bool:
    """Whether a value is a file that is only written to, as the one that `print` writes to."""
    return isinstance(value, io.IOBase) and not value.closed and not value.readable()


def stand_in_for(value):
    """The stand-in for a value while a function is traced; None if the value stays."""
    kind = type(value)
    if kind in _PLAIN:
        return None
    if issubclass(kind, NUMPY_GENERATORS):
        return StandIn(value)
    if is_iterator(kind):
        return None if is_output(value) else IteratorStandIn(value)
    if kind in _BOUND:
        return replacements.by_function.get(id(value)) or _bound(value)
    return replacements.by_function.get(id(value)) if issubclass(kind, type) else None


def _bound(method):
    """The stand-in for a bound method, which is not looked up in its class again."""
    owner, name = method.__self__, method.__name__
    is_pythons = isinstance(owner, random.Random) and name in RANDOM_METHODS
    if is_pythons or isinstance(owner, NUMPY_GENERATORS):
        return Call(method, owner, f"{type(owner).__name__}.{name}")
    of_class = replacements.by_method
    kinds = [kind for kind in type(owner).__mro__ if (kind, name) in of_class]
    if not kinds:
        return None
    stand_in = BoundStandIn(of_class[kinds[0], name], owner)
    stand_in.original = method
    return stand_in


_PLAIN = frozenset([int, float, str, bool, type(None), dict, list, tuple, types.FunctionType])
_BOUND = (types.BuiltinFunctionType, types.MethodType)


@functools.lru_cache(maxsize=4096)
def is_iterator(kind: type) -> bool:
    """Whether the instances of a class are iterators whose state is hidden: generators, `iter([])`,
    `zip()`, those of a DataLoader, open files.
    """
    return issubclass(kind, Iterator) and str(kind.__module__).partition(".")[0] in _HIDDEN


_HIDDEN = ("builtins", "itertools", "jaxgrad", "_io", "collections", "_collections")
