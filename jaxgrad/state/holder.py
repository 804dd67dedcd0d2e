"""Holders: the Python objects whose contents a function may read and change.

A trace takes a snapshot of each holder that the function reaches. The reads of the function become
guards (state/reads.py), and each call repeats its changes. Verification puts back the changes of
one run, and compares them with those of another run.
"""

from __future__ import annotations

import array
import ctypes
import functools
import itertools
import mmap
import operator
import types
from collections import deque
from contextvars import ContextVar

import numpy as np

from .code import UNSET, named_cells
from .guards import ContentGuard, Guard, StateGuard
from .objects import dict_class, own_dict, own_items, reference_to, slot_values, slots_of
from .ownership import is_observable, is_of_python

# a larger container or array is not compared at each call: the user is warned
MOST_COMPARED, MOST_BYTES_COMPARED = 10_000, 2**22
# objects in C that show their memory; the base of all of ctypes
BUFFERS = memoryview, mmap.mmap, ctypes.Structure.__base__


class Holder:
    """An object with state, and its contents before the function ran.

    `name`: the variable, attribute or item by which the function reached it first; `before`: the
    values of its names; `read`: the names whose values the function has read, or `reads_all` of
    them, later names included; `written`: the attributes that it has set; `changed`: the names that
    it has bound to something else or `removed`; `rebound`: the names that it assigns at each call.
    """

    is_sequence, is_ordered = False, False  # whether the names are numbers, and keep their order
    has_elements = False  # whether it is a container, whose elements come and go
    suffix = ".{}"  # what leads from the object to what a name is bound to, in code

    def __init__(self, target, name: str):
        self.name, self.reference = name, reference_to(target)
        self.before, self.read, self.rebound = self.contents(target), set(), set()
        self.written: set = set()
        self.changed: set = set()
        self.removed, self.reads_all = set(), False

    @staticmethod
    def mapping(target):
        """The contents in a form that `[name]` reads."""
        return target

    def contents(self, target) -> dict:
        """By name what is held."""
        return dict(self.mapping(target))

    def bind(self, target, name, value):
        self.mapping(target)[name] = value

    def unbind(self, target, name):
        del self.mapping(target)[name]

    def difference(self, old: dict, new: dict) -> tuple[dict, list]:
        """The change from old contents to new ones: the names to bind, with their values, after the
        names to remove.
        """
        bound = {n: value for n, value in new.items() if old.get(n, UNSET) is not value}
        removed = [name for name in old if name not in new]
        if not self.is_ordered or all(map(operator.is_, old, new)):
            return bound, removed
        # names that were removed and bound again come last
        rest = iter(old)
        late = itertools.dropwhile(lambda name: any(name is other for other in rest), new)
        last = {name: new[name] for name in late}
        bound = {name: value for name, value in bound.items() if name not in last} | last
        return bound, removed + [name for name in last if name in old]

    # ---- what is common to them

    def path(self, name) -> str:
        """The code that leads to the value of a name."""
        return f"{self.name}{self.suffix.format(name)}".removeprefix(".")

    def current(self) -> dict:
        """The present contents; nothing where the object is gone."""
        target = self.reference()
        return {} if target is None else self.contents(target)

    def value(self, name):
        """What a name is bound to now; UNSET where it is not."""
        return self.current().get(name, UNSET)

    def changes(self, before: dict) -> tuple[dict, list]:
        """The names bound since `before`, with their values, and those that were removed."""
        target = self.reference()
        return ({}, []) if target is None else self.difference(before, self.contents(target))

    def put(self, target, bound: dict, removed):
        """Bind names, and remove others."""
        for name in removed:
            if name in self.contents(target):
                self.unbind(target, name)
        for name, value in bound.items():
            self.bind(target, name, value)

    def restore(self, besides=()):
        """Bind all names but `besides` to what they were bound to before."""
        target = self.reference()
        if target is not None:
            self.make(target, self.before, besides)

    def make(self, target, contents: dict, besides=()):
        """Give an object these contents, but for the names `besides`."""
        bound, removed = self.difference(self.contents(target), contents)
        bound = {name: value for name, value in bound.items() if name not in besides}
        self.put(target, bound, [name for name in removed if name not in besides])

    def guard(self) -> Guard:
        """A guard on all contents."""
        return StateGuard(self)


class InstanceHolder(Holder):
    """The attributes of an instance, slots included."""

    def __init__(self, target, name):
        self.slots = slots_of(type(target))
        self.is_ordered = True
        if self.slots:
            self.mapping = functools.partial(_attributes, self.slots)
        super().__init__(target, name)

    @staticmethod
    def mapping(target):
        return own_dict(target)

    def contents(self, target):
        return _attributes(self.slots, target)

    def bind(self, target, name, value):
        # past `__setattr__`, which may compute, refuse or count
        if name in self.slots:
            self.slots[name].__set__(target, value)
        else:
            own_dict(target)[name] = value

    def unbind(self, target, name):
        if name in self.slots:
            self.slots[name].__delete__(target)
        else:
            del own_dict(target)[name]


