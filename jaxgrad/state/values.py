"""When two values are the same one to a program: plain values by what is computed with them, other
objects by identity or by the equality of their class.
"""

from __future__ import annotations

import enum
import functools
import weakref
from collections import deque

from .ownership import HEAP_TYPE, is_of_library, is_value_class

PLAIN = (int, float, complex, str, bytes, bool, type(None))


def exact(value) -> tuple:
    """A value as a key. 1, 1.0 and True are equal, and so are 0.0 and -0.0, and NaN equals nothing;
    what is computed with them differs, and does not differ from one NaN to the next.
    """
    kind = type(value)
    if kind is complex or (kind is float and not (value > 0 or value < 0)):
        return kind, repr(value)
    return kind, value


def is_same_plain_value(value, known) -> bool:
    """Whether a value is the known object, or an equal number, text or tuple of them."""
    if value is known:
        return True
    if type(value) is not type(known):
        return False
    if type(known) is tuple:
        return len(value) == len(known) and all(map(is_same_plain_value, value, known))
    return isinstance(known, PLAIN) and exact(value) == exact(known)


def show_change(name, known, value) -> str:
    """How a binding differs from the known one."""
    if isinstance(known, PLAIN) and isinstance(value, PLAIN):
        return f"{name} was {known!r}, and is {value!r}"
    return f"{name} is bound to something else"


class Identity:
    """An argument that is the same as no other object, though it may equal some. Kept weakly where
    its class allows that, so that it may go, with the tensors that it holds.
    """

    __slots__ = ("number", "reference")

    def __init__(self, value):
        self.number = id(value)
        self.reference = weakref.ref(value) if type(value).__weakrefoffset__ else lambda: value

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        if not isinstance(other, Identity) or self.number != other.number:
            return False
        # another object may have the number of one that is gone
        value = self.reference()
        return value is not None and value is other.reference()


def weak_key(value):
    """A weak reference that equals those to the same object, and no other one."""
    kind = type(value)
    # a weak reference is compared in C, as its object is: by identity, in such a class
    by_identity = kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    return weakref.ref(value) if by_identity and kind.__weakrefoffset__ else Identity(value)


@functools.lru_cache(maxsize=4096)
def is_compared(kind: type) -> bool:
    """Whether equal instances of a class are the same to a function. A class of the user may
    compare less than all that the function reads. False too where only the same object is equal.
    """
    if kind.__hash__ is None:
        # an array is refused; an object is guarded by its attributes or elements
        is_guarded = kind.__flags__ & HEAP_TYPE or kind.__dictoffset__ or kind in (set, deque)
        return not is_guarded
    by_value = is_value_class(kind) or issubclass(kind, enum.Enum | tuple)
    return by_value or (kind.__hash__ is not object.__hash__ and is_of_library(kind.__module__))
