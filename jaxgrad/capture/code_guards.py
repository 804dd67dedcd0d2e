"""Guards on what a function's code names: its globals and closure variables, and the attributes and
items of the objects that they hold.

A program is valid for their values at the time of tracing. The code is not run for this: a walk
collects the names in its bytecode, and guards each variable, attribute and item of such a name.
Modules and optimizers report themselves (capture/object_state.py); libraries are not entered.
"""

from __future__ import annotations

import functools
import inspect
import sys
import sysconfig
import types

import jax
import numpy as np

from ..tape.object_walk import ObjectWalk, codes, global_names, names_in
from ..tape.tensor import Tensor
from .guards import (
    Guard,
    ListElements,
    NameBinding,
    attribute_of,
    grad_of,
    in_cell,
    item_of,
)

# a walk along names ends after so many objects
MOST_OBJECTS_READ = 1000

_CLOSED = ("jax", "jaxgrad", "jaxlib", "numpy", "builtins")
VALUES = (
    int, float, complex, str, bytes, jax.Array, np.ndarray, types.BuiltinFunctionType,
)  # fmt: skip


def code_guards(function, arguments=(), unseen=()) -> list[Guard]:
    """The guards on what a function's code names.

    arguments: those that are no tensors, whose attributes and items are guarded too; unseen: code
    objects of functions whose values each call reads (`tracing.number`).
    """
    walk = _NameWalk(unseen)
    walk.run(function, arguments)
    return list(walk.guards.values())


def reachable_tensors(function, arguments, tensors) -> set[int]:
    """The ids of those tensors that a function can reach through its variables or through
    `arguments`: containers, attributes and functions that its code names are entered.
    """
    sought = set(map(id, tensors))
    found = set()
    for value in _StateWalk().walk(*arguments, python_function(function)) if sought else ():
        if id(value) in sought:
            found.add(id(value))
            if found == sought:
                break
    return found


# ---- variables


def variables(function, unseen=frozenset()):
    """Yield the variables that a function's code names: a holder, how to look there, a name."""
    named = [names_in(code).cells for code in codes(function.__code__, unseen)]
    read = frozenset().union(*named)
    # the closure also has variables that only code in `unseen` reads: those are no constants
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in read:
            yield cell, in_cell, name
    for name in global_names(function, unseen):
        yield function.__globals__, item_of, name


# ---- the walks


class _StateWalk(ObjectWalk):
    """All state that a function can reach, as far as tensors may be there."""

    opaque = (*VALUES, types.ModuleType)
    most = 20_000

    def contents(self, value):
        return (grad_of(value),) if isinstance(value, Tensor) else super().contents(value)

    def of_function(self, function):
        if _is_closed(function):
            return ()
        named = [look(holder, name) for holder, look, name in variables(function)]
        defaults = (function.__kwdefaults__ or {}).values()
        return *named, *(function.__defaults__ or ()), *defaults

    def of_object(self, value):
        if _is_closed(value):
            return ()
        held = super().of_object(value)
        return held if isinstance(value, type) else (*held, type(value))


def _is_closed(value) -> bool:
    return (getattr(value, "__module__", None) or "").partition(".")[0] in _CLOSED


