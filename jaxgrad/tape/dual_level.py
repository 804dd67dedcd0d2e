"""The levels of forward mode, one for each nested derivative, and the tangents at them.

A level that begins later is nested inside the earlier ones. `make_dual` and `unpack_dual` use the
levels that the current context has entered (`entered`). Operators also propagate tangents at levels
of other threads, if their inputs have some.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import operator
import weakref

# the levels that the current context has entered, the outermost first
entered = contextvars.ContextVar("jaxgrad.forward_levels", default=())

# the levels that operators see: numbers from the first up to, and without, the second
window = contextvars.ContextVar("jaxgrad.forward_window", default=(0, math.inf))

# whether operators compute tangents
enabled = contextvars.ContextVar("jaxgrad.forward_enabled", default=True)

_next_number = itertools.count().__next__
_begun = weakref.WeakSet()  # the levels that have not ended
_was_begun = False  # whether a level was ever begun: quicker to check than the set


class Level:
    """One forward-mode derivative, from its beginning to `end`.

    holders: weak references to the `Tangents` that hold a tangent at this level.
    """

    __slots__ = ("__weakref__", "ended", "holders", "number")

    def __init__(self):
        global _was_begun
        self.number, self.holders, self.ended = _next_number(), set(), False
        _was_begun = True
        _begun.add(self)

    def end(self):
        """Remove all tangents at this level."""
        self.ended = True
        _begun.discard(self)
        # a copy: a holder that dies meanwhile removes its reference
        for reference in list(self.holders):
            held = reference()
            if held is not None:
                held.of.pop(self, None)
        self.holders.clear()

    def is_seen(self) -> bool:
        low, high = window.get()
        return low <= self.number < high


class Tangents:
    """The tangents of a root tensor: for each level a tensor of its shape and dtype.

    aval: the root's abstract value; steps: its position in the chain of views, None for the root
    of the chain.
    """

    __slots__ = ("__weakref__", "aval", "of", "steps")

    def __init__(self, aval, steps=None):
        self.aval, self.steps, self.of = aval, steps, {}

    def set(self, level: Level, value):
        """Set the tangent at `level`; no effect after the level ended; `None` clears it."""
        if value is None or level.ended:
            self.of.pop(level, None)
            return
        self.of[level] = value
        # the callback drops the reference with its holder, so a long level collects no dead ones
        level.holders.add(weakref.ref(self, level.holders.discard))

    def seen(self) -> list[Level]:
        """The levels with a tangent that the current context sees, the outermost first."""
        return in_order([level for level in tuple(self.of) if level.is_seen()])


def in_order(levels) -> list[Level]:
    """The levels, sorted from the outermost to the innermost."""
    return sorted(levels, key=_number) if len(levels) > 1 else list(levels)


_number = operator.attrgetter("number")


def is_any_begun() -> bool:
    """Whether any level is active, in this or another thread."""
    return _was_begun and bool(_begun)


def see_below(level: Level):
    """Hide a level and those nested inside it from operators; returns the token for `window`."""
    return window.set((window.get()[0], level.number))


def hide():
    """Hide all levels that exist now from operators; returns the token for `window`."""
    # numbers only grow, so a new one parts the levels that exist from those to come
    return window.set((_next_number(), math.inf))
