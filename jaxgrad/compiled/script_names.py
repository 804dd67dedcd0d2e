"""The names of torch.jit besides the compiler itself: here they leave functions as they are."""

from __future__ import annotations

import builtins
import contextlib
import types
import typing

from .future import Future


def script(obj, *args, **kwargs):
    """Return a function, class or module as it is. PyTorch's other arguments have no effect."""
    return obj


def mark(fn=None, **kwargs):
    """Return a function as it is: nothing is left out, since nothing is parsed.

    >>> @jaxgrad.compiler.allow_in_graph
    ... def double(x):
    ...     return x * 2
    >>> double(jaxgrad.ones(2))
    tensor([2., 2.])
    """
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
    """Return whether an object is of a class, or of a type of typing such as `List[int]`, by its
    elements; of a tuple of these, whether it is of one of them.

    >>> from typing import Dict, List
    >>> jaxgrad.jit.isinstance([1, 2], List[int]), jaxgrad.jit.isinstance({"a": 1}, Dict[str, str])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(is_instance(obj, kind) for kind in target_type)
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if origin in (typing.Union, types.UnionType):
        return is_instance(obj, inner)
    if origin is None or not inner:
        return builtins.isinstance(obj, origin or target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is tuple:
        return len(obj) == len(inner) and all(map(is_instance, obj, inner))
    parts = zip((obj, obj.values()) if origin is dict else (obj,), inner, strict=False)
    return all(is_instance(element, kind) for part, kind in parts for element in part)


class Attribute(typing.NamedTuple):
    """A value with the type that PyTorch's scripts give it."""

    value: typing.Any
    type: typing.Any


def fork(func, *args, **kwargs) -> Future:
    """Return a `Future` with the result of a call, which is made here and now.

    >>> jaxgrad.jit.wait(jaxgrad.jit.fork(lambda x: x * 2, jaxgrad.ones(1)))
    tensor([2.])
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future):
    """Return the result of a `Future`."""
    return future.wait()


class Error(RuntimeError):
    """The class of errors in PyTorch's scripts, which nothing raises here."""


class ScriptWarning(Warning):
    """The class of warnings about PyTorch's scripts, which nothing gives here."""


class TracerWarning(Warning):
    """The class of warnings about PyTorch's tracer, which nothing gives here."""

    @staticmethod
    def ignore_lib_warnings():
        """Do nothing."""


def _nothing(*args, **kwargs):
    """Do nothing: XLA fuses operators."""


def onednn_fusion_enabled() -> bool:
    """Return False: XLA fuses operators."""
    return False


def export_opnames(m) -> list[str]:
    """Return an empty list: a function that is not scripted has no list of operators."""
    return []


NAMES = {
    **dict.fromkeys(["script_if_tracing", "interface", "export", "unused"], script),
    **dict.fromkeys(
        ["script_method", "_overload", "_overload_method", "_script_if_tracing"], script
    ),
    "run_frozen_optimizations": _nothing,
    "ignore": mark,
    "is_scripting": is_scripting,
    "is_tracing": is_tracing,
    "annotate": annotate,
    "isinstance": is_instance,
    "Final": typing.Final,
    "Attribute": Attribute,
    **{"Future": Future, "fork": fork, "wait": wait},
    **{"Error": Error, "ScriptWarning": ScriptWarning, "TracerWarning": TracerWarning},
    "TracingCheckError": Error,
    **{"enable_onednn_fusion": _nothing, "onednn_fusion_enabled": onednn_fusion_enabled},
    "set_fusion_strategy": _nothing,
    **dict.fromkeys(["strict_fusion", "optimized_execution", "fuser"], contextlib.nullcontext),
    "export_opnames": export_opnames,
    "annotations": types.SimpleNamespace(
        **{name: getattr(typing, name) for name in ("Any", "Dict", "List", "Optional", "Tuple")},
        **dict.fromkeys(("BroadcastingList1", "BroadcastingList2", "BroadcastingList3"), list),
    ),
    "__path__": [],  # as of a package
}
