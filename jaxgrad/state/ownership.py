"""Whether code belongs to the user, to an installed library, to Python or to the package of the
tensors; and which classes have instances that hold the user's state.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import threading
from pathlib import Path
from types import FrameType, ModuleType

# packages whose objects are entered by no walk: they tell of the user's state themselves
CLOSED = ("jax", "jaxgrad", "jaxlib", "numpy", "builtins", "torch")
# where jaxgrad has classes like those of users
_PLAIN = ("jaxgrad.amp.", "jaxgrad.distributions.", "jaxgrad.nn.attention.", "jaxgrad.utils.data.")

INTERNAL = ("jaxgrad", "jax", "jaxlib")

# modules of Python whose instances hold the user's data, and the user's own script
_DATA = {"__main__", "_weakrefset", "argparse", "array", "collections", "types", "weakref"}

HEAP_TYPE = 1 << 9  # of the flags of a class: defined by code in Python, or as if it were
_IMMUTABLE_TYPE = 1 << 8


# ---- code


def root(frame: FrameType) -> str:
    """The package that a frame runs code of."""
    # a compiled formula has no __name__, so the lines of a table are never hidden
    return frame.f_globals.get("__name__", "").partition(".")[0]


def is_internal(frame: FrameType) -> bool:
    """Whether a frame runs code of jaxgrad or JAX."""
    return root(frame) in INTERNAL


def is_internal_module(name: str) -> bool:
    """Whether a Python module is part of jaxgrad or JAX."""
    return name.partition(".")[0] in INTERNAL


@functools.lru_cache(maxsize=4096)
def is_of_library(module: str | None) -> bool:
    """Whether a Python module belongs to Python, or was installed."""
    if not isinstance(module, str):  # of classes in C
        return True
    package = module.partition(".")[0]
    if package == "__main__":  # among the names of Python's own modules
        return False
    if package in CLOSED or package in sys.stdlib_module_names:
        return True
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    # those of other environments are in the path too, as with --system-site-packages
    is_installed = not _INSTALLED.isdisjoint(Path(path).parts)
    paths = sysconfig.get_paths()
    return is_installed or path.startswith((paths["purelib"], paths["platlib"]))


_INSTALLED = frozenset(["site-packages", "dist-packages"])


def is_of_python(target: type | ModuleType) -> bool:
    """Whether a class or a module belongs to Python or NumPy."""
    module = str(target.__module__ if isinstance(target, type) else target.__name__)
    return module.partition(".")[0] in (*sys.stdlib_module_names, "numpy")


# ---- classes


def is_closed(kind: type, but=()) -> bool:
    """Whether a class belongs to Python, NumPy, JAX or jaxgrad: its instances are not observed.

    Locks, queues and files are such instances; other threads change their state during a trace.
    """
    module = str(kind.__module__)  # of some classes in C it is no text
    package = module.partition(".")[0]
    if module.startswith(_PLAIN) or package in but or kind is threading.local:
        return False
    return package in CLOSED or (package in sys.stdlib_module_names and package not in _DATA)


def is_observable(kind: type) -> bool:
    """Whether reads of the attributes of instances can be observed, which is not so for classes in
    C.
    """
    return bool(kind.__flags__ & HEAP_TYPE) and not kind.__flags__ & _IMMUTABLE_TYPE


@functools.lru_cache(maxsize=4096)
def is_value_class(kind: type) -> bool:
    """Whether instances are equal only if all attributes are equal, and the attributes never
    change: frozen dataclasses.
    """
    parameters = getattr(kind, "__dataclass_params__", None)
    return (
        parameters is not None
        and parameters.frozen
        and parameters.eq
        and all(field.compare for field in kind.__dataclass_fields__.values())
    )


def reported(kind: type):
    """The attributes whose reads a class reports by itself (capture/reports.py)."""
    return getattr(kind, "_reported", ())


def reported_when_set(kind: type):
    """The attributes that a class reports by itself when they are set."""
    return getattr(kind, "_reported_when_set", reported(kind))
