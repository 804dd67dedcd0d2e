"""What a traced function reads from Python objects and sets in them, as modules, optimizers and
schedulers report it.
"""

from __future__ import annotations

import weakref

from ..tape.object_walk import UNSET
from .guards import AttributeValue, Guard, ObjectRead


class ObjectState:
    """The reads and writes of attributes that a scope records.

    parent: the record of the scope around, whose program depends on all of this as well.
    """

    def __init__(self, parent: ObjectState | None = None):
        self.parent = parent
        self.reads: dict[tuple, weakref.ref] = {}
        self.attributes: dict[tuple, _Attribute] = {}

    def guard(self, owner, read):
        """Guard on `read(owner)`: it must give what it gives at the end of the trace."""
        self.reads[id(owner), read] = weakref.ref(owner)
        if self.parent is not None:
            self.parent.guard(owner, read)

    def guard_attribute(self, owner, name: str):
        """Guard on the value that an attribute has now, unless the function set it before."""
        self._attribute(owner, name, getattr(owner, name))
        if self.parent is not None:
            self.parent.guard_attribute(owner, name)

    def record_set(self, owner, name: str, before=UNSET):
        """Record that the function sets an attribute: each call leaves it at the value that it has
        at the end of the trace. before: its value, for a trace that comes to nothing.
        """
        known = self._attribute(owner, name, UNSET)
        if not known.is_set:
            known.is_set, known.before = True, before
        if self.parent is not None:
            self.parent.record_set(owner, name, before)

    def put_back(self):
        """Give the attributes that were set the values of before."""
        for each in self.attributes.values():
            if each.before is not UNSET and each.owner() is not None:
                object.__setattr__(each.owner(), each.name, each.before)

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

    def guards(self, exchanged: dict[int, int]) -> list[Guard]:
        """exchanged: by id the numbers of the captured tensors in whose place a call may have
        others.
        """
        reads = [(read, owner, owner()) for (_, read), owner in self.reads.items()]
        guards = [
            ObjectRead(owner, read, read(each))
            if id(each) not in exchanged
            else TensorRead(exchanged[id(each)], read, read(each))
            for read, owner, each in reads
            if each is not None
        ]
        guards += [
            AttributeValue(each.owner, each.name, each.value)
            for each in self.attributes.values()
            if each.value is not UNSET and each.owner() is not None
        ]
        return guards

    def final_values(self) -> list[tuple]:
        """Weak references to owners, names and values of the attributes that the function set."""
        attributes = [each for each in self.attributes.values() if each.is_set]
        return [
            (each.owner, each.name, getattr(each.owner(), each.name))
            for each in attributes
            if each.owner() is not None
        ]


class TensorRead(Guard):
    """What `read` gives for the captured tensor of a number."""

    __slots__ = ("number", "read", "value")

    def __init__(self, number: int, read, value):
        self.number, self.read, self.value = number, read, value

    def check(self, leaves, tensors):
        return self.read(tensors[self.number]) == self.value

    def reason(self, leaves, tensors):
        name = self.read.__name__.strip("_").removesuffix("_of").replace("_", " ")
        found = self.read(tensors[self.number])
        return f"the {name} of a tensor was {self.value}, and is {found}"


class _Attribute:
    """An attribute that the function reads or sets. `value`: what it was where it was read before
    it was set, else UNSET; `before`: what it was when it was set.
    """

    __slots__ = ("before", "is_set", "name", "owner", "value")

    def __init__(self, owner, name, value):
        self.owner, self.name, self.value = weakref.ref(owner), name, value
        self.is_set, self.before = False, UNSET
