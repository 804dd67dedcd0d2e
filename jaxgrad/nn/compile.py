"""`torch.compile`: `jaxgrad.jit` with PyTorch's arguments, and the module that it makes of one."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..capture.jit import jit
from .module import Module

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
BACKENDS = ("inductor", "cudagraphs", "aot_eager", "eager", "tvm", "openxla")


class OptimizedModule(Module):
    """A module whose calls are compiled: `torch.compile(module)`.

    `_orig_mod`: the module itself, to which all other attributes belong.

    >>> layer = jaxgrad.compile(jaxgrad.nn.Linear(2, 3))
    >>> list(layer.state_dict()), layer.out_features
    (['_orig_mod.weight', '_orig_mod.bias'], 3)
    """

    def __init__(self, module: Module, compiled: Callable):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_compiled", compiled)

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)


def compile(
    model: Callable | None = None, *, fullgraph: bool = False, dynamic: bool | None = None,
    backend: str | None = None, mode: str | None = None, options: dict | None = None,
    name: str | None = None, disable: bool = False, recompile_limit: int | None = None,
    isolate_recompiles: bool = False, shapes_spec=None,
):  # fmt: skip
    """Compile a function or a module, as `jaxgrad.jit` does.

    model: a function, a method or a module; without it `compile` returns a decorator. Of a module
    it returns an `OptimizedModule`.
    fullgraph: whether to raise where the function cannot be traced, such as at an `if` on a tensor;
    by default it runs uncompiled there, with a warning that names the line.
    disable: whether to return the function as it is.

    The others are accepted and have no effect: XLA compiles for each shape, and chooses by itself
    what PyTorch's backends, modes and options choose. Raises TypeError for a `model` that cannot be
    called and for a backend of one's own, which would take a graph of PyTorch's; RuntimeError for
    an unknown mode or backend, and for a mode together with options.

    >>> square = jaxgrad.compile(lambda x: x * x)
    >>> square(jaxgrad.tensor([3.0]))
    tensor([9.])
    """
    _check(model, backend, mode, options)
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, backend=backend, mode=mode, options=options,
            disable=disable,
        )  # fmt: skip
    if disable:
        return model
    compiled = jit(model, fallback=not fullgraph)
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled


def _check(model, backend, mode, options):
    if model is not None and not callable(model):
        raise TypeError(
            f"compile(): a callable function is expected, but {type(model)} is provided"
        )
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile(): either mode or options can be specified, but both can't be specified at "
            "the same time"
        )
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
