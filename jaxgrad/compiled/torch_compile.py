"""`torch.compile` of a function: its arguments, and the compiled function that it returns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from ..core.pytorch_tensors import type_name
from ..tape import mode as modes
from .jit import jit
from .traced_function import MOST_IN_A_ROW

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = ("inductor", "cudagraphs", "aot_eager", "eager", "tvm", "openxla")


def compiler(
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
    isolate_recompiles=False,
    shapes_spec=None,
) -> Callable:
    """The decorator that `jaxgrad.compile` returns for these arguments."""
    if dynamic not in (None, True, False):
        raise AssertionError(f"compile(): dynamic is a bool or None, not {dynamic!r}")
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile(): Either mode or options can be specified, but both can't be specified at "
            "the same time"
        )
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"compile(): options is a dict, not {type_name(options)}")
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    if backend is not None and not isinstance(backend, str):
        raise TypeError(
            f"compile(): backend={backend!r} would take a graph of PyTorch's, and XLA compiles "
            "here: leave it out"
        )
    if backend is not None and backend not in BACKENDS:
        raise RuntimeError(
            f"Invalid backend: {backend!r}, should be one of: {', '.join(BACKENDS)}; XLA compiles "
            "whichever it is"
        )
    if disable:
        return lambda function: function
    most = MOST_IN_A_ROW if recompile_limit is None else recompile_limit
    return functools.partial(_compiled, fullgraph=fullgraph, name=name, most=most)


def _compiled(function, *, fullgraph, name, most):
    # as flex_attention does: its programs serve functions of a kind, where a program around it
    # would be traced for each function among its arguments
    if getattr(function, "compiles_itself", False):
        return function
    compiled = jit(function, fallback=not fullgraph)
    compiled.most_in_a_row = most
    if name is not None:
        compiled.rename(name)
    return compiled


def disabled(function, reason: str | None = None):
    """A function that stays uncompiled: a caller that may run uncompiled cannot be traced through
    it, and so runs uncompiled.
    """
    name = getattr(function, "__name__", type(function).__name__)

    @functools.wraps(function, updated=())
    def call(*args, **kwargs):
        _refuse_disabled(name, reason)
        return function(*args, **kwargs)

    return call


def _refuse_disabled(name, reason):
    """Raise RuntimeError in the trace of a function that can run uncompiled instead."""
    scope = modes.scope.get()
    while scope is not None and scope.parent is not None:
        scope = scope.parent
    if scope is not None and scope.can_fall_back:
        why = "" if reason is None else f" ({reason})"
        raise RuntimeError(f"it calls {name}, which torch.compiler.disable leaves uncompiled{why}")
