"""Snapshots: the contents that holders of state had at some moment, compared with and put back."""

from __future__ import annotations

import contextlib

from .holder import Holder, LeafHolder, holder_of


class Leaves:
    """What walks over state know of leaves: objects such as tensors, whose values are no state of
    Python. A caller defines its own.

    `kind`: the class of leaves; `opaque`: other classes whose instances hold no state; `holder`:
    that of the attributes that users set on a leaf.
    """

    kind: type | tuple = ()
    opaque: tuple[type, ...] = ()
    holder = LeafHolder

    def functions(self, leaf) -> list:
        """The functions that a leaf calls, such as hooks."""
        return []


def _ignore(*_):
    pass


class Snapshots:
    """The holders of state that a walk has met, with their contents before, and in `members` the
    ids of the leaves that modules hold.
    """

    def __init__(self, leaves: Leaves | None = None, on_new=_ignore, on_met=_ignore):
        """on_new: called with each new holder and its object; on_met: with each value that a walk
        comes to.
        """
        self.holders: dict[tuple, Holder] = {}
        self.members: set[int] = set()
        self.leaves, self.on_new, self.on_met = leaves or Leaves(), on_new, on_met

    def get(self, target, kind=None) -> Holder | None:
        holder = self.holders.get((id(target), kind))
        # the id of an instance that is gone is used again
        return holder if holder is not None and holder.reference() is target else None

    def take(self, target, name, kind=None) -> Holder:
        holder = self.get(target, kind)
        if holder is None:
            holder = (kind or holder_of)(target, name)
            self.holders[id(target), kind] = holder
            self.on_new(holder, target)
        return holder


def _restore(holders):
    for holder in holders:
        holder.restore()


class SavedHolders:
    """The contents of holders, saved to be put back."""

    def all(self) -> list[Holder]:
        """The holders."""
        raise NotImplementedError(f"{type(self).__name__}.all")

    def now(self) -> list[Holder]:
        """Holders of what everything holds now, for `put_back`."""
        pairs = [(holder, holder.reference()) for holder in self.all()]
        return [type(holder)(target, holder.name) for holder, target in pairs if target is not None]

    def put_back(self, moment: list[Holder] | None = None):
        """Make everything what it was when it was saved, or at a later moment."""
        holders = moment or self.all()
        try:
            _restore(holders)
        except KeyboardInterrupt:
            _restore(holders)  # half of it would be a state in between
            raise

    @contextlib.contextmanager
    def put_back_after_errors(self):
        """Put everything back where the block fails, by an interrupt or a lack of memory too."""
        try:
            yield
        except BaseException:
            self.put_back()
            raise
