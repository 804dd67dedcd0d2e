"""Tracebacks that show the user's lines and leave out the frames of jaxgrad and JAX.

A function that users call ends with

    except Exception as error:
        hide_frames(error)
        raise

A `try` costs nothing until something raises, and a bare `raise` adds no frame. So hot functions
have these lines in place. Other functions use the decorator `shows_users_frames`, which costs a
call.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

import jax

from ..late import LateModule
from ..state.ownership import is_internal, root
from .jax_internals import names_tracer

out_of_memory = LateModule("jaxgrad.core.out_of_memory")

P, R = ParamSpec("P"), TypeVar("R")

_FILTERED, _FULL = "filtered", "full"

# libraries whose frames are hidden if jaxgrad calls them, like those of the standard library
_HELPERS = frozenset(["numpy", "ml_dtypes", "opt_einsum"])
_STDLIB = sysconfig.get_paths()["stdlib"]


def _initial_mode() -> str:
    mode = os.environ.get("JAXGRAD_TRACEBACKS", _FILTERED)
    if mode not in (_FILTERED, _FULL):
        raise ValueError(f"JAXGRAD_TRACEBACKS is {mode!r}: set it to {_FILTERED!r} or {_FULL!r}")
    return mode


_filters = _initial_mode() == _FILTERED


class set_traceback_filtering:
    """Choose whether tracebacks leave out the frames of jaxgrad and JAX; also a context manager.

    enabled: True hides these frames, which is the default; False shows them. The environment
    variable `JAXGRAD_TRACEBACKS=full` shows them from the start. JAX removes its own frames by
    itself: `JAX_TRACEBACK_FILTERING=off` shows these, and those of jaxgrad too.

    The frames of your code stay, in order, also in functions that jaxgrad calls, such as hooks, the
    `forward` of modules and compiled functions. The lines of a table of derivatives stay too.

    >>> with jaxgrad.set_traceback_filtering(False):
    ...     print(jaxgrad.ones(2) + jaxgrad.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, enabled: bool):
        global _filters
        self.before, _filters = _filters, bool(enabled)

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        global _filters
        _filters = self.before


def hide_frames(error: BaseException):
    """Remove the frames of jaxgrad and JAX from the tracebacks of an exception and its causes. One
    of JAX for want of memory gets PyTorch's class and words.
    """
    if type(error) is jax.errors.JaxRuntimeError:
        out_of_memory.mark(error)
    if not _filters or jax.config.jax_traceback_filtering == "off":
        return
    seen, chain = set(), [error]
    while chain:
        error = chain.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        error.with_traceback(_filtered(error.__traceback__))
        _replace_note(error)
        _explain_tracer(error)
        context = _users_context(error)
        if context is not error.__context__:  # an exception may refuse assignments
            error.__context__ = context
        chain += [error.__cause__, error.__context__]


_HOW = (
    "A function that JAX transforms, as by jax.grad, gets JAX's tracers: jaxgrad.to_jax(function) "
    "gives it tensors in their place."
)


def _explain_tracer(error: BaseException):
    """Add a note to an error that refuses a tracer of JAX as a tensor."""
    notes = getattr(error, "__notes__", ())
    if type(error) is TypeError and _HOW not in notes and names_tracer(str(error)):
        error.add_note(_HOW)


def shows_users_frames(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with `hide_frames` applied to its exceptions."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return call


def _filtered(trace: TracebackType | None) -> TracebackType | None:
    kept, hidden = [], False
    while trace is not None:
        hidden = _is_hidden(trace.tb_frame, hidden)
        if not hidden:
            kept.append(trace)
        trace = trace.tb_next
    traceback = None
    for entry in reversed(kept):
        traceback = TracebackType(traceback, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return traceback


def users_stacklevel() -> int:
    """The `stacklevel` with which `warnings.warn`, called beside this, shows the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and is_internal(frame):
        frame, level = frame.f_back, level + 1
    return level


def users_line(lines) -> tuple[str, int] | None:
    """The first of some pairs of a file and a line that is neither jaxgrad's nor JAX's.

    >>> import jax
    >>> from jaxgrad.core.tracebacks import users_line
    >>> users_line([(jax.__file__, 3), ("<stdin>", 1)])
    ('<stdin>', 1)
    """
    folders = [os.path.dirname(sys.modules[name].__file__) for name in ("jax", "jaxlib", "jaxgrad")]
    folders += sys.modules["jaxgrad.rules"].__path__
    hidden = tuple(os.path.join(folder, "") for folder in [*folders, _STDLIB])
    outside = (line for line in lines if not line[0].startswith(hidden))
    return next((line for line in outside if not line[0].endswith(".yaml")), None)


def _is_hidden(frame: FrameType, caller_is_hidden: bool) -> bool:
    if is_internal(frame) or not caller_is_hidden:
        return is_internal(frame)
    package = root(frame)
    is_python = package in sys.stdlib_module_names and frame.f_code.co_filename.startswith(_STDLIB)
    return is_python or package in _HELPERS


def _users_context(error):
    """The nearest `__context__` of `error` that the user's code raised; skips errors that jaxgrad
    and JAX raised and handled.
    """
    context = error.__context__
    while context is not None and _filtered(context.__traceback__) is None:
        context = context.__context__
    return context


# JAX's note on exceptions from which it removed frames
_JAX_NOTE = "JAX has removed its internal frames"
_NOTE = "Set JAXGRAD_TRACEBACKS=full and JAX_TRACEBACK_FILTERING=off to see all frames."


def _replace_note(error):
    notes = getattr(error, "__notes__", ())
    if any(_JAX_NOTE in note for note in notes):
        error.__notes__ = [note for note in notes if _JAX_NOTE not in note and note != _NOTE]
        error.add_note(_NOTE)
