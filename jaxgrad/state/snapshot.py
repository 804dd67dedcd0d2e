"""Snapshots: the contents of holders at the time when a walk met them."""

from __future__ import annotations

from .holder import CHOSEN_BY_TYPE, Holder, LeafHolder, holder_of


class Leaves:
    """The leaves of walks over state: objects such as tensors, whose values are no Python state. A
    caller defines its own.

    `kind`: the class of leaves; `opaque`: other classes whose instances hold no state; `holder`:
    the holder of the attributes that users set on a leaf.
    """

    kind: type | tuple = ()
    opaque: tuple[type, ...] = ()
    holder = LeafHolder

    def functions(self, leaf) -> list:
        """The functions that a leaf calls, such as hooks."""
        return []


class Snapshots:
    """The holders of state that a walk has met, with their contents before, and in `members` the
    ids of the leaves that modules hold.
    """

    def __init__(self, leaves: Leaves | None = None, on_new=lambda *_: None, on_met=lambda _: None):
        """on_new: called with each new holder and its object; on_met: with each value met."""
        self.holders: dict[tuple, Holder] = {}
        self.members: set[int] = set()
        self.leaves, self.on_new, self.on_met = leaves or Leaves(), on_new, on_met

    def get(self, target, kind=None) -> Holder | None:
        holder = self.holders.get(key_of(target, kind))
        # the id of an instance that is gone is used again
        return holder if holder is not None and holder.reference() is target else None

    def take(self, target, name, kind=None) -> Holder:
        holder = self.get(target, kind)
        if holder is None:
            holder = (kind or holder_of)(target, name)
            self.holders[key_of(target, kind)] = holder
            self.on_new(holder, target)
        return holder


def key_of(target, kind) -> tuple:
    """The key of a holder: the kind that follows from the type of the object needs no name."""
    return id(target), None if kind in CHOSEN_BY_TYPE else kind