class _NameWalk(ObjectWalk):
    """From a function to the bindings of all names in its code and in that of the functions which
    it names.

    `names`, `strings`: the attributes and constant strings in that code; `stored`: the attributes
    that it sets, as a counter of its own, which are not guarded.
    """

    opaque = (*VALUES, Tensor)
    most = 20_000

    def __init__(self, unseen):
        super().__init__()
        self.unseen = frozenset(unseen)
        self.names, self.strings, self.stored = set(), set(), set()
        self.has_learned = False
        self.objects: dict[int, object] = {}
        self.guards: dict[tuple, NameBinding | ListElements] = {}

    def run(self, function, arguments):
        found = [function, vars(type(function)).get("__call__"), *arguments]
        while found and len(self.objects) < MOST_OBJECTS_READ:
            for _ in self.walk(*found):
                pass
            # objects found early may have attributes whose names were found late
            found = [each for holder in list(self.objects.values()) for each in self.read(holder)]
        may_grow = not self.names.isdisjoint(("append", "extend"))
        for key, guard in list(self.guards.items()):
            if isinstance(guard, ListElements):
                guard.may_grow = may_grow
            elif guard.look is attribute_of and guard.name in self.stored:
                del self.guards[key]

    def contents(self, value):
        if isinstance(value, functools.partial | types.MethodType | types.FunctionType):
            return super().contents(value)
        if "__wrapped__" in getattr(value, "__dict__", ()):  # a compiled function, a cache
            return (value.__wrapped__,)
        if _is_open(value):
            self.objects[id(value)] = value
        return ()

    def of_function(self, function):
        # the compiled function itself is entered even where it is part of an installed library
        if self.has_learned and is_of_library(function.__module__):
            return ()
        return self.learn(function)

    def learn(self, function) -> list:
        """Collect the names in a function's code; gives the values of its variables."""
        self.has_learned = True
        for code in codes(function.__code__, self.unseen):
            found = names_in(code)
            self.names |= found.attributes
            self.strings |= found.strings
            self.stored |= found.stored
        places = variables(function, self.unseen)
        return [each for place in places for each in self.bind(*place)]

    def read(self, holder) -> list:
        """Guard the items and attributes of an object that the code names; gives their values."""
        if isinstance(holder, dict):
            return self.bind_all(holder, item_of, self.strings & holder.keys())
        found = self.bind_all(holder, attribute_of, self.names & vars(holder).keys())
        kind = holder if isinstance(holder, type) else type(holder)
        for base in kind.__mro__:
            if not is_of_library(base.__module__):
                for name in self.names & vars(base).keys():
                    found += self.inherited(holder, base, name)
        return found

    def inherited(self, holder, base, name) -> list:
        """Guard an attribute that an object may have from a class; methods are entered instead."""
        member = vars(base)[name]
        for name_of_function in ("fget", "__func__", "__wrapped__"):
            if not isinstance(member, types.FunctionType):
                member = getattr(member, name_of_function, member)
        if isinstance(member, types.FunctionType):
            is_new = id(member) not in self.seen
            self.seen[id(member)] = member
            return self.learn(member) if is_new else []
        if hasattr(member, "__get__"):
            return []
        # of the instance too: an attribute that is set on it later hides that of the class
        return [*self.bind(holder, attribute_of, name), *self.bind(base, attribute_of, name)]

    def bind_all(self, holder, look, names) -> list:
        return [each for name in names for each in self.bind(holder, look, name)]

    def bind(self, holder, look, name) -> list:
        """Guard a binding; gives its value, and the elements where that is a list."""
        if (id(holder), name) in self.guards:
            return []
        self.guards[id(holder), name] = NameBinding(holder, look, name)
        value = look(holder, name)
        if not isinstance(value, list):
            return [value]
        self.guards[id(value), None] = ListElements(value, name)
        return list(value)


def _is_open(value) -> bool:
    """Whether attributes or items of an object are guarded."""
    if isinstance(value, dict):
        return True
    if not hasattr(value, "__dict__"):
        return False
    if isinstance(value, types.ModuleType):
        return not is_of_library(value.__name__)
    if "_changes" in vars(value):  # a module or an optimizer
        return False
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0] not in _CLOSED


@functools.lru_cache(maxsize=4096)
def is_of_library(module: str | None) -> bool:
    """Whether a Python module belongs to Python, or was installed."""
    root = (module or "builtins").partition(".")[0]
    if root in _CLOSED or root in sys.stdlib_module_names:
        return root != "__main__"
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return path.startswith(tuple(sysconfig.get_paths()[name] for name in ("purelib", "platlib")))


def python_function(function):
    """The function whose code runs; None where that cannot be seen."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, types.MethodType):
        function = function.__func__
    return function if isinstance(function, types.FunctionType) else None
