"""The names of torch.jit besides the compiler itself: here they leave functions as they are."""

from __future__ import annotations

import builtins
import typing

from ..core.not_provided import names_of


def script(obj, *args, **kwargs):
    """Return a function, class or module as it is. PyTorch's other arguments have no effect."""
    return obj


def trace(func, *args, **kwargs):
    """Return a function or module as it is. PyTorch's other arguments have no effect."""
    return func


def mark(fn=None, **kwargs):
    """Return a function as it is: nothing is left out, since nothing is parsed."""
    return fn if callable(fn) else script


def is_scripting() -> bool:
    """Return False: functions run as Python."""
    return False


def is_tracing() -> bool:
    """Return False: `jaxgrad.jit` compiles what the Python code computes, in place of a copy."""
    return False


def annotate(the_type, the_value):
    """Return the value."""
    return the_value


def is_instance(obj, target_type) -> bool:
    """Return whether an object is an instance of a class, or of one in a tuple."""
    return builtins.isinstance(obj, target_type)


_missing = names_of("jaxgrad.jit", "jaxgrad.jit(function) compiles it, jax.export saves programs")

NAMES = {
    **dict.fromkeys(["script", "script_if_tracing", "interface", "export", "unused"], script),
    **dict.fromkeys(["trace", "trace_module", "freeze", "optimize_for_inference"], trace),
    "ignore": mark,
    "is_scripting": is_scripting,
    "is_tracing": is_tracing,
    "annotate": annotate,
    "isinstance": is_instance,
    "Final": typing.Final,
    **{name: _missing(name) for name in ("ScriptModule", "ScriptFunction", "save", "load", "fork")},
}
