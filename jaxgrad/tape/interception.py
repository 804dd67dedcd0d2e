"""Interception points: where a layer above takes part in what operators do.

A point is a function, or None while it is free: an operator compares it with None and pays nothing
else. `intercept` installs functions at points, `release` frees the points; both count, so that each
of several users may come and go in its own time. `watch` adds functions that only look on.

`Members` are for what has no points: members of `Tensor`, and of classes and modules of Python.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from typing import NamedTuple

from ..core import pending

# Capture (capture/scope.py) follows tensors: `read(tensor)` before a tensor is used,
# `created(tensor)` once it is made, `grad(tensor, written)` when its `.grad` is read or assigned,
# `moved(tensor, donor)` before it is given the memory of another one, `hooked(tensor)` before a
# hook of its gradient is registered.
read = created = grad = moved = hooked = None

# Autocast (ops/autocast.py): `arguments(operator, args, kwargs)` returns those to call it with.
arguments = None

# Classes and modes with a `__torch_function__` (tape/torch_function.py): `override(public, args,
# kwargs)` returns what one of them makes of a call of the function `public`, else NOT_OVERRIDDEN.
# The point is free until there is such a class or mode.
override = None

# Modes of `__torch_function__` (tape/torch_function.py): set while one is entered.
calls = None

# Dtypes that XLA lacks (frontend/half_complex.py, frontend/raw_bits.py): `lacking_dtype(function,
# args, kwargs, error)` is the result of a call that needs one, by the error that says so.
lacking_dtype = None

# Forward mode (tape/dual.py): `tangents(program, inputs)` returns the program that computes the
# tangents too.
tangents = None

# Attributes of nodes (autograd/_engine/saved_tensor_hooks.py): `recording(program)` is called
# before a program is recorded for the first time.
recording = None

# Node annotations (tape/node_annotations.py): True while new nodes note anything.
annotations = None

# Functions that are compiled as a whole once they are called often (func/shared_function.py):
# `repeated(function, arguments)` calls one, `passes(count)` is called before this many backward
# passes are recorded, one after the other.
repeated = passes = None

# whether `read`, `arguments` or `calls` is in use, which the fast paths of operators do not
# consult; whether `created` or `annotations` is
is_general = is_noted = False

_users: defaultdict[str, Counter] = defaultdict(Counter)
_installed: dict[str, Callable] = {}
_watchers: dict[str, list[Callable]] = {}
_lock = threading.Lock()


def intercept(user=None, **functions):
    """Install each function at the point of its name, for one more user, who may have a name."""
    with _lock:
        for point, function in functions.items():
            _users[point][user] += 1
            _installed[point] = function
        _update(functions)


def release(*points: str, user=None):
    """Note that these points have one user less; a point without users is free. For a named user a
    second call does nothing.
    """
    with _lock:
        for point in points:
            users = _users[point]
            if user is None and users[None] > 1:
                users[None] -= 1
            else:
                users.pop(user, None)
            if not users:
                _installed.pop(point, None)
        _update(points)


@contextmanager
def watch(**functions):
    """Call each function at the point of its name inside of the block, before the one installed
    there. Its result does not count.
    """
    with _lock:
        for point, function in functions.items():
            _watchers.setdefault(point, []).append(function)
        _update(functions)
    try:
        yield
    finally:
        with _lock:
            for point, function in functions.items():
                _watchers[point].remove(function)
            _update(functions)


def _update(points):
    global is_general, is_noted
    for point in points:
        functions = [*_watchers.get(point, ())]
        if point in _installed:
            functions.append(_installed[point])
        globals()[point] = _joined(functions) if functions[1:] else next(iter(functions), None)
    is_general = not (read is arguments is calls is None)
    is_noted = created is not None or annotations is not None
    pending.suspend(read is not None)


def _joined(functions):
    def call(*arguments):
        for function in functions:
            result = function(*arguments)
        return result

    return call


class _Member(NamedTuple):
    """`target`: the class or module that has it; `original`: None where there is none."""

    target: object
    name: str
    original: object
    stand_in: object
    is_inherited: bool

    def exchange(self, before, after):
        """Put something in the place of `before`, unless a program has replaced that."""
        inherited = self.original if self.is_inherited else None
        if vars(self.target).get(self.name, inherited) is not before:
            return
        if after is self.original and self.is_inherited:
            delattr(self.target, self.name)
        else:
            setattr(self.target, self.name, after)


class Members:
    """Members of classes and modules in whose place stand-ins are while there are users.

    An interrupt may leave some of them exchanged: the next user, or the end of the last, does the
    rest.
    """

    def __init__(self):
        self.members: list[_Member] = []
        self._users: set[int] = set()  # their ids
        self._lock = threading.Lock()

    def add(self, target, name: str, stand_in):
        """Let something stand for a member, which the target may inherit or lack."""
        is_inherited = name not in vars(target)
        original = getattr(target, name, None)
        self.members.append(_Member(target, name, original, stand_in, is_inherited))

    def replace(self, user):
        """Put the stand-ins in place, for one more user."""
        with self._lock:
            for member in self.members:
                member.exchange(member.original, member.stand_in)
            self._users.add(id(user))

    def restore(self, user):
        """End a use; without any, all is what it was."""
        with self._lock:
            self._users.discard(id(user))
            for member in () if self._users else self.members:
                member.exchange(member.stand_in, member.original)
