"""Annotations as a stub spells them."""

import collections.abc
import importlib
import inspect
import re
import types
import typing

import jaxgrad

from .public_names import Homes

# Names such as `float` and `dtype` are dtypes, methods and properties in some stubs. So types go by
# names that begin with an underscore; the tables of left_open.py have them without it.
HEADER = """\
# Written by `jaxgrad stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from builtins import slice as _slice, str as _str, type as _type
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, KeysView
from collections.abc import Mapping, Sequence, Sized, ValuesView
from contextlib import AbstractContextManager
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True)
_Number: TypeAlias = _bool | _int | _float | _complex
"""
ALIASED = ("dtype", "device", "layout", "memory_format")
TYPES = ("bool", "complex", "float", "int", "str", "Number", "NDArray", "F", *ALIASED)
PLAIN = re.compile(rf"\b({'|'.join(TYPES)})\b(?!: [^.])")  # and no name of a parameter


def is_generic(kind) -> bool:
    return bool(getattr(kind, "__parameters__", ()))


def is_private_result(kind) -> bool:
    """Whether a class is a named tuple that functions return, and private as in PyTorch."""
    return hasattr(kind, "_fields") and kind.__name__.startswith("_")


class Types:
    """Types as one stub spells them; `imported` gathers the names that it takes from others."""

    def __init__(self, module: str, homes: Homes):
        self.module, self.homes = module, homes
        self.imported: set[tuple[str, str]] = set()
        self.results: set[str] = set()  # the classes of results declared so far
        self.declared: dict[str, str] = {}  # type variables and results, by their names

    def text(self, kind) -> str:
        """The spelling of an annotation, `Any` where a stub has none for it."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, types.UnionType) or origin is typing.Union:
            return " | ".join(dict.fromkeys(map(self.text, arguments)))
        if origin is typing.Literal:
            return f"Literal[{', '.join(map(repr, arguments))}]"
        if origin is not None:
            return self.generic(origin, arguments)
        if kind is None or kind is type(None):
            return "None"
        if inspect.isclass(kind):
            return self.of_class(kind)
        if isinstance(kind, typing.TypeVar):
            return self.variable(kind)
        return "Self" if kind is typing.Self else "Any"

    def is_hidden(self, kind) -> bool:
        """Whether an annotation names a class that no public module offers."""
        if typing.get_origin(kind) is typing.Unpack:
            return False
        if any(map(self.is_hidden, typing.get_args(kind))):
            return True
        is_class = inspect.isclass(kind) and kind.__module__.startswith("jaxgrad")
        known = self.homes.classes | self.homes.wholes
        return is_class and kind not in known and not is_private_result(kind)

    def variable(self, variable: typing.TypeVar) -> str:
        if variable.__covariant__:
            return "_T_co"
        name, bound = f"_{variable.__name__}", variable.__bound__
        options = "" if bound is None else f", bound={self.text(bound)}"
        self.declared[name] = f'{name} = TypeVar("{name}"{options})'
        return name

    def of_class(self, kind) -> str:
        if kind not in self.homes.classes:
            kind = self.homes.wholes.get(kind, kind)
        if is_private_result(kind):
            return self.private_result(kind)
        if kind in self.homes.classes:
            return self.public(kind) + ("[Any]" if is_generic(kind) else "")
        if kind.__module__ == "builtins":
            return self.built_in(kind)
        if kind is collections.abc.Sized:
            return "Sized"
        if kind.__module__ in ("collections", "collections.abc"):
            return self.generic(kind, (..., typing.Any) if kind is collections.abc.Callable else ())
        others = {"ndarray": "NDArray[Any]", "Number": "Number"}
        return self.spelled(others.get(kind.__name__, "Any"))

    def private_result(self, kind) -> str:
        hints = typing.get_type_hints(kind)
        fields = [f"\n    {name}: {self.text(hints[name])}" for name in kind._fields]
        self.declared[kind.__name__] = f"class {kind.__name__}(NamedTuple):{''.join(fields)}"
        return kind.__name__

    def built_in(self, kind) -> str:
        if kind is slice:
            return "_slice"
        if kind in (types.ModuleType, types.FunctionType):
            return "Any"
        if kind in (list, set, frozenset, type, tuple, dict):
            return self.generic(kind, (typing.Any, ...) if kind is tuple else ())
        return self.spelled(kind.__name__)

    def public(self, kind) -> str:
        """The name of a public class, imported from the stub that declares it."""
        module, name = self.homes.classes[kind]
        # a class may be derived from one of another module with its name
        is_public = name in self.homes.names[self.module]
        is_other = is_public and getattr(importlib.import_module(self.module), name) is not kind
        alias = f"_{name}" if name in ALIASED or is_other else name
        if module != self.module:
            self.imported.add((module, name if alias == name else f"{name} as {alias}"))
        return alias

    def generic(self, origin, arguments) -> str:
        if origin is collections.abc.Callable:
            *parameters, result = arguments
            known = isinstance(parameters[0], list)
            listed = f"[{', '.join(map(self.text, parameters[0]))}]" if known else "..."
            return f"Callable[{listed}, {self.text(result)}]"
        if origin is typing.ClassVar:
            return f"ClassVar[{self.text(arguments[0])}]"
        if origin.__module__ not in ("builtins", "collections", "collections.abc"):
            return "Any"
        is_mapping = issubclass(origin, collections.abc.Mapping) and origin.__name__ != "Counter"
        count = 2 if is_mapping or origin is collections.abc.ItemsView else 1
        items = arguments or (typing.Any,) * count
        inner = ("..." if item is ... else self.text(item) for item in items)
        name = "_type" if origin is type else origin.__name__
        return f"{name}[{', '.join(inner)}]"

    def spelled(self, text: str) -> str:
        """A declaration or a type that is written with plain names."""
        for name in ("Generator", "Tensor", *ALIASED):
            if re.search(rf"\b{name}\b(?!: [^.])", text):
                self.public(getattr(jaxgrad, name))
        return PLAIN.sub(r"_\1", text)
