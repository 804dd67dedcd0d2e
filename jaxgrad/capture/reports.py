"""Reads and changes that objects report by themselves while a function is traced: modules,
optimizers, schedulers, settings.
"""

from __future__ import annotations

import weakref

from ..state.code import UNSET
from ..state.guards import AttributeValue, Guard, ObjectRead


class Reports:
    """The reads and writes of attributes that objects report during a trace.

    parent: the record of the trace around, whose program depends on all of these too.
    """

    def __init__(self, parent: Reports | None = None):
        self.parent = parent
        self.reads: dict[tuple, weakref.ref] = {}
        self.attributes: dict[tuple, _Attribute] = {}

    def guard(self, owner, read):
        """Guard on `read(owner)`: it must give the same result as at the end of the trace."""
        self.reads[id(owner), read] = weakref.ref(owner)
        if self.parent is not None:
            self.parent.guard(owner, read)

    def guard_attribute(self, owner, name: str):
        """Guard on the value that an attribute has now, unless the function set it before."""
        self._attribute(owner, name, getattr(owner, name))
        if self.parent is not None:
            self.parent.guard_attribute(owner, name)

    def record_set(self, owner, name: str, before=UNSET):
        """Record that the function sets an attribute: each call sets it to the value at the end of
        the trace. before: its earlier value, in case the trace is discarded.
        """
        known = self._attribute(owner, name, UNSET)
        if not known.is_set:
            known.is_set, known.before = True, before
        if self.parent is not None:
            self.parent.record_set(owner, name, before)

    def put_back(self):
        """Give the attributes that were set the values of before."""
        for attribute in self.attributes.values():
            if attribute.before is not UNSET and attribute.owner() is not None:
                object.__setattr__(attribute.owner(), attribute.name, attribute.before)

    def is_set(self, owner, name: str) -> bool:
        """Whether the function has set an attribute."""
        known = self.attributes.get((id(owner), name))
        return known is not None and known.is_set

    def _attribute(self, owner, name, value) -> _Attribute:
        known = self.attributes.get((id(owner), name))
        # the id of an object that is gone is used again
        if known is None or known.owner() is not owner:
            known = self.attributes[id(owner), name] = _Attribute(owner, name, value)
        return known

    # Objects that are gone when the trace has ended were created by it: they need no guard.

    def guards(self, guard_of=ObjectRead) -> list[Guard]:
        """The guards on the reported reads. guard_of: makes a guard of an owner, a function that
        reads it, and the result.
        """
        reads = [(owner, read, owner()) for (_, read), owner in self.reads.items()]
        guards = [
            guard_of(owner, read, read(alive)) for owner, read, alive in reads if alive is not None
        ]
        attributes = [one for one in self.attributes.values() if one.value is not UNSET]
        guards += [
            AttributeValue(attribute.owner, attribute.name, attribute.value)
            for attribute in attributes
            if attribute.owner() is not None
        ]
        return guards

    def final_values(self) -> list[tuple]:
        """Weak references to owners, names and values of the attributes that the function set."""
        return [
            (attribute.owner, attribute.name, getattr(attribute.owner(), attribute.name))
            for attribute in self.attributes.values()
            if attribute.is_set and attribute.owner() is not None
        ]


class _Attribute:
    """An attribute that the function reads or sets. `value`: its value if it was read before it was
    set, else UNSET; `before`: its value when it was set.
    """

    __slots__ = ("before", "is_set", "name", "owner", "value")

    def __init__(self, owner, name, value):
        self.owner, self.name, self.value = weakref.ref(owner), name, value
        self.is_set, self.before = False, UNSET
