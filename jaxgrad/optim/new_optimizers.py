"""Optimizers that a traced function makes; they belong to the trace, as its tensors do.

They are neither inputs nor side effects of the program. So their options are plain values, their
schedulers step at once, and their state begins inside of the trace.
"""

from __future__ import annotations

import weakref

from ..tape import mode


def note_new(optimizer):
    """Note a new optimizer, if a function is being traced."""
    scope = mode.scope.get()
    if scope is not None:
        scope.memo.setdefault(note_new, weakref.WeakSet()).add(optimizer)


def is_new(optimizer) -> bool:
    """Whether the function that is being traced has made an optimizer."""
    scope = mode.scope.get()
    return scope is not None and optimizer in scope.memo.get(note_new, ())


def scope_of(optimizer):
    """The scope to which an optimizer reports what is read and set; None for a new one."""
    return None if is_new(optimizer) else mode.scope.get()
