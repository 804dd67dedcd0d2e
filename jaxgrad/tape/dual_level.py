"""The levels of forward mode, each one derivative, and what holds tangents at them.

A level that was begun later is inside of one that was begun before. Which levels there are to be
made and unpacked is a matter of the context (`entered`): of a thread, of an asyncio task. Operators
see those of other threads too, where they get tensors that have tangents at them.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import operator
import weakref

# the levels that are entered here and now, the outermost first
entered = contextvars.ContextVar("jaxgrad.forward_levels", default=())

# the numbers of the levels that are seen here and now: from the first on, and below the second
window = contextvars.ContextVar("jaxgrad.forward_window", default=(0, math.inf))

# whether operators compute tangents, here and now
enabled = contextvars.ContextVar("jaxgrad.forward_enabled", default=True)

_next_number = itertools.count().__next__
_begun = weakref.WeakSet()  # the levels that have not ended
_was_begun = False  # whether there ever was one, which is quicker to ask


class Level:
    """One derivative that is being taken, until `end`.

    `holders`: weak references to all that holds tangents at it.
    """

    __slots__ = ("__weakref__", "ended", "holders", "number")

    def __init__(self):
        global _was_begun
        self.number, self.holders, self.ended = _next_number(), set(), False
        _was_begun = True
        _begun.add(self)

    def end(self):
        """Let nobody have a tangent at this level any longer."""
        self.ended = True
        _begun.discard(self)
        for reference in list(self.holders):
            held = reference()
            if held is not None:
                held.of.pop(self, None)
        self.holders.clear()

    def is_seen(self) -> bool:
        low, high = window.get()
        return low <= self.number < high


class Tangents:
    """The tangents of a root: by level a tensor of its shape and dtype.

    `aval`: the root's; `steps`: where among the views of its storage it stands, None at the
    beginning.
    """

    __slots__ = ("__weakref__", "aval", "of", "steps")

    def __init__(self, aval, steps=None):
        self.aval, self.steps, self.of = aval, steps, {}

    def set(self, level: Level, value):
        """The tangent at a level, of which nobody is to hear once it has ended; None for none."""
        if value is None or level.ended:
            self.of.pop(level, None)
            return
        self.of[level] = value
        level.holders.add(weakref.ref(self, level.holders.discard))

    def seen(self) -> list[Level]:
        """The levels of its tangents that are seen from here, the outermost first."""
        return in_order([level for level in tuple(self.of) if level.is_seen()])


def in_order(levels) -> list[Level]:
    """The outermost first."""
    return sorted(levels, key=_number) if len(levels) > 1 else list(levels)


_number = operator.attrgetter("number")


def is_any_begun() -> bool:
    """Whether there is a level that has not ended, be it in another thread."""
    return _was_begun and bool(_begun)


def see_below(level: Level):
    """Hide a level and those inside of it from the operators here; gives the token for `window`."""
    return window.set((window.get()[0], level.number))


def hide():
    """Hide all levels that there are from the operators here; gives the token for `window`."""
    return window.set((_next_number(), math.inf))
