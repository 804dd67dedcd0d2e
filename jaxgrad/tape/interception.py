"""Interception points: where a layer above takes part in what operators do.

A point is a function, or None while it is free: an operator compares it with None and pays nothing
else. `intercept` installs functions at points, `release` frees the points; both count, so that each
of several users may come and go in its own time.
"""

from __future__ import annotations

import threading
from collections import Counter

# Capture (capture/scope.py) follows tensors: `read(tensor)` before a tensor is used,
# `created(tensor)` once it is made, `grad(tensor, written)` when its `.grad` is read or assigned.
read = created = grad = None

# Autocast (ops/autocast.py): `arguments(operator, args, kwargs)` returns those to call it with.
arguments = None

# Forward mode (tape/dual.py): `tangents(program, inputs)` returns the program that computes the
# tangents too.
tangents = None

# Attributes of nodes (autograd/_engine/saved_tensor_hooks.py): `recording(program)` is called
# before a program is recorded for the first time.
recording = None

# Node annotations (tape/node_annotations.py): True while new nodes note anything.
annotations = None

# whether `read` or `arguments` is in use, which the fast paths of operators do not consult; whether
# `created` or `annotations` is
is_general = is_noted = False

_users: Counter[str] = Counter()
_lock = threading.Lock()


def intercept(**functions):
    """Install each function at the point of its name, for one more user."""
    with _lock:
        for point, function in functions.items():
            _users[point] += 1
            globals()[point] = function
        _update()


def release(*points: str):
    """Note that these points have one user less; a point without users is free."""
    with _lock:
        for point in points:
            _users[point] -= 1
            if not _users[point]:
                globals()[point] = None
        _update()


def _update():
    global is_general, is_noted
    is_general = read is not None or arguments is not None
    is_noted = created is not None or annotations is not None