def _attributes(slots, target) -> dict:
    # the snapshot must not count as a read; those of the dict first, which have an order
    return {**own_dict(target), **slot_values(target, slots)}


class LeafHolder(InstanceHolder):
    """The attributes that users set on a leaf, such as a tensor. The slots of the leaf are no
    state. `leaf`: the class of the leaves.
    """

    leaf: type

    def __init__(self, target, name):
        self.slots, self.is_ordered = {}, True
        Holder.__init__(self, target, name)
        # an attribute of a user's class is seen until the leaf gets its own
        kinds = type(target).__mro__
        classes = kinds[: kinds.index(self.leaf)]
        self.names = self.before.keys() | {name for kind in classes for name in vars(kind)}


class ReportingHolder(InstanceHolder):
    """The attributes of an instance whose class reports its reads by itself, as a module does."""


class LibraryHolder(InstanceHolder):
    """The attributes that code sets on an object, a class or a module of a library. `stored`: the
    names that the user's code assigns; other changes there belong to the library.
    """

    def __init__(self, target, name):
        self.slots, self.stored = {}, set()
        # the values that take the place of such descriptors stay when a trace is taken back
        self.late = {name for name, value in own_dict(target).items() if is_late(value)}
        Holder.__init__(self, target, name)

    def contents(self, target):
        # functions of Python and NumPy are replaced where draws are taken in
        is_fixed = isinstance(target, type | types.ModuleType) and is_of_python(target)
        return {
            name: value
            for name, value in own_dict(target).items()
            if name not in _ADDED and not (is_fixed and callable(value)) and not is_late(value)
        }

    def changes(self, before):
        bound, removed = super().changes(before)
        bound = {name: value for name, value in bound.items() if name in self.stored}
        return bound, [name for name in removed if name in self.stored]

    def restore(self, besides=()):
        unstored = (self.before.keys() | self.current().keys()) - self.stored
        super().restore({*besides, *unstored, *self.late})

    def bind(self, target, name, value):
        (type.__setattr__ if isinstance(target, type) else super().bind)(target, name, value)

    def unbind(self, target, name):
        (type.__delattr__ if isinstance(target, type) else super().unbind)(target, name)


def is_late(value) -> bool:
    """Whether a value is a descriptor that may replace itself by another value."""
    kind = type(value)
    return is_observable(kind) and hasattr(kind, "__get__")


class MemberHolder(Holder):
    """The buffers of a module."""

    group = "_buffers"

    @classmethod
    def mapping(cls, target):
        return own_dict(target)[cls.group]


class ParameterHolder(MemberHolder):
    """The parameters of a module."""

    group = "_parameters"


class SubmoduleHolder(MemberHolder):
    """The submodules of a module."""

    group, is_ordered = "_modules", True


# by the attribute of a module with members of a kind their holder
MEMBERS = {kind.group: kind for kind in (MemberHolder, ParameterHolder, SubmoduleHolder)}


class ClassHolder(Holder):
    """The attributes of a class."""

    @staticmethod
    def mapping(target):
        return vars(target)

    def contents(self, target):
        # without the hook of an observation, and what Python adds by itself
        return {n: value for n, value in vars(target).items() if n not in _ADDED}

    def bind(self, target, name, value):
        type.__setattr__(target, name, value)

    def unbind(self, target, name):
        type.__delattr__(target, name)


_ADDED = (
    "__getattribute__",
    "__setattr__",
    "__dict__",
    "__weakref__",
    "__doc__",
    "__annotations__",
)


class DictHolder(Holder):
    """The items of a dict."""

    is_ordered, has_elements, suffix = True, True, "[{!r}]"

    # past what subclasses do when an item is read or set; an OrderedDict keeps its order elsewhere
    mapping = staticmethod(own_items)

    def bind(self, target, name, value):
        dict_class(target).__setitem__(target, name, value)

    def unbind(self, target, name):
        dict_class(target).__delitem__(target, name)


class ProxyHolder(DictHolder):
    """The items of a dict, through a view that cannot change them."""

    mapping = staticmethod(Holder.mapping)

    def put(self, target, bound, removed):
        pass  # what changed the dict itself is recorded there


class GlobalsHolder(DictHolder):
    """The globals of a module."""

    has_elements, suffix = False, ".{}"

    def contents(self, target):
        # without what Python adds where it warns
        return {n: value for n, value in target.items() if n != "__warningregistry__"}


class SequenceHolder(Holder):
    """The elements of a list or a deque."""

    is_sequence = has_elements = True
    suffix = "[{}]"

    def contents(self, target):
        return dict(enumerate(target))

    def difference(self, old, new):
        # elements that were only added are added again to whatever a later call finds
        if len(new) >= len(old) and all(map(operator.is_, old.values(), new.values())):
            return dict(itertools.islice(new.items(), len(old), None)), []
        return new, [WHOLE]

    def bind(self, target, name, value):
        if name < len(target):
            target[name] = value
        else:
            target.append(value)

    def put(self, target, bound, removed):
        if removed:
            target.clear()
        target.extend(bound.values())


WHOLE = object()


