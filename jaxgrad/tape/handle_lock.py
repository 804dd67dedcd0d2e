"""The lock of threads that change what handles hold.

Some work leaves handles in between two states: a trace puts tracers into the handles of captured
tensors, and a compiled program deletes arrays that it overwrites before the handles get the new
ones. The thread at such work holds `lock` and is the `owner`. Other threads first take the arrays
that they need and then look for an owner: if there is one, they wait and take them again. An owner
counts the references to an array before it deletes it, so it sees those that were taken before.
"""

from __future__ import annotations

import contextlib
import threading
from threading import get_ident

lock = threading.RLock()


class _Owner:
    """`thread`: the identity of the thread that leaves handles in between two states, mostly None.
    The holder of the lock assigns it directly: a call could be interrupted.
    """

    __slots__ = ("thread",)


owner = _Owner()
owner.thread = None

# Seconds. Traces take less; a traced function that waits for a thread that reads waits forever.
PATIENCE = 600


@contextlib.contextmanager
def changing():
    """Be the owner inside of the block."""
    with lock:
        before, owner.thread = owner.thread, get_ident()
        try:
            yield
        finally:
            owner.thread = before


# has the attribute `helps` in a thread that runs code for the owner, which waits for it
_thread = threading.local()


class _PassingLock:
    """The lock for all threads except those that help the owner: these pass."""

    def acquire(self, *args, **kwargs):
        return getattr(_thread, "helps", False) or _held.acquire(*args, **kwargs)

    def release(self):
        if not getattr(_thread, "helps", False):
            _held.release()

    def __enter__(self):
        self.acquire()

    def __exit__(self, *error):
        self.release()


_held, _passing = lock, _PassingLock()
_helpers, _count = 0, threading.Lock()


@contextlib.contextmanager
def helping():
    """Run code in the block for which the thread with the lock may wait, such as a callback of its
    program.

    The code must use no tensors but its own: others may be in between two states.
    """
    global lock, _helpers
    if _held.acquire(blocking=False):
        try:
            yield
        finally:
            _held.release()
        return
    # the holder is in C code: no interrupt comes between two instructions of a `_PassingLock`
    with _count:
        _helpers += 1
        lock = _passing
    _thread.helps = True
    try:
        yield
    finally:
        _thread.helps = False
        with _count:
            _helpers -= 1
            if not _helpers:
                lock = _held


def is_owned_by_another() -> bool:
    """Whether another thread leaves handles in between two states."""
    if owner.thread is None or owner.thread == get_ident():
        return False
    return not getattr(_thread, "helps", False)


@contextlib.contextmanager
def settled():
    """Wait until no other thread is the owner; no thread becomes it inside of the block.

    Raises RuntimeError if that takes too long.
    """
    if not lock.acquire(timeout=PATIENCE):
        raise RuntimeError(
            f"waited {PATIENCE} s for another thread that traces or runs a compiled function with "
            "this tensor. A function that is compiled must not wait for a thread that reads the "
            "tensors that it uses"
        )
    try:
        yield
    finally:
        lock.release()


def wait():
    """Wait until no other thread is the owner."""
    with settled():
        pass
