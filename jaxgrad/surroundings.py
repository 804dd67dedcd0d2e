"""What a function reads by the names in its own code: its globals and the variables around it.

They are part of a program as they were when it was traced, so one that has been bound to something
else since has the function traced anew. Attributes of objects are not looked at.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref

_UNSET = object()


class Surroundings:
    """The variables of a function that its code names, and what they were bound to."""

    def __init__(self, function):
        function = _plain(function)
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
