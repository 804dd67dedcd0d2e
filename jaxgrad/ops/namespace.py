"""The operators of one table, by name: on JAX values and on tensors."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping

import jax

from .. import table
from ..cached import cached_property
from ..core.primitive import CHECKS, MARKS, Overloads, Primitive
from ..late import LateModule

documentation = LateModule("jaxgrad.ops.documentation")

# on the text of entries: at import no schema is parsed
_METHOD = re.compile(r"\(Tensor(\([^)]*\))? self\b")


class Library:
    """The operators of one table: its rules as primitives, each made at its first use.

    `functions`: value functions and helpers by name; `parent`: a library whose operators and
    helpers formulas may call too; `kept`: what a file keeps of its operators (ops/kept.py).
    """

    def __init__(
        self,
        table: table.Table,
        functions: Mapping[str, Callable],
        parent: Library | None = None,
        kept=None,
    ):
        self.table, self.functions, self.parent, self.kept = table, functions, parent, kept
        self.names = table.operators
        self._overloads: dict[str, Overloads] = {}

    @cached_property
    def pointwise(self) -> frozenset[str]:
        """The operators that compute each element by itself, so that results get the strides of
        their operands.
        """
        return getattr(self.functions, "pointwise", frozenset())

    @property
    def methods(self) -> list[str]:
        """The operators whose first argument is a tensor `self`, and their aliases."""
        entries, aliases = self.table.entries, self.table.aliases
        methods = [n for n in entries if any(_METHOD.search(e.name.text) for e in entries[n])]
        return methods + [alias for alias, name in aliases.items() if name in methods]

    @cached_property
    def copies(self) -> dict[str, str]:
        """The views of the operators that return copies: `expand` of `expand_copy`."""
        return {f"{name}_copy": name for name, tags in self.table.tags.items() if "copy" in tags}

    @cached_property
    def inplace_forms(self) -> dict[str, str]:
        """The operators of the in-place forms that PyTorch has: `add` of `add_`."""
        forms = {}
        for name, tags in self.table.tags.items():
            if "inplace" in tags or "inplace_function" in tags:
                forms[f"{name}_"] = name
            if "inplace_only" in tags:
                forms[f"{name.removeprefix('_')}_"] = name
        return forms

    def tags(self, name: str) -> frozenset[str]:
        """What the table says of an operator or alias; see the head of derivatives.yaml."""
        return self.table.tags.get(self.table.aliases.get(name, name), frozenset())

    def tagged(self, tag: str) -> list[str]:
        """The operators that have a tag, and their aliases."""
        names = [name for name, tags in self.table.tags.items() if tag in tags]
        return names + [alias for alias, name in self.table.aliases.items() if name in names]

    def canonical(self, name: str) -> str:
        """The operator that `name` means: `abs` for `absolute`, `abs_` for `absolute_`."""
        aliases, plain = self.table.aliases, name.removesuffix("_")
        return aliases.get(name) or (f"{aliases[plain]}_" if plain in aliases else name)

    def functional(self, name: str) -> str | None:
        """The entry of an in-place operator: its own, or the one without the underscore; None if
        `name` is not in-place.
        """
        if not name.endswith("_") or name in self.names:
            return name if name.endswith("_") else None
        # shipped operators have PyTorch's in-place forms; all of a user's table have one
        if self.parent is None:
            return self.inplace_forms.get(name)
        return next((entry for entry in (name[:-1], f"_{name[:-1]}") if entry in self.names), None)

    def has(self, name: str) -> bool:
        """Whether `name` is an operator, an alias, or the in-place form of one."""
        return name in self.names or self.functional(self.canonical(name)) is not None

    def find(self, name: str) -> Overloads:
        """The operator of this name on JAX values; its first call reads the entry.

        Raises AttributeError if there is none.
        """
        name = self.table.aliases.get(name, name)
        overloads = self._overloads.get(name)
        if overloads is None:
            if name not in self.names and name not in self.copies:
                raise AttributeError(f"{self.table.path} has no operator {name!r}")
            overloads = self._overloads.setdefault(
                name, Overloads(name, functools.partial(self.primitives, name))
            )
        return overloads

    def primitives(self, name: str) -> list[Primitive]:
        """The overloads of an operator in the order in which a call tries them.

        Overloads with more tensors come first, since a tensor may also be passed for a number.
        Raises TableError if an entry has a mistake.
        """
        if name in self.copies:
            return [self._copying(view) for view in self.find(self.copies[name]).primitives]
        # add.Scalar would take the value of a tensor that add.Tensor differentiates
        rules = sorted(self.table.rules(name), key=lambda rule: -len(rule.tensor_arguments))
        marks = [self.kept and self.kept.marks_of(rule.schema.full_name) for rule in rules]
        return [
            Primitive(rule, functools.partial(self.value_function, rule), self, known)
            for rule, known in zip(rules, marks, strict=True)
        ]

    def _copying(self, view: Primitive) -> Primitive:
        return Primitive(table.copying(view.rule), lambda: view.compute, self, {})

    def value_function(self, rule):
        """The entry's `forward`, else the function with the name of the overload or operator."""
        schema = rule.schema
        if rule.forward is not None:
            return self._formula(rule.forward, tuple(one.name for one in schema.arguments))
        # functions of rules/ whose names begin with an underscore are private there
        name = schema.name.removeprefix("_")
        names = [name, name[:-1]] if schema.inplace else [name]
        functions = [
            self.function(f"{name}_{schema.overload}") or self.function(name) for name in names
        ]
        return next(filter(None, functions), None)

    def _formula(self, formula, arguments: tuple[str, ...]):
        """The function of a formula, with the marks of the value function if it is another name of
        one.
        """
        compute, called = formula.compile(arguments, self), formula.text.partition("(")[0]
        if formula.text == f"{called}({', '.join(arguments)})":
            function = self.function(called)
            for mark in (*MARKS, *CHECKS):
                if hasattr(function, mark):
                    setattr(compute, mark, getattr(function, mark))
        return compute

    def function(self, name):
        """The value function or helper of this name, its own before the parent's, or None."""
        match = self.functions.get(name)
        return self.parent.function(name) if match is None and self.parent is not None else match

    def __getitem__(self, name):
        """The function that a formula calls by a name: an operator before a helper, its own before
        the parent's.
        """
        if name in ("lax", "jnp"):
            return jax.lax if name == "lax" else jax.numpy
        if name in self.names or name in self.copies:
            return self.find(name)
        if name in self.functions:
            return self.functions[name]
        if self.parent is None:
            raise KeyError(name)
        return self.parent[name]


