"""Classes as a stub declares them."""

import ast
import builtins
import enum
import functools
import inspect
import textwrap
import typing
from collections import Counter
from collections.abc import Iterator

from .. import ops
from ..frontend.methods import LazyMethod
from ..nn.function_layer import FunctionLayer
from ..table import REQUIRED
from .annotations import Types, is_generic
from .functions import Functions, signature_of, tree_of
from .layers import forward_line, option_kinds
from .left_open import ADDED, ATTRIBUTES, BASES, SPECIAL
from .operators import method_lines, schemas_of


class Class:
    """A class as one stub declares it, with the members of its private bases."""

    def __init__(self, module: str, name: str, kind: type, types_: Types):
        self.path, self.name, self.kind, self.types = f"{module}.{name}", name, kind, types_
        known = ATTRIBUTES.get(name, {})
        self.known = {name: types_.spelled(text) for name, text in known.items()}
        self.parts = [kind]  # the class and its private bases
        self.is_function = issubclass(kind, FunctionLayer) and kind.function is not None
        self.options = option_kinds(kind, types_) if self.is_function else {}
        self.bases = list(dict.fromkeys(self.public_bases(kind)))
        self.members = {n: v for part in reversed(self.parts) for n, v in vars(part).items()}

    def public_bases(self, kind):
        for base in kind.__bases__:
            if base is typing.Generic:
                yield "Generic[_T_co]"
            elif base in self.types.homes.classes:
                argument = "[_T_co]" if is_generic(kind) else "[Any]"
                yield self.types.public(base) + (argument if is_generic(base) else "")
            elif base.__module__.startswith("jaxgrad"):
                self.parts.append(base)
                yield from self.public_bases(base)
            elif base.__module__ in ("builtins", "enum") and base is not object:
                text = "tuple[int, ...]" if self.name == "Size" else BASES.get(base, base.__name__)
                yield self.types.spelled(text)

    def lines(self) -> list[str]:
        body, bases = self.body(), self.bases
        if issubclass(self.kind, enum.Enum):
            body = [f"{member.name} = {member.value!r}" for member in self.kind]
        elif hasattr(self.kind, "_fields"):
            hints = typing.get_type_hints(self.kind)
            bases = ["NamedTuple"]
            body = [f"{name}: {self.types.text(hints[name])}" for name in self.kind._fields]
        heading = f"class {self.name}({', '.join(bases)}):" if bases else f"class {self.name}:"
        return [heading, textwrap.indent("\n".join(body) or "...", "    ")]

    def body(self) -> list[str]:
        lines = [
            f"{name}: {self.known.get(name, hint)}"
            for name, hint in self.attributes.items()
            if name not in self.members and not name.startswith("_")
            if self.is_annotated(name) or not self.is_attribute_of_base(name)
        ]
        lines += map(self.types.spelled, ADDED.get(self.name, ()))
        special = () if issubclass(self.kind, tuple) else SPECIAL
        for name in sorted(self.members):
            if name in special or not name.startswith("_"):
                lines += self.member(name, self.members[name])
        protocols = ops.library.table.protocols if self.name == "Tensor" else {}
        return lines + [self.types.spelled(protocol_line(*item)) for item in protocols.items()]

    @functools.cached_property
    def attributes(self) -> dict[str, str]:
        """What the code of the class assigns to `self`, and what the class annotates."""
        attributes = {}
        for part in reversed(self.parts):
            attributes = dict.fromkeys(assigned_in(part), "Any") | attributes | self.initial(part)
            hints = typing.get_type_hints(part)
            annotations = vars(part).get("__annotations__", {})
            attributes |= {name: self.types.text(hints[name]) for name in annotations}
        return attributes | self.options

    def initial(self, part) -> dict[str, str]:
        """The attributes that `__init__` alone assigns: a parameter, or a new object of a public
        class.
        """
        constructor = vars(part).get("__init__")
        tree = tree_of(constructor)
        if tree is None:
            return {}
        counts = Counter(assigned_in(part))
        parameters = signature_of(constructor).parameters
        functions = Functions(self.types)
        initial = {}
        for target, value in assignments_in(tree):
            if counts[target] > 1:
                continue
            if isinstance(value, ast.Name) and value.id in parameters:
                initial[target] = functions.kind_of(parameters[value.id])
            result = result_of_call(value, constructor.__globals__)
            if result is not None and not self.types.is_hidden(result):
                initial[target] = self.types.text(result)
        return initial

    def is_hidden(self, function) -> bool:
        """Whether the signature of a method names a class that is not public."""
        signature = signature_of(function)
        hints = [parameter.annotation for parameter in signature.parameters.values()]
        return any(map(self.types.is_hidden, [*hints, signature.return_annotation]))

    def member(self, name, value) -> list[str]:
        functions, path = Functions(self.types, self.options), f"{self.path}.{name}"
        if issubclass(self.kind, FunctionLayer) and name in ("function", "shown"):
            return []
        if value is FunctionLayer.forward and self.is_function:
            return [forward_line(self.kind, self.types)]
        if isinstance(value, LazyMethod):
            value = getattr(self.kind, name)
        if hasattr(value, "operator"):
            return [] if name.startswith("__") else method_lines(name, value, self.types)
        if isinstance(value, property):
            return self.property(name, value)
        if isinstance(value, staticmethod):
            return functions.lines(name, value.__func__, path, ["@staticmethod"])
        if isinstance(value, classmethod):
            return self.marked(name, functions.lines(name, value.__func__, path, ["@classmethod"]))
        if name == "__call__" and "__enter__" in self.members:
            return [self.types.spelled("def __call__(self, function: F) -> F: ...")]
        if not inspect.isfunction(value):
            hint = self.attributes.get(name, self.kind_of(value))
            return [f"{name}: {self.known.get(name, hint)}"]
        if self.is_hidden(value) and not name.startswith("__"):
            return []
        return self.marked(name, functions.lines(name, value, path, is_method=True))

    def marked(self, name, lines) -> list[str]:
        """`lines` with a mark for checkers where the arguments are not those of the base."""
        *rest, last = lines
        return [*rest, f"{last}  # type: ignore[override]"] if self.changes(name) else lines

    def kind_of(self, value) -> str:
        is_plain = isinstance(value, bool | int | float | str | tuple | dict)
        return self.types.text(type(value)) if is_plain else "Any"

    def changes(self, name) -> bool:
        """Whether a method takes other arguments than the one of a public base that it replaces."""
        public = [base for base in self.kind.__mro__[1:] if base in self.types.homes.classes]
        replaced = next((getattr(base, name) for base in public if hasattr(base, name)), None)
        if replaced is None or name.startswith("__"):
            return False
        if not callable(replaced):
            return True  # a property
        overriding = list(inspect.signature(getattr(self.kind, name)).parameters.values())
        if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= {
            p.kind for p in overriding
        }:
            return False
        base = list(inspect.signature(replaced).parameters.values())
        kinds = {parameter.kind for parameter in base}
        if inspect.Parameter.VAR_KEYWORD in kinds and inspect.Parameter.KEYWORD_ONLY not in kinds:
            return False
        asked = [p.name for p in overriding if p.default is p.empty]
        same = [parameter.name for parameter in base] == [p.name for p in overriding[: len(base)]]
        return not same or asked != [p.name for p in base if p.default is p.empty]

    def is_annotated(self, name) -> bool:
        return any(name in vars(part).get("__annotations__", {}) for part in self.parts)

    def is_attribute(self, kind, name) -> bool:
        """Whether a member of a public class is an attribute that can be set, at least in one of
        the public classes that are derived from it.
        """
        public = [subclass for subclass in self.types.homes.classes if issubclass(subclass, kind)]
        members = [vars(subclass)[name] for subclass in public if name in vars(subclass)]
        return not all(isinstance(member, property) for member in members)

    def is_attribute_of_base(self, name) -> bool:
        """Whether it is one in a public base, which says of what type."""
        for base in self.kind.__mro__[1:]:
            if base not in self.parts and name in vars(base).get("__annotations__", {}):
                return True
            is_hidden = name in vars(base) and not hasattr(base, name)
            if base not in self.types.homes.classes or is_hidden:
                continue
            getter = getattr(vars(base).get(name), "fget", None)
            is_typed = getter is None or "return" in getter.__annotations__
            if name in vars(base) and is_typed and self.is_attribute(base, name):
                return True
            if name in vars(base).get("__annotations__", {}):
                return True
        return False

    def property(self, name, value) -> list[str]:
        hint = signature_of(value.fget).return_annotation
        kind = "Any" if hint is inspect.Signature.empty else self.types.text(hint)
        kind = self.known.get(name, kind)
        if self.is_attribute(self.kind, name):
            return [f"{name}: {kind}"]
        lines = ["@property", f"def {name}(self) -> {kind}: ..."]
        if value.fset is None and self.is_attribute_of_base(name):
            lines[-1] += "  # type: ignore[override]"
        if value.fset is not None:
            lines += [f"@{name}.setter", f"def {name}(self, value: {kind}) -> None: ..."]
        if value.fdel is not None:
            lines += [f"@{name}.deleter", f"def {name}(self) -> None: ..."]
        return lines


