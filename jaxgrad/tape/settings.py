"""Settings that Python code may read, and set, while a compiled function is traced.

A program is right for the settings that its function read: `noted` makes each a guard. Those of the
process are attributes of `process`: what a function sets there, each call sets again. The grad mode
and others that the tape reads at every operator are part of the key of all programs instead
(capture/guards.py).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from . import mode


class ProcessSettings:
    """The settings of the process. No operator reads them."""

    def __init__(self):
        self.threads: int | None = None
        self.interop_threads: int | None = None
        self.debug_mode = 0  # of deterministic algorithms
        self.warn_always = False


process = ProcessSettings()


def get(name: str):
    """A setting of the process."""
    scope = mode.scope.get()
    if scope is not None:
        scope.objects.guard_attribute(process, name)
    return getattr(process, name)


def put(name: str, value):
    """Change a setting of the process."""
    scope = mode.scope.get()
    if scope is not None:
        scope.objects.record_set(process, name, getattr(process, name))
    setattr(process, name, value)


def _flag(name: str, value) -> property:
    """An attribute of a class that is a setting of the process."""
    setattr(process, name, value)
    return property(lambda _: get(name), lambda _, new: put(name, new))


def flags(name: str, **defaults):
    """An object whose attributes are settings of the process."""
    members = {flag: _flag(f"{name}.{flag}", value) for flag, value in defaults.items()}
    return type("Flags", (), {"__doc__": f"The settings of {name}."} | members)()


def make_flags(module_name: str, *names: str):
    """Make variables of a module settings of the process."""
    module = sys.modules[module_name]
    members = {name: _flag(f"{module_name}.{name}", getattr(module, name)) for name in names}
    module.__class__ = type("Module", (types.ModuleType,), members)


def noted(read: Callable[[Any], Any]):
    """What `read` gives, a setting of the current thread or task. It takes one argument, which it
    ignores.
    """
    scope = mode.scope.get()
    if scope is not None:
        scope.objects.guard(process, read)
    return read(process)