class Namespace(types.ModuleType):
    """The operators of a library on tensors; `operator_of(name, library)` makes one."""

    def __init__(self, name: str, library: Library, operator_of: Callable):
        super().__init__(name, f"Operators of {library.table.path}.")
        self._library, self._operator_of = library, operator_of

    def __getattr__(self, name):
        library = self._library
        # Python and its tools ask modules for `__path__`, `__wrapped__` and the like
        if name.startswith("__") or not library.has(name):
            raise AttributeError(f"module {self.__name__!r} has no operator {name!r}")
        canonical = library.canonical(name)
        # an alias is the operator itself, so that both names share its plans
        function = self._make(name) if canonical == name else getattr(self, canonical)
        setattr(self, name, function)
        return function

    def _make(self, name):
        library = self._library
        function = self._operator_of(name, library)
        function.__module__ = self.__name__
        return documentation.document(function, library, name)

    def __dir__(self):
        library = self._library
        inplace = (f"{name.removeprefix('_')}_" for name in library.names)
        return sorted({*library.names, *filter(library.has, inplace)})


class EmptyNamespace(types.ModuleType):
    """A namespace in which nothing is defined yet: programs ask `torch.ops.NAMESPACE` for an
    operator by `hasattr`, whether its library is there or not. What a library defines later is
    found.
    """

    def __init__(self, package: str, name: str, find: Callable):
        super().__init__(f"{package}.{name}", "A namespace without operators.")
        self._refusal = f"module {package!r} has no operator {name!r}"
        self._name, self._find = name, find

    def __getattr__(self, name):
        known = None if name.startswith("__") else self._find(self._name)
        if known is None:
            raise AttributeError(
                f"'_OpNamespace' {self._name!r} object has no attribute {name!r}: {self._refusal}, "
                "and no library or table of that name is loaded"
            )
        return getattr(known, name)

    def __call__(self, *args, **kwargs):
        raise AttributeError(self._refusal)


def public_functions(source) -> dict[str, Callable]:
    """The functions of a module or a dict by name, without those that begin with an underscore.

    A module has also what it imports: functions of the standard library are none of arrays.
    """
    is_module = not isinstance(source, Mapping)
    members = vars(source) if is_module else source
    return {
        name: member
        for name, member in members.items()
        if callable(member)
        and not (name.startswith("_") or inspect.isclass(member))
        and not (is_module and _is_of_the_standard_library(member))
    }


def _is_of_the_standard_library(member):
    # an object, such as a `functools.partial`, has the module of its class
    module = getattr(member, "__module__", None) if inspect.isroutine(member) else None
    return (module or "").partition(".")[0] in sys.stdlib_module_names
