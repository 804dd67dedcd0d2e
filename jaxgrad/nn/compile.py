"""`torch.compile`: `jaxgrad.jit` with PyTorch's arguments, and the compiled form of a module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..compiled.jit import CompiledFunction
from ..compiled.torch_compile import compiler, disabled
from .module import Module
from .parameter import is_lazy

# attributes of the compiled function that an `OptimizedModule` has
_COMPILED = ("lower", "trace", "eval_shape", "explain", "traces", "count", "clear_cache")


class OptimizedModule(Module):
    """A module whose calls are compiled: `torch.compile(module)`.

    `_orig_mod`: the module itself, to which all other attributes belong, also those that are set.

    >>> layer = jaxgrad.compile(jaxgrad.nn.Linear(2, 3))
    >>> list(layer.state_dict()), layer.out_features
    (['_orig_mod.weight', '_orig_mod.bias'], 3)
    """

    def __init__(self, module: Module, make: Callable):
        """make: gives what is called, given the module."""
        super().__init__()
        self.__dict__.update(_make=make, _call=None)
        self._orig_mod = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._call is None and any(map(is_lazy, self._orig_mod.parameters())):
            return self._orig_mod(*args, **kwargs)  # which makes its parameters
        return self._called()(*args, **kwargs)

    def _called(self):
        attributes = self.__dict__
        if attributes["_call"] is None:
            attributes["_call"] = self._make(self._orig_mod)
        return attributes["_call"]

    # past `__getattr__`, which lets a trace guard on `training` of this module

    @property
    def training(self) -> bool:
        return self.__dict__["_modules"]["_orig_mod"].training

    @training.setter
    def training(self, value: bool) -> bool:
        self.__dict__["_modules"]["_orig_mod"].training = value

    def __getattr__(self, name):
        if name == "_orig_mod" or name not in _COMPILED:
            try:
                return super().__getattr__(name)
            except AttributeError:
                if "_orig_mod" not in self.__dict__.get("_modules", ()):
                    raise  # of a copy under construction
                return getattr(self._orig_mod, name)
        return getattr(self._called(), name)

    def __setattr__(self, name, value):
        if name == "_orig_mod":
            self.__dict__["_call"] = None
        if name == "_orig_mod" or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)  # also of a module without a length

    def __getstate__(self):
        return super().__getstate__() | {"_call": None}


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = None,
    mode: str | None = None,
    options: dict | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Compile a function or a module, as `jaxgrad.jit` does.

    model: a function, a method or a module; without it `compile` returns a decorator. Of a module
    it returns an `OptimizedModule`; of a class it compiles the calls of the instances, and returns
    the class; what is compiled already is compiled anew with these arguments.
    fullgraph: whether to raise where the function cannot be traced, such as at an `if` on a tensor;
    by default it runs uncompiled there, with a warning that names the line.
    name: the name in messages, HLO and profiles, by default that of the function.
    disable: whether to return the function as it is.
    recompile_limit: after how many traces in a row the function runs uncompiled for arguments of
    that kind, with a warning that says what changes; by default 8.

    The others are accepted and have no effect: XLA compiles for each shape, and chooses by itself
    what PyTorch's backends, modes and options choose. Raises AssertionError for a `model` that
    cannot be called; TypeError for a backend of one's own, which would take a graph of PyTorch's;
    RuntimeError for an unknown mode or backend, and for a mode together with options.

    >>> square = jaxgrad.compile(lambda x: x * x)
    >>> square(jaxgrad.tensor([3.0]))
    tensor([9.])
    """
    make = compiler(
        fullgraph=fullgraph,
        dynamic=dynamic,
        backend=backend,
        mode=mode,
        options=options,
        name=name,
        recompile_limit=recompile_limit,
    )

    def apply(model):
        return model if disable else _applied(make, model)

    return apply if model is None else apply(model)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Leave a function uncompiled, with all that it calls; also a decorator.

    fn: a function, a method, a module or a class, as for `compile`; of what is compiled already the
    original. A function compiled by `torch.compile` that calls it runs uncompiled itself, with a
    warning; one compiled in full (by `fullgraph=True`, or by `jaxgrad.jit`) takes it in.
    reason: is part of the warning. recursive: no effect.

    >>> @jaxgrad.compiler.disable
    ... def double(x):
    ...     return x * 2
    >>> double(jaxgrad.ones(1))
    tensor([2.])
    """
    make = functools.partial(disabled, reason=reason)
    return functools.partial(_applied, make) if fn is None else _applied(make, fn)


def _applied(make: Callable, model):
    """The result of `make` for a function, or for the calls of a module or of instances
    of a class.
    """
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided")
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Module):
        return OptimizedModule(model, make)
    if isinstance(model, type):
        if any("__call__" in vars(base) for base in model.__mro__):
            model.__call__ = called = make(model.__call__)
            if called.__name__ == "__call__" and isinstance(called, CompiledFunction):
                called.rename(model.__name__)
        return model
    return make(model.function if isinstance(model, CompiledFunction) else model)
