"""What a function reads by the names in its own code: its globals and the variables around it.

They are part of a program as they were when it was traced, so one that has been bound to something
else since has the function traced anew. Attributes of objects are not looked at.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref

import jax
import numpy as np

from .tensor import Tensor

_UNSET = object()


class Surroundings:
    """The variables of a function that its code names, and what they were bound to."""

    def __init__(self, function):
        self.function = function = _plain(function)
        self.cells, self.globals, self.names = (), {}, ()
        if function is not None:
            cells = function.__closure__ or ()
            self.cells = tuple(zip(function.__code__.co_freevars, cells, strict=True))
            self.globals = function.__globals__
            self.names = tuple(sorted(_names(function.__code__) & self.globals.keys()))
        self.bound = [_Bound(value) for value in self.values()]

    def values(self):
        for _, cell in self.cells:
            try:
                yield cell.cell_contents
            except ValueError:  # not bound yet
                yield _UNSET
        for name in self.names:
            yield self.globals.get(name, _UNSET)

    def changed(self) -> str | None:
        """The name of a variable that is bound to something else now, None where none is."""
        for number, (value, bound) in enumerate(zip(self.values(), self.bound, strict=True)):
            if not bound.is_still(value):
                return [*[name for name, _ in self.cells], *self.names][number]
        return None

    def reached(self, others, tensors) -> set[int]:
        """Those of some tensors, by their `id`, that the function can reach by itself: by its
        variables, or from `others`, arguments that are no tensors.

        Containers, attributes and the functions that are called by name are looked into.
        """
        sought = set(map(id, tensors))
        found, seen, stack = set(), set(), [self.function, *others]
        while stack and len(seen) < MOST_LOOKED_AT and found != sought:
            value = stack.pop()
            if id(value) in seen or isinstance(value, _LEAVES):
                continue
            seen.add(id(value))
            if id(value) in sought:
                found.add(id(value))
            else:
                stack.extend(_within(value))
        return found


# from so many objects on, a search for tensors is given up
MOST_LOOKED_AT = 20_000

_LIBRARIES = ("jax", "jaxgrad", "jaxlib", "numpy", "builtins")


def _within(value):
    """What can be reached from an object in one step, as far as a function's state may be there."""
    if isinstance(value, Tensor):
        return (getattr(value._leaf, "grad", None),)
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, types.MethodType):
        return value.__self__, value.__func__
    if (getattr(value, "__module__", None) or "").partition(".")[0] in _LIBRARIES:
        return ()
    if isinstance(value, types.FunctionType):
        named = (value.__kwdefaults__ or {}).values()
        return [*Surroundings(value).values(), *(value.__defaults__ or ()), *named]
    if isinstance(value, type):
        return vars(value).values()
    return *getattr(value, "__dict__", {}).values(), type(value)


class _Bound:
    """What a variable was bound to, which is not kept where it can be watched without."""

    __slots__ = ("reference", "value")

    def __init__(self, value):
        try:
            self.reference, self.value = weakref.ref(value), None
        except TypeError:
            self.reference, self.value = None, value

    def is_still(self, value) -> bool:
        if self.reference is not None:
            return self.reference() is value
        kept = self.value
        is_plain = isinstance(kept, _PLAIN) and type(value) is type(kept)
        return value is kept or (is_plain and value == kept)


_LEAVES = (
    int, float, complex, str, bytes, jax.Array, np.ndarray, types.ModuleType,
    types.BuiltinFunctionType,
)  # fmt: skip
_PLAIN = (int, float, complex, str, bytes, bool)


def _plain(function):
    """The function whose code runs, None where that cannot be seen."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, types.MethodType):
        function = function.__func__
    return function if isinstance(function, types.FunctionType) else None


def _names(code) -> set[str]:
    """The names that code looks up, with that of the functions within."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*inner)
