"""Guards: conditions on places under which the facts that a trace has used still hold, with
reasons.
"""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Sequence

from .code import UNSET
from .objects import fixed_parts, is_same_plain_value, show_change


class Guard:
    """A condition for a program to serve a call.

    `call`: the arguments that the caller passes to each of its guards; the guards of this package
    look at Python state alone.
    """

    __slots__ = ()
    is_performed = False  # whether a check of it draws, and so belongs to a call

    def has_expired(self) -> bool:
        """Whether it can never hold again."""
        return False

    def check(self, *call) -> bool:
        """Whether it holds."""
        raise NotImplementedError(f"{type(self).__name__}.check")

    def reason(self, *call) -> str:
        """Why it does not hold."""
        raise NotImplementedError(f"{type(self).__name__}.reason")

    def reinstate(self):
        """Put back the compared state for a replay; most guards compare state that a replay finds
        by itself.
        """

    def group(self):
        """A key that guards which can be checked together share; the guard itself if it cannot."""
        return self

    def merged(self, guards: list[Guard]):
        """One guard for those of a group, of which this is the first."""
        return self


class StateGuard(Guard):
    """The values of names in a holder: the same objects, or equal plain values.

    It keeps no instance alive. names: the compared names; None: all, in their order. `ignores` has
    the names for which the holder gives another object at each call.
    """

    def __init__(self, holder, names=None, ignores=()):
        before = holder.before
        self.name, self.holder, self.mapping = holder.name, holder.reference, holder.mapping
        self.is_sequence, self.kind = holder.is_sequence, type(holder)
        self.contents, self.make = holder.contents, holder.make
        # in the order of the contents, which a loop over them may depend on
        self.keys = list(before) if names is None else None
        wanted = before if names is None else names
        bound = [name for name in wanted if name in before and name not in ignores]
        self.absent = frozenset(wanted) - before.keys()
        weak = [name for name in bound if _is_weak(before[name], holder.has_elements)]
        self.weak = {name: weakref.ref(before[name]) for name in weak}
        self.strong = {name: before[name] for name in bound if name not in self.weak}
        self.read_weak, self.read_strong = getter(self.weak), getter(self.strong)
        self.references, self.values = tuple(self.weak.values()), tuple(self.strong.values())

    def check(self, *call):
        return self.holds(self.holder())

    def holds(self, target) -> bool:
        """Whether the names of an object have their known values."""
        if target is None:
            return False
        try:
            contents = self.mapping(target)
            if self.keys is not None and not self.has_keys(contents):
                return False
            if self.absent and any(map(contents.__contains__, self.absent)):
                return False
            same = all(map(operator.is_, self.read_weak(contents), map(_call, self.references)))
            values = self.read_strong(contents)
        except (KeyError, IndexError, AttributeError):
            return False
        return same and (
            all(map(operator.is_, values, self.values))
            or all(map(is_same_plain_value, values, self.values))
        )

    def has_expired(self) -> bool:
        """Whether an object is gone that must be in its place."""
        return any(reference() is None for reference in self.references)

    def objects(self) -> list:
        """The objects that must be in their places, including those in unchangeable values."""
        alive = [*map(_call, self.references)]
        return [*alive, *fixed_parts([*alive, *self.values])]

    def has_keys(self, contents) -> bool:
        if len(contents) != len(self.keys):
            return False
        # by identity first: keys may be tensors, whose `==` computes
        return (
            self.is_sequence
            or all(map(operator.is_, contents, self.keys))
            or (all(map(is_same_plain_value, contents, self.keys)))
        )

    def reason(self, *call):
        return self.reason_of(self.holder())

    def reason_of(self, target) -> str:
        """Why the guard does not hold for an object."""
        contents = {} if target is None else self.mapping(target)
        if self.keys is not None and not self.has_keys(contents):
            return f"{self.name} has other elements"
        changed = [
            show_change(self.label(name), known, value)
            for name, known, value in self.differences(target)
            if not is_same_plain_value(value, known)
        ]
        return "; ".join(changed) or f"{self.name} is gone"

    def label(self, name) -> str:
        """The text of a name in messages."""
        return name if isinstance(name, str) else f"{self.name}[{name!r}]"

    def differences(self, target):
        """Yield the names whose values differ, with the known and the present values."""
        known = self.strong | {name: reference() for name, reference in self.weak.items()}
        known |= dict.fromkeys(self.absent, UNSET)
        contents = {} if target is None else self.mapping(target)
        contents = dict(enumerate(contents)) if isinstance(contents, Sequence) else contents
        for name, value in known.items():
            if contents.get(name, UNSET) is not value:
                yield name, value, contents.get(name, UNSET)

    def reinstate(self):
        """Bind the names to what they were bound to when the guard was made, and no others."""
        target = self.holder()
        if target is None:
            return
        contents = self.contents(target)
        known = self.strong | {name: reference() for name, reference in self.weak.items()}
        # what is gone, and what each call finds anew, stays
        gone = {name for name in self.weak if known[name] is None}
        known = contents | {name: value for name, value in known.items() if name not in gone}
        names = known if self.keys is None else self.keys
        names = [name for name in names if name in known and name not in self.absent]
        self.make(target, {name: known[name] for name in names})