def protocol_line(method, operator) -> str:
    """A special method of Python that calls an operator."""
    schema = schemas_of(getattr(ops, operator))[0]
    is_unary = sum(argument.default is REQUIRED for argument in schema.arguments) == 1
    other = "" if is_unary else ", other: Tensor | Number | NDArray[Any]"
    mark = "  # type: ignore[override]" if method in ("__eq__", "__ne__") else ""
    return f"def {method}(self{other}) -> Tensor: ...{mark}"


def assignments_in(function) -> Iterator[tuple[str, ast.expr]]:
    """The attributes of `self` that a function assigns, with the values."""
    names = {node.id for node in ast.walk(function) if is_stored(node, ast.Name)}
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for statement in statements:
        pairs = [(target, statement.value) for target in statement.targets]
        if isinstance(statement.value, ast.Tuple) and isinstance(statement.targets[0], ast.Tuple):
            pairs = zip(statement.targets[0].elts, statement.value.elts, strict=False)
        for target, value in pairs:
            is_changed = getattr(value, "id", None) in names
            if isinstance(target, ast.Attribute) and not is_changed:
                yield target.attr, value


def result_of_call(value, names):
    """What a call of a class or of an annotated function returns, None for other expressions."""
    called = isinstance(value, ast.Call) and getattr(value.func, "id", None)
    function = names.get(called, vars(builtins).get(called))
    if inspect.isfunction(function):
        hint = signature_of(function).return_annotation
        return None if hint is inspect.Signature.empty else hint
    return function if inspect.isclass(function) else None


def is_stored(node, kind) -> bool:
    return isinstance(node, kind) and isinstance(node.ctx, ast.Store)


def assigned_in(kind) -> list[str]:
    """The attributes of `self` that the methods of a class assign."""
    tree = tree_of(kind)
    nodes = [] if tree is None else ast.walk(tree)
    stored = (node for node in nodes if is_stored(node, ast.Attribute))
    return [node.attr for node in stored if getattr(node.value, "id", "") == "self"]
