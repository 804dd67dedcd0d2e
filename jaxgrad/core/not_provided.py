"""Modules of PyTorch that programs import and rarely use: their names say at a call that jaxgrad
does not provide them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path

from .missing_names import MissingName

NAMES = Path(__file__).parents[1] / "coverage" / "not_provided.tsv"

# The modules without a file here, each with what to use in its place.
INSTEAD = {
    "ao": "jax and its packages quantize arrays, for example qwix",
    "quantization": "jax and its packages quantize arrays, for example qwix",
    "export": "jax.export exports the functions that jaxgrad.to_jax makes",
    "futures": "concurrent.futures and asyncio have futures",
    "monitor": "jax.monitoring tells of events and durations",
    "nested": "pad the tensors by nn.utils.rnn.pad_sequence, and mask the padding",
    "package": "zip the code, and save the tensors by jaxgrad.save",
    "_custom_ops": "torch.library.custom_op defines operators",
    "_export": "jax.export exports the functions that jaxgrad.to_jax makes",
    "_higher_order_ops": "jaxgrad.cond, while_loop and scan are control flow",
    "_jit_internal": "jaxgrad.jit(function) compiles it",
    "_subclasses": "jax.eval_shape tells shapes without computing",
}


class _Named(type):
    """The class of the names that are not provided: a member of one is one too (`ReduceOp.SUM`)."""

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return not_provided(f"{cls.path}.{name}", cls.instead)


class NotProvided(metaclass=_Named):
    """A class or function of PyTorch that jaxgrad does not provide: nothing is an instance of it,
    and a call raises NotImplementedError. path: its name; instead: what to use in its place; why:
    the end of a sentence about it.
    """

    path = instead = why = ""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.path} is {cls.why}")

    def __class_getitem__(cls, parameters):
        return cls


@functools.cache
def not_provided(path: str, instead: str) -> type[NotProvided]:
    """The name of PyTorch at a path, as "torch.export.export"."""
    space, _, name = path.rpartition(".")
    known = {"path": path, "instead": instead, "why": f"not provided by jaxgrad: {instead}"}
    return type(name, (NotProvided,), {"__module__": space, **known})


@functools.cache
def _exception(path: str) -> type[Exception]:
    """A class of exceptions of PyTorch, which is never raised, for `except` and filters."""
    space, _, name = path.rpartition(".")
    base = Warning if name.endswith("Warning") else Exception
    told = f"""{'A warning' if base is Warning else 'An exception'} that jaxgrad never raises.

    >>> issubclass(jaxgrad{path.removeprefix("torch")}, {base.__name__})
    True
    """
    return type(name, (base,), {"__module__": space, "__doc__": told})


class NotProvidedModule(types.ModuleType):
    """A module of PyTorch whose names are not provided."""

    def __init__(self, own: str, instead: str):
        super().__init__(own, "A module of PyTorch that jaxgrad does not provide.")
        self.__path__, self.__spec__ = [], importlib.machinery.ModuleSpec(own, None)
        self.__getattr__, self.__dir__ = names_of(own, instead)


def names_of(own: str, instead: str) -> tuple[Callable, Callable]:
    """The `__getattr__` and the `__dir__` of a module of jaxgrad: what it does not define itself,
    and PyTorch has there, is not provided.

    own: the name of the module; instead: what to use.
    """
    path = f"torch{own.removeprefix('jaxgrad')}"

    def find(name):
        if f"{path}.{name}" in listed():
            return _module(f"{own}.{name}", instead)
        if name in listed().get(path, ()):
            return not_provided(f"{path}.{name}", instead)
        if f"{name}!" in listed().get(path, ()):
            return _exception(f"{path}.{name}")
        raise MissingName(own, name)

    def offered():
        inner = (name.removeprefix(f"{path}.") for name in listed() if name.startswith(f"{path}."))
        there = sys.modules.get(own)  # where the module has a file
        defined = (name for name in getattr(there, "__dict__", ()) if name[0] != "_")
        names = (name.removesuffix("!") for name in listed().get(path, ()))
        return sorted({*names, *(name for name in inner if "." not in name), *defined})

    return find, offered


@functools.cache
def _module(own: str, instead: str) -> types.ModuleType:
    # one that has a file provides some of the names
    package = own.rpartition(".")[0]
    has_files = hasattr(sys.modules.get(package), "__path__")
    if has_files and importlib.util.find_spec(own) is not None:
        return importlib.import_module(own)
    return NotProvidedModule(own, instead)


@functools.cache
def listed() -> dict[str, list[str]]:
    """The names in PyTorch's modules that are not provided, by module; exceptions end in "!"."""
    lines = NAMES.read_text().splitlines()[1:]
    return {path: names.split() for path, _, names in (line.partition("\t") for line in lines)}


def install():
    """Let the modules without a file be imported."""
    for name, instead in INSTEAD.items():
        own = f"jaxgrad.{name}"
        sys.modules.setdefault(own, NotProvidedModule(own, instead))
