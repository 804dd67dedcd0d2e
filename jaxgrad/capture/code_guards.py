"""What a function reads by the names in its code: its globals and the variables around it, and the
attributes and items of their objects.

They are part of a program as they were when it was traced, so one that has been bound to something
else since has the function traced anew. Modules and optimizers tell of themselves
(capture/object_guards.py), and libraries are not looked into.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import sysconfig
import types
import weakref
from typing import NamedTuple

import jax
import numpy as np

from ..tape.tensor import Tensor

_UNSET = object()


class Surroundings:
    """What a function's code names, and what it was bound to when this was made.

    others: objects that it is given; unseen: code of functions whose values are read at each call
    (`tracing.number`).
    """

    def __init__(self, function, others=(), unseen=()):
        self.function = _plain(function)
        walk = _Walk(unseen)
        walk.run(function, others)
        self.bindings = list(walk.bindings.values())

    def changed(self) -> str | None:
        """What is bound to something else now, None where nothing is."""
        for binding in self.bindings:
            if not binding.is_still():
                return binding.change()
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
    if (getattr(value, "__module__", None) or "").partition(".")[0] in _CLOSED:
        return ()
    if isinstance(value, types.FunctionType):
        named = (value.__kwdefaults__ or {}).values()
        return [*map(_found, _variables(value)), *(value.__defaults__ or ()), *named]
    if isinstance(value, type):
        return vars(value).values()
    return *getattr(value, "__dict__", {}).values(), type(value)


# ---- variables, attributes and items


class _Binding:
    """A name, and what it was bound to, which is not kept where it can be watched without.

    `look(holder, name)`: what it is bound to now.
    """

    __slots__ = ("holder", "look", "name", "reference", "value")

    def __init__(self, holder, look, name):
        self.look, self.name, value = look, name, look(holder, name)
        try:
            self.holder = weakref.ref(holder)
        except TypeError:
            self.holder = lambda: holder
        try:
            self.reference, self.value = weakref.ref(value), None
        except TypeError:
            self.reference, self.value = None, value

    def is_still(self) -> bool:
        holder = self.holder()
        value = _UNSET if holder is None else self.look(holder, self.name)
        if self.reference is not None:
            return self.reference() is value
        kept = self.value
        return value is kept or (isinstance(kept, _PLAIN) and same(value, kept))

    def change(self) -> str:
        holder = self.holder()
        value = _UNSET if holder is None else self.look(holder, self.name)
        if isinstance(self.value, _PLAIN) and isinstance(value, _PLAIN):
            return f"{self.name} was {self.value!r}, and is {value!r}"
        return f"{self.name} is bound to something else"


class _Elements:
    """What is in a list: the same objects, of which tensors are not kept; `may_grow`: and others
    after them.
    """

    __slots__ = ("holder", "ids", "kept", "look", "may_grow", "name")

    def __init__(self, holder, name):
        self.holder, self.name, self.look, self.may_grow = holder, name, None, False
        self.ids = list(map(id, holder))
        self.kept = [each for each in holder if not isinstance(each, Tensor)]  # while ids are used

    def is_still(self) -> bool:
        now = self.holder[: len(self.ids)] if self.may_grow else self.holder
        return list(map(id, now)) == self.ids

    def change(self) -> str:
        return f"{self.name} has other elements"


def same(value, kept) -> bool:
    return type(value) is type(kept) and value == kept


def _cell(cell, name):
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return _UNSET


def _item(mapping, name):
    return mapping.get(name, _UNSET)


def _attribute(holder, name):
    return vars(holder).get(name, _UNSET)


def _found(place):
    holder, look, name = place
    return look(holder, name)


def _variables(function, unseen=frozenset()):
    """Where the variables are that the code of a function names: holders, how to look, names."""
    codes = list(_codes(function.__code__, unseen))
    cells = frozenset().union(*[_named_by(code).cells for code in codes])
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in cells:
            yield cell, _cell, name
    names = set().union(*[code.co_names for code in codes])
    for name in sorted(names & function.__globals__.keys()):
        yield function.__globals__, _item, name


def _codes(code, unseen=frozenset()):
    """The code of a function, and that of functions within."""
    if code not in unseen:
        yield code
        for each in code.co_consts:
            if isinstance(each, types.CodeType):
                yield from _codes(each, unseen)


class _Walk:
    """From a function to all that its code, and that of functions which it names, reads by name.

    `names`, `words`: the attributes and the constant strings in that code; `stored`: the attributes
    that it sets, as a counter of its own, which are no guards.
    """

    def __init__(self, unseen):
        self.unseen = frozenset(unseen)
        self.names, self.words, self.stored = set(), set(), set()
        self.functions, self.objects = {}, {}
        self.bindings: dict[tuple, _Binding | _Elements] = {}

    def run(self, function, others):
        for each in (function, vars(type(function)).get("__call__"), *others):
            self.meet(each)
        before = None
        while before != (before := self.size()) and len(self.objects) < MOST_WALKED:
            for holder in list(self.objects.values()):
                self.look_into(holder)
        for key, binding in list(self.bindings.items()):
            if isinstance(binding, _Elements):  # code that appends may do so to any of its lists
                binding.may_grow = not self.names.isdisjoint(("append", "extend"))
            if binding.look is _attribute and binding.name in self.stored:
                del self.bindings[key]

    def size(self):
        return len(self.names), len(self.words), len(self.objects)

    def bind(self, holder, look, name):
        if (id(holder), name) in self.bindings:
            return
        self.bindings[id(holder), name] = _Binding(holder, look, name)
        value = look(holder, name)
        self.meet(value)
        if isinstance(value, list):
            self.bindings[id(value), None] = _Elements(value, name)
            for each in value:
                self.meet(each)

    def meet(self, value):
        if isinstance(value, functools.partial):
            for each in (value.func, *value.args, *value.keywords.values()):
                self.meet(each)
        elif isinstance(value, types.MethodType):
            self.meet(value.__self__)
            self.meet(value.__func__)
        elif isinstance(value, types.FunctionType):
            if not self.functions or not _is_of_library(value.__module__):
                self.learn(value)
        elif "__wrapped__" in getattr(value, "__dict__", ()):  # a compiled function, a cache
            self.meet(value.__wrapped__)
        elif is_open(value):
            self.objects[id(value)] = value

    def learn(self, function):
        """Take up what the code of a function names."""
        if id(function) in self.functions:
            return
        self.functions[id(function)] = function
        for code in _codes(function.__code__, self.unseen):
            named = _named_by(code)
            self.names |= named.attributes
            self.words |= named.words
            self.stored |= named.stored
        for place in _variables(function, self.unseen):
            self.bind(*place)

    def look_into(self, holder):
        if isinstance(holder, dict):
            for name in self.words & holder.keys():
                self.bind(holder, _item, name)
            return
        for name in self.names & vars(holder).keys():
            self.bind(holder, _attribute, name)
        kind = holder if isinstance(holder, type) else type(holder)
        for base in kind.__mro__:
            if not _is_of_library(base.__module__):
                for name in self.names & vars(base).keys():
                    self.look_at_class(holder, base, name)

    def look_at_class(self, holder, base, name):
        """A member of a class, which an attribute of the object may come to stand before."""
        member = vars(base)[name]
        for name_of_function in ("fget", "__func__", "__wrapped__"):
            if not isinstance(member, types.FunctionType):
                member = getattr(member, name_of_function, member)
        if isinstance(member, types.FunctionType):
            self.learn(member)
        elif not hasattr(member, "__get__"):
            self.bind(holder, _attribute, name)
            self.bind(base, _attribute, name)


# from so many objects on, no more are looked into
MOST_WALKED = 1000

_CLOSED = ("jax", "jaxgrad", "jaxlib", "numpy", "builtins")


def is_open(value) -> bool:
    """Whether what is read of an object by name is looked at."""
    if isinstance(value, dict):
        return True
    if isinstance(value, (Tensor, *_LEAVES[:-2])) or not hasattr(value, "__dict__"):
        return False
    if isinstance(value, types.ModuleType):
        return not _is_of_library(value.__name__)
    if "_changes" in vars(value):  # a module or an optimizer
        return False
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0] not in _CLOSED


@functools.lru_cache(maxsize=4096)
def _is_of_library(module: str | None) -> bool:
    """Whether a module belongs to Python, or was installed."""
    root = (module or "builtins").partition(".")[0]
    if root in _CLOSED or root in sys.stdlib_module_names:
        return root != "__main__"
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return path.startswith(tuple(sysconfig.get_paths()[name] for name in ("purelib", "platlib")))


class _Named(NamedTuple):
    """What code names: the attributes that it reads, its constant strings, the attributes that it
    sets, and the variables around it that it reads itself.
    """

    attributes: frozenset
    words: frozenset
    stored: frozenset
    cells: frozenset


@functools.lru_cache(maxsize=4096)
def _named_by(code) -> _Named:
    instructions = list(dis.get_instructions(code))

    def named(*kinds):
        return frozenset(each.argval for each in instructions if each.opname in kinds)

    return _Named(
        named("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"),
        frozenset(each for each in code.co_consts if isinstance(each, str)),
        named("STORE_ATTR"),
        named("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"),
    )


_LEAVES = (
    int, float, complex, str, bytes, jax.Array, np.ndarray, types.ModuleType,
    types.BuiltinFunctionType,
)  # fmt: skip
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def _plain(function):
    """The function whose code runs, None where that cannot be seen."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, types.MethodType):
        function = function.__func__
    return function if isinstance(function, types.FunctionType) else None