class SetHolder(Holder):
    """The elements of a set, each by itself."""

    suffix = "[{!r}]"

    def contents(self, target):
        return {element: element for element in target}

    def difference(self, old, new):
        return {n: n for n in new if n not in old}, [name for name in old if name not in new]

    def bind(self, target, name, value):
        target.add(value)

    def unbind(self, target, name):
        target.discard(name)

    def guard(self):
        def contents(target, known):
            return {element: element for element in known}

        return ContentGuard(self, set(self.before), operator.eq, contents)


class ArrayHolder(Holder):
    """The elements of a NumPy array or an `array.array`, or the bytes of a buffer."""

    kinds = np.ndarray, bytearray, array.array, *BUFFERS
    suffix = ""

    def contents(self, target):
        may_grow = isinstance(target, bytearray | array.array)
        return {None: target[:] if may_grow else array_of(target).copy()}

    def difference(self, old, new):
        return ({}, []) if _bytes(old[None]) == _bytes(new[None]) else (new, [])

    def bind(self, target, name, value):
        if isinstance(target, bytearray | array.array):
            target[:] = value
        elif array_of(target).flags.writeable:  # else it changes with what owns the memory
            array_of(target)[...] = value

    def guard(self):
        known = _bytes(self.before[None])
        return ContentGuard(self, known, lambda target, known: _bytes(target) == known, _of_bytes)


def array_of(target) -> np.ndarray:
    """An array, or an array in the memory of a buffer; an empty one for a closed buffer."""
    if isinstance(target, np.ndarray):
        return target
    try:
        return np.asarray(memoryview(target))
    except ValueError:
        return np.zeros(0, np.uint8)


def _bytes(target) -> bytes:
    return array_of(target).tobytes()


def _of_bytes(target, known: bytes) -> dict:
    """The contents of an array with these bytes; its own where they are references."""
    if isinstance(target, bytearray):
        return {None: bytearray(known)}
    if isinstance(target, array.array):
        return {None: array.array(target.typecode, known)}
    target = array_of(target)
    is_plain = not target.dtype.hasobject
    return {None: np.frombuffer(known, target.dtype).reshape(target.shape) if is_plain else target}


class CellHolder(Holder):
    """A closure variable, by its name."""

    suffix = ""

    def contents(self, target):
        try:
            return {self.name: target.cell_contents}
        except ValueError:
            return {}

    mapping = contents

    def bind(self, target, name, value):
        target.cell_contents = value

    def unbind(self, target, name):
        del target.cell_contents


class ContextHolder(Holder):
    """A `contextvars.ContextVar`, by its name."""

    suffix = ""

    def contents(self, target):
        value = target.get(UNSET)
        return {} if value is UNSET else {target.name: value}

    mapping = contents

    def bind(self, target, name, value):
        target.set(value)

    def unbind(self, target, name):
        pass  # once it is set it cannot be unset


class FunctionHolder(Holder):
    """The defaults of a function."""

    def contents(self, target):
        return {"__defaults__": target.__defaults__, "__kwdefaults__": target.__kwdefaults__}

    mapping = contents

    def bind(self, target, name, value):
        setattr(target, name, value)


KINDS = (
    (dict, DictHolder),
    (types.MappingProxyType, ProxyHolder),
    (ContextVar, ContextHolder),
    ((list, deque), SequenceHolder),
    (set, SetHolder),
    (ArrayHolder.kinds, ArrayHolder),
    (types.CellType, CellHolder),
    (types.FunctionType, FunctionHolder),
    (type, ClassHolder),
)

CHOSEN_BY_TYPE = frozenset(holder for _, holder in KINDS)


def holder_of(target, name) -> Holder:
    """A snapshot of an object with state."""
    for kind, holder in KINDS:
        if isinstance(target, kind):
            return holder(target, name)
    return InstanceHolder(target, name)


def parts_of(target, name):
    """Yield the holders of the state of an object, as a container, as an instance, and as a
    function with variables: each as an object, its name and the kind of holder.
    """
    yield from [(target, name, holder) for kind, holder in KINDS if isinstance(target, kind)]
    if isinstance(target, types.FunctionType):
        yield from [(cell, variable, CellHolder) for variable, cell in named_cells(target)]
        yield target.__globals__, "", GlobalsHolder
    kind = type(target)
    if not isinstance(target, type) and (kind.__dictoffset__ or slots_of(kind)):
        yield target, name, InstanceHolder


class Place:
    """A name of a holder at which each call may find another object. `key`: identifies the place
    while the holder lives.
    """

    __slots__ = ("bind", "holder", "key", "mapping", "name")

    def __init__(self, holder, name):
        self.holder, self.name = holder.reference, name
        self.mapping, self.bind = holder.mapping, holder.bind
        self.key = id(holder.reference()), name

    def value(self):
        """What the name is bound to; UNSET where it is not."""
        target = self.holder()
        try:
            return UNSET if target is None else self.mapping(target)[self.name]
        except (KeyError, IndexError, AttributeError):
            return UNSET

    def put(self, value):
        target = self.holder()
        if target is not None:
            self.bind(target, self.name, value)
