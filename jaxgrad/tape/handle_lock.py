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

# the identity of the thread that leaves handles in between two states; None for most of the time
owner = None

# Seconds. Traces take less; a traced function that waits for a thread that reads waits forever.
PATIENCE = 600


@contextlib.contextmanager
def changing():
    """Be the owner inside of the block."""
    global owner
    with lock:
        before, owner = owner, get_ident()
        try:
            yield
        finally:
            owner = before


def is_owned_by_another() -> bool:
    """Whether another thread leaves handles in between two states."""
    return owner is not None and owner != get_ident()


@contextlib.contextmanager
def settled():
    """Wait until no other thread is the owner; none becomes it inside of the block.

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
