"""Places: names of holders, at which each call may find another object."""

from __future__ import annotations

import weakref

from .code import UNSET
from .holder import SetHolder


class Place:
    """A name of a holder. `key`: tells it apart from others while the holder lives."""

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


# ---- the places that functions bind anew

_rebound: dict[tuple, weakref.ref] = {}


def note_rebound(holder, bound: dict, is_exchanged):
    """Note that a function binds names anew, for the programs of other functions: what they find
    there need not be what they were traced with. is_exchanged: whether each call may find another
    value in the place of a value.
    """
    target, kind = holder.reference(), type(holder)
    # the elements of a set are there or not, and no name has another one at each call
    for name, value in () if kind is SetHolder else bound.items():
        holder.rebound.add(name)
        if isinstance(holder.reference, weakref.ref) and is_exchanged(value):
            key = id(target), kind, name
            _rebound[key] = weakref.ref(target, lambda _, key=key: _rebound.pop(key, None))


def is_rebound(holder, name) -> bool:
    """Whether a function binds this name to something else at each call."""
    return name in holder.rebound or (id(holder.reference()), type(holder), name) in _rebound
