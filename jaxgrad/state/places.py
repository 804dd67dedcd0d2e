"""Places: names of holders, at which each call may find another object."""

from __future__ import annotations

from .code import UNSET


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
