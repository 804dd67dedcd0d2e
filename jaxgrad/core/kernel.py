"""Kernels: a kernel computes the results of a program, and goes through several states.

The host makes the first calls, until XLA has compiled the kernel and takes over. The first call
traces the program. Later calls are deferred or run at once, and observers are called around each.
"""

from __future__ import annotations

import threading
import weakref

from . import aval as avals

# what the next call does
NEW, FIRST, NOTED, AT_ONCE, OBSERVED = "new", "first", "noted", "at once", "observed"

lock = threading.RLock()
in_use: weakref.WeakSet[Kernel] = weakref.WeakSet()  # those of eager calls


class Kernel:
    """Computes the results of a program.

    `call`: the function for callers, whose arrays may be pending: each change of the state replaces
    it; `state`: what a call does; `noted`: the abstract value of the single result, if a call is
    noted without further checks. `compute`: the function of arrays, with the checks of arrays and
    results; `unchecked`: the same without checks; `host`: makes the calls until XLA does, else
    None; `is_traced`: whether a call has traced it; `is_compiled`: whether XLA has compiled it, or
    is about to.
    """

    __slots__ = (
        "__weakref__",
        "call",
        "compute",
        "host",
        "is_compiled",
        "is_traced",
        "noted",
        "program",
        "state",
        "unchecked",
    )

    def __init__(self, program):
        self.program, self.state = program, NEW
        self.call = self.compute = self.unchecked = self.host = self.noted = None
        self.is_traced = self.is_compiled = False

    def use(self, compute):
        """Compute by another function from now on."""
        with lock:
            self.compute = compute
            if avals.is_concrete(self.program.mode):
                in_use.add(self)
                self.choose()
            else:
                self.state, self.call = AT_ONCE, compute

    def choose(self):
        """Choose what a call does, by the settings of eager calls and by observers."""
        self.state, self.call, self.noted = choice(self)

    def became_traced(self):
        """Let the calls that follow be noted."""
        self.is_traced = True
        with lock:
            self.choose()

    def copy_for(self, program) -> Kernel:
        """That of a program that computes the same."""
        copied = Kernel(program)
        for name in ("unchecked", "host", "is_traced", "is_compiled"):
            setattr(copied, name, getattr(self, name))
        copied.use(self.compute)
        return copied


# gives the state of a kernel, its call and what `noted` is; set by core/deferred.py
choice = None


def choose_by(function):
    """Let `function(kernel)` choose what the calls of kernels do."""
    global choice
    choice = function


def choose_all():
    """Choose anew what the calls of all kernels do."""
    with lock:
        for kernel in list(in_use):
            kernel.choose()


def renew_lock():
    """Replace the lock in a forked process, where a thread that is not in the copy may hold it."""
    global lock
    lock = threading.RLock()


def of(program, compute) -> Kernel:
    """The kernel of a program that is computed by a function as it is."""
    kernel = Kernel(program)
    kernel.use(compute)
    return kernel
