"""Classes and functions that files may name, as users allow them: those are called."""

from __future__ import annotations

import re

from ..names.not_provided import path_in_pytorch

# the attributes in which the classes of quantized and nested tensors keep what they are
INTERNAL = frozenset(("_dtype", "_scale", "_zero_point", "_axis", "_length", "_ragged", "_places"))

# the codes of NumPy's types that files name
NUMPY_TYPE = re.compile(r"[|<=]?(b1|[iu][1248]|f[248]|c(8|16))")

_allowed: dict[str, object] = {}


def add_safe_globals(safe_globals: list):
    """Let files hold instances of these classes and results of these functions.

    safe_globals: classes and functions, or pairs of one and its full name in files. A file chooses
    the arguments that they are called with, and the attributes of the instances: allow what does no
    harm with any. NumPy's arrays and Python's containers need no permission.

    >>> import argparse
    >>> jaxgrad.serialization.add_safe_globals([argparse.Namespace])
    >>> jaxgrad.serialization.get_safe_globals()
    [<class 'argparse.Namespace'>]
    >>> jaxgrad.serialization.clear_safe_globals()
    """
    _allowed.update(_named(safe_globals))


def get_safe_globals() -> list:
    """Return what `add_safe_globals` has allowed.

    >>> jaxgrad.serialization.get_safe_globals()
    []
    """
    return list(dict.fromkeys(_allowed.values()))


def clear_safe_globals():
    """Allow none of what `add_safe_globals` has allowed.

    >>> jaxgrad.serialization.clear_safe_globals()
    """
    _allowed.clear()


class safe_globals:
    """A block in which files may hold instances of further classes.

    safe_globals: as for `add_safe_globals`.

    >>> import argparse, io
    >>> file = io.BytesIO()
    >>> with jaxgrad.serialization.safe_globals([argparse.Namespace]):
    ...     jaxgrad.save(argparse.Namespace(epochs=3), file, format="pt")
    ...     _ = file.seek(0)
    ...     print(jaxgrad.load(file))
    Namespace(epochs=3)
    """

    def __init__(self, safe_globals: list):
        self.added, self.before = _named(safe_globals), {}

    def __enter__(self):
        self.before = dict(_allowed)
        _allowed.update(self.added)

    def __exit__(self, *exception):
        _allowed.clear()
        _allowed.update(self.before)


def safe_classes() -> dict[str, object]:
    """The classes that users allow, by their names in files."""
    return dict(_allowed)


def _named(safe_globals) -> dict[str, object]:
    if not isinstance(safe_globals, list | tuple):
        kind = type(safe_globals).__name__
        raise TypeError(f"safe_globals should be a list of classes, not {kind}")
    classes = {}
    for entry in safe_globals:
        allowed, name = entry if isinstance(entry, tuple) else (entry, None)
        if name is None and not hasattr(allowed, "__qualname__"):
            raise AttributeError(f"safe_globals: a class or a function, not {allowed!r}")
        classes[name or f"{allowed.__module__}.{allowed.__qualname__}"] = allowed
        if name is None and allowed.__module__.partition(".")[0] == "jaxgrad":
            classes[path_in_pytorch(allowed) or ""] = allowed
    return classes
