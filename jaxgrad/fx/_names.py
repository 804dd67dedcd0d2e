"""PyTorch's names of the functions and classes of jaxgrad, by which code of graphs calls them.

The code says `torch.nn.functional.relu` and `torch._C._nn.gelu`, as that of PyTorch does, and runs
where `torch` is jaxgrad.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import sys
import types
import typing
from pathlib import Path
from typing import NamedTuple

from ..names.pytorch import names_in
from ..tape.tensor import Tensor

CALLS = Path(__file__).parents[1] / "coverage" / "graph_calls.tsv"

# the modules of public functions and classes, in the order in which their names are looked for
_SPACES = (
    *("", ".nn.functional", ".linalg", ".fft", ".special", ".nn", ".nn.init", ".functional"),
    *(".utils.checkpoint", ".nn.utils", ".optim", ".distributions", ".func"),
)


class Form(NamedTuple):
    """The form of a function's calls in graphs of PyTorch. name: the name in the code; positional:
    the number of arguments by position; keywords: the names of the other arguments, in order, all
    with their values; None if a graph has them as the program writes them.
    """

    name: str
    positional: int | None
    keywords: tuple[str, ...]


@functools.cache
def forms() -> dict[str, Form]:
    """The calls that graphs have in another form than the program, by the public name."""
    lines = CALLS.read_text().splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {
        path: Form(name, int(count) if count else None, tuple(keywords.split()))
        for path, name, count, keywords in rows
    }


def torch_module() -> types.ModuleType:
    """The module `torch` of code: jaxgrad, under that name where programs import it so."""
    jaxgrad, known = sys.modules["jaxgrad"], sys.modules.get("torch")
    is_own = known is not None and known.__file__ == jaxgrad.__file__
    return known if is_own else jaxgrad


def is_own(value) -> bool:
    """Whether a function, class or value is one of jaxgrad's."""
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("jaxgrad", "torch")


def public_name(value) -> str | None:
    """PyTorch's public name of a function or class of jaxgrad; None for others."""
    if not is_own(value):
        return None
    if value is Tensor:
        return "torch.Tensor"
    try:
        return _public_name(value)
    except TypeError:  # it has no hash
        return None


@functools.cache
def _public_name(value):
    name = getattr(value, "__name__", "")
    for space in _SPACES:
        path, module = f"torch{space}", importlib.import_module(f"jaxgrad{space}")
        if name in names_in(path) and getattr(module, name, None) is value:
            return f"{path}.{name}"
    for space in _SPACES:  # an alias: it is kept in the module since its first use
        path, module = f"torch{space}", importlib.import_module(f"jaxgrad{space}")
        known = names_in(path)
        for other, member in tuple(vars(module).items()):
            if member is value and other in known:
                return f"{path}.{other}"
    return None


def method_name(function) -> str | None:
    """The name of a method of `Tensor`, as `add`; None for others, and for a public function that
    is the method too.
    """
    name = getattr(function, "__name__", "")
    if not name or public_name(function) is not None:
        return None
    if getattr(Tensor, name, None) is function:
        plain = name.strip("_")
        is_operators = hasattr(function, "operator") and hasattr(Tensor, plain)
        return plain if is_operators and f"__{plain}__" == name else name
    if getattr(Tensor, f"__{name}__", None) is function:
        return f"__{name}__"
    place = getattr(function, "__qualname__", "").rpartition(".")[2]  # `__iadd__` of `add_`
    return place if getattr(Tensor, place, None) is function else None


def qualified_name(function) -> str:
    """The name by which code calls a function: PyTorch's for one of jaxgrad."""
    name = getattr(function, "__name__", None)
    if name and getattr(builtins, name, None) is function:
        return name
    if isinstance(function, types.MethodType | types.MethodDescriptorType):
        owner = getattr(function, "__objclass__", None) or type(function.__self__)
        if owner in vars(builtins).values():
            return f"{owner.__name__}.{name}"
    method = method_name(function)
    if method is not None:
        return f"torch.Tensor.{method}"
    public = public_name(function)
    if public is not None:
        return forms()[public].name if public in forms() else public
    if name is None:
        raise RuntimeError(f"cannot name {function!r} in the code of a graph: it has no __name__")
    module = _module_of(function)
    return f"{module.replace('jaxgrad', 'torch', 1) if is_own(function) else module}.{name}"


def _module_of(function) -> str:
    """The module of a function; for a method of a C class, one that has it under its name."""
    module = getattr(function, "__module__", None)
    if module is not None:
        return module
    objclass = getattr(function, "__objclass__", None)
    if objclass is not None:
        return f"{objclass.__module__}.{objclass.__name__}"
    raise RuntimeError(f"cannot find the module of {function!r}")


def node_name(function) -> str:
    """The word that names the nodes that call a function."""
    if hasattr(function, "overloadpacket"):
        return function.__name__.replace(".", "_")
    if is_own(function):
        return qualified_name(function).rpartition(".")[2]
    return getattr(function, "__name__", type(function).__name__)


def type_name(annotation) -> str:
    """The name of an annotation in tables and codes."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if annotation.__module__ == "builtins":
            return annotation.__qualname__
        name = public_name(annotation)
        return name or f"{annotation.__module__}.{annotation.__qualname__}"
    if annotation is ...:
        return "..."
    if isinstance(annotation, types.FunctionType):
        return annotation.__name__
    return repr(annotation).replace("jaxgrad.tape.tensor.Tensor", "torch.Tensor")


def normalized(function, args: tuple, kwargs: dict) -> tuple[typing.Any, tuple, dict]:
    """The function and the arguments of a call as graphs of PyTorch have them.

    Functions of `torch.nn.functional` that are written in Python hand on all arguments, those by
    default too.
    """
    path = public_name(function)
    if path == "torch.einsum" and len(args) == 2 and isinstance(args[1], list | tuple):
        args = (args[0], *args[1])
    form = forms().get(path)
    if form is None or form.positional is None:
        return function, args, kwargs
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:  # what the call itself will say
        return function, args, kwargs
    bound.apply_defaults()
    values = bound.arguments
    if not set(form.keywords) <= values.keys():
        return function, args, kwargs
    if values.get("return_indices") is True:
        other = f"{path.rpartition('.')[2]}_with_indices"
        function = getattr(importlib.import_module("jaxgrad.nn.functional"), other, function)
    handed_on = {name: values[name] for name in form.keywords}
    if (first := next(iter(bound.signature.parameters.values()))).kind is first.VAR_POSITIONAL:
        return function, values[first.name], handed_on
    leading = [name for name in values if name not in form.keywords][: form.positional]
    return function, tuple(values[name] for name in leading), handed_on