_call = operator.call


def getter(names):
    """A function that reads several names of a mapping as a tuple."""
    names = tuple(names)
    if not names:
        return lambda contents: ()
    if len(names) == 1:
        (name,) = names
        return lambda contents: (contents[name],)
    return operator.itemgetter(*names)


def _is_weak(value, is_element: bool) -> bool:
    """Whether a guard refers weakly to a value: instances may hold much memory, and so may the
    closures of functions that come and go as elements of containers.
    """
    kind = type(value)  # isinstance would ask a proxy for its object, which may be gone
    if issubclass(kind, types.FunctionType):
        return is_element and value.__closure__ is not None
    if issubclass(kind, type | types.ModuleType):
        return False
    return kind.__weakrefoffset__ != 0  # negative from Python 3.12 on


class ContentGuard(Guard):
    """The contents of a set or an array, compared by equality. contents: makes them from those of a
    holder.
    """

    __slots__ = ("contents", "holder", "is_same", "known", "make", "name")

    def __init__(self, holder, known, is_same, contents):
        self.holder, self.name, self.make = holder.reference, holder.name, holder.make
        self.known, self.is_same, self.contents = known, is_same, contents

    def reinstate(self):
        target = self.holder()
        if target is not None:
            self.make(target, self.contents(target, self.known))

    def check(self, *call):
        target = self.holder()
        return target is not None and self.is_same(target, self.known)

    def reason(self, *call):
        return f"{self.name} has other elements"


class BoundGuard(Guard):
    """Names that the function removes from a holder are bound, to any value."""

    __slots__ = ("holder", "mapping", "name", "names")

    def __init__(self, holder):
        self.name, self.holder, self.mapping = holder.name, holder.reference, holder.mapping
        self.names = tuple(holder.removed)

    def check(self, *call):
        target = self.holder()
        return target is not None and not self.missing(target)

    def missing(self, target) -> list:
        contents = self.mapping(target)
        return [name for name in self.names if name not in contents]

    def reason(self, *call):
        target = self.holder()
        names = self.names if target is None else self.missing(target)
        return f"{', '.join(map(str, names))} of {self.name}, which it removes, is not there"


class ObjectRead(Guard):
    """The result of `read(owner)`."""

    __slots__ = ("owner", "read", "value")

    def __init__(self, owner: weakref.ref, read, value):
        self.owner, self.read, self.value = owner, read, value

    def check(self, *call):
        owner = self.owner()
        return owner is not None and self.read(owner) == self.value

    def reason(self, *call):
        return f"the {type(self.owner()).__name__} that it uses has changed"


class AttributeValue(Guard):
    """The value of an attribute, compared by `is_same_plain_value`."""

    __slots__ = ("name", "owner", "value")

    def __init__(self, owner: weakref.ref, name: str, value):
        self.owner, self.name, self.value = owner, name, value

    def check(self, *call):
        # UNSET where the owner is gone: it is the same as no value
        value = getattr(self.owner(), self.name, UNSET)
        return value is self.value or is_same_plain_value(value, self.value)

    def reason(self, *call):
        owner = self.owner()
        value = getattr(owner, self.name, UNSET)
        return f"{self.name} of a {type(owner).__name__} was {self.value!r}, and is {value!r}"
