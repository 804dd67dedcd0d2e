"""Walks over Python objects, from some objects to everything that they hold; and when two values
are the same to a program: plain values by their contents, others by identity.

Capture looks for the tensors that a function can reach, checkpointing for the tensors that it must
put back, and the context of a Function for intermediate results.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import threading
import types
import weakref

from .code import full_cells
from .ownership import is_value_class

_CONTAINERS = (list, tuple, set, frozenset, collections.deque)


class ObjectWalk:
    """A depth-first walk over objects, which visits each of them once.

    Subclasses choose how far it goes: `opaque`: the types that it leaves out; `leaf`: the type
    whose instances hold only the attributes that users set on them; `most`: the number of objects
    after which it ends; `of_function` and `of_object`: the objects that it enters from a function,
    and from any other object.
    """

    opaque: tuple[type, ...] = ()
    leaf: type | tuple[type, ...] = ()
    most = 10_000

    def __init__(self):
        self.seen: dict[int, object] = {}

    def walk(self, *roots):
        """Yield the roots and everything reachable from them."""
        stack = [*reversed(roots)]
        while stack and len(self.seen) < self.most:
            value = referent(stack.pop())
            if id(value) in self.seen or isinstance(value, self.opaque):
                continue
            self.seen[id(value)] = value  # keeps it alive: a freed object's id is used again
            yield value
            stack.extend(self.contents(value))

    def contents(self, value):
        """The objects that an object holds."""
        if isinstance(value, self.leaf):
            return vars(value).values()
        # what the object holds, which a subclass with methods of its own may not show
        for kind in _CONTAINERS:
            if isinstance(value, kind):
                return kind.__iter__(value)
        if isinstance(value, dict):
            return dict.values(value)
        if isinstance(value, functools.partial):
            return value.func, *value.args, *value.keywords.values()
        if isinstance(value, types.MethodType):
            return value.__self__, value.__func__
        if isinstance(value, types.FunctionType):
            return self.of_function(value)
        return self.of_object(value)

    def of_function(self, function):
        return [cell.cell_contents for cell in full_cells(function)]

    def of_object(self, value):
        held = vars(value).values() if hasattr(value, "__dict__") else ()
        return [*held, *slot_values(value, slots_of(type(value))).values()]


# ---- what an object holds


def fixed_parts(values):
    """Yield the contents of tuples and frozen dataclasses among values, recursively."""
    for value in values:
        is_tuple = issubclass(type(value), tuple)  # isinstance asks what a proxy stands for
        if is_tuple or is_value_class(type(value)):
            yield from (parts := value if is_tuple else own_dict(value).values())
            yield from fixed_parts(parts)


def referent(value):
    """The object behind a `weakref.proxy`, None where it is gone; any other value is its own."""
    if type(value) not in weakref.ProxyTypes:
        return value
    try:
        return value.__init__.__self__
    except ReferenceError:
        return None


@functools.lru_cache(maxsize=1024)
def slots_of(kind: type) -> dict:
    """The slots of a class and its bases, by name."""
    return {
        name: member
        for base in reversed(kind.__mro__)
        if "__slots__" in vars(base)  # classes in C make some members anew at each read
        for name, member in vars(base).items()
        if type(member) is types.MemberDescriptorType
    }


def slot_values(target, slots: dict) -> dict:
    """The values of the slots of an instance, by name."""
    values = {}
    for name, slot in slots.items():
        try:
            values[name] = slot.__get__(target)
        except (AttributeError, TypeError):  # of another class by now
            continue
    return values


def own_dict(target) -> dict:
    """The attributes of an instance, without running code of its class."""
    try:
        return object.__getattribute__(target, "__dict__")
    except AttributeError:
        return vars(target) if type(target) is threading.local else {}


_ITERATIONS = dict.__iter__, collections.OrderedDict.__iter__


def dict_class(target: dict) -> type:
    """The built-in class of a dict, whose methods reach its items past those of its own class."""
    return collections.OrderedDict if isinstance(target, collections.OrderedDict) else dict


def own_items(target: dict) -> dict:
    """The items of a dict, without running code of its class."""
    kind = type(target)
    is_plain = kind.__getitem__ is dict.__getitem__ and kind.__iter__ in _ITERATIONS
    # where an item is missing, `__missing__` may add it
    is_plain &= not hasattr(kind, "__missing__")
    return target if is_plain else dict(dict_class(target).items(target))


def reference_to(target):
    """A weak reference; a strong one to what takes none. Both are called in C."""
    try:
        return weakref.ref(target)
    except TypeError:
        return functools.partial(operator.getitem, (target,), 0)


PLAIN = (int, float, complex, str, bytes, bool, type(None))


def exact(value) -> tuple:
    """A value as a key by which equal keys give equal computations. 1, 1.0 and True are different
    keys, and so are 0.0 and -0.0, while all NaN are one key.
    """
    kind = type(value)
    if kind is complex or (kind is float and not (value > 0 or value < 0)):
        return kind, repr(value)
    return kind, value


def is_same_plain_value(value, known) -> bool:
    """Whether a value is the known object, or an equal number, text or tuple of these."""
    if value is known:
        return True
    if type(value) is not type(known):
        return False
    if type(known) is tuple:
        return len(value) == len(known) and all(map(is_same_plain_value, value, known))
    is_plain = isinstance(known, PLAIN)
    if type(known) not in PLAIN:  # what code sets on a number of a user's class is state, too
        is_plain &= not (own_dict(value) or own_dict(known))
    return is_plain and exact(value) == exact(known)


def show_change(name, known, value) -> str:
    """How a binding differs from the known one."""
    if isinstance(known, PLAIN) and isinstance(value, PLAIN):
        # the text of a number may raise: that of a trace has no value to show
        with contextlib.suppress(Exception):
            return f"{name} was {known!r}, and is {value!r}"
    return f"{name} is bound to something else"
