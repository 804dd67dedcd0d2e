"""The names of torch.jit besides the compiler itself: here they leave functions as they are."""

from __future__ import annotations

import builtins
import types
import typing

from ..core.not_provided import not_provided


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


class Error(RuntimeError):
    """An error of PyTorch's interpreter of scripts, which is never raised."""


class TracerWarning(Warning):
    """A warning of PyTorch's tracer, which is never given."""


class strict_fusion:
    """A block that changes nothing: XLA fuses operators."""

    def __init__(self, *args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass


def set_fusion_strategy(strategy):
    """Do nothing: XLA fuses operators."""


def enable_onednn_fusion(enabled: bool):
    """Do nothing: XLA fuses operators."""


class Future:
    """A result that is there: `fork` computes it at once."""

    def __init__(self, value):
        self._value = value

    def wait(self):
        """Return the result."""
        return self._value

    value = wait

    def done(self) -> bool:
        """Return True."""
        return True


def fork(func, *args, **kwargs) -> Future:
    """Call a function, at once, and return its result as a future."""
    return Future(func(*args, **kwargs))


def wait(future: Future):
    """Return the result of a future."""
    return future.wait()


INSTEAD = "jaxgrad.jit(function) compiles it, jax.export saves programs"
_NOT_PROVIDED = (
    *("ScriptModule", "ScriptFunction", "RecursiveScriptModule", "CompilationUnit", "Attribute"),
    *("save", "load", "export_opnames", "jit_module_from_flatbuffer"),
)

NAMES = {
    **dict.fromkeys(["script", "script_if_tracing", "interface", "export", "unused"], script),
    **dict.fromkeys(
        ["script_method", "_overload", "_overload_method", "_script_if_tracing"], script
    ),
    **dict.fromkeys(["trace", "trace_module", "freeze", "optimize_for_inference"], trace),
    **dict.fromkeys(["strict_fusion", "optimized_execution", "fuser"], strict_fusion),
    "ignore": mark,
    "is_scripting": is_scripting,
    "is_tracing": is_tracing,
    "annotate": annotate,
    "isinstance": is_instance,
    "Final": typing.Final,
    "Error": Error,
    "TracerWarning": TracerWarning,
    "Future": Future,
    "fork": fork,
    "wait": wait,
    "set_fusion_strategy": set_fusion_strategy,
    "enable_onednn_fusion": enable_onednn_fusion,
    **{name: not_provided(f"torch.jit.{name}", INSTEAD) for name in _NOT_PROVIDED},
    "annotations": types.SimpleNamespace(
        **{name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple")},
        **dict.fromkeys(("BroadcastingList1", "BroadcastingList2", "BroadcastingList3"), list),
    ),
    "__path__": [],  # as of a package
}
