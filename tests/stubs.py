"""The type stubs of jaxgrad's public modules: operators from the table, the rest from what the
modules hold when they are imported.

    python tests/stubs.py      writes them (`make stubs`)

A stub stands beside its module. It names only what is public, so that a type checker that reads it
needs no module without a stub.
"""

import ast
import collections.abc
import contextlib
import enum
import importlib
import inspect
import math
import re
import textwrap
import types
import typing
from pathlib import Path

import numpy

import jaxgrad
from jaxgrad import ops
from jaxgrad.ops.documentation import public_name, python_type, takes_out
from jaxgrad.table import REQUIRED

ROOT = Path(jaxgrad.__file__).parent

# An object is declared in the first of these modules that has it; the others import it from there.
MODULES = (
    "jaxgrad.ops",
    "jaxgrad",
    "jaxgrad.random",
    "jaxgrad.tracing",
    "jaxgrad.nn",
    "jaxgrad.nn.functional",
    "jaxgrad.nn.init",
    "jaxgrad.nn.module",
    "jaxgrad.nn.parameter",
    "jaxgrad.nn.utils",
    "jaxgrad.optim",
    "jaxgrad.optim.lr_scheduler",
    "jaxgrad.optim.optimizer",
    "jaxgrad.autograd",
    "jaxgrad.autograd.anomaly_mode",
    "jaxgrad.autograd.forward_ad",
    "jaxgrad.autograd.function",
    "jaxgrad.autograd.functional",
    "jaxgrad.autograd.grad_mode",
    "jaxgrad.autograd.gradcheck",
    "jaxgrad.autograd.graph",
    "jaxgrad.autograd.profiler",
    "jaxgrad.autograd.profiler_util",
    "jaxgrad.autograd.variable",
    "jaxgrad.func",
    "jaxgrad.amp",
    "jaxgrad.utils",
    "jaxgrad.utils.checkpoint",
    "jaxgrad.utils.hooks",
)

HEADER = '''\
# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload
from types import ModuleType, TracebackType

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_Number: TypeAlias = _bool | _int | _float | _complex
'''

# Parameters that have no annotation in the source, by their PyTorch names.
PARAMETERS = {
    **dict.fromkeys(("input", "target", "input1", "input2", "x1", "x2", "tensor"), "Tensor"),
    **dict.fromkeys(("anchor", "positive", "negative", "query", "key", "value"), "Tensor"),
    **dict.fromkeys(("weight", "bias", "pos_weight", "running_mean", "running_var"), "Tensor"),
    **dict.fromkeys(("func", "function", "closure"), "Callable[..., Any]"),
    **dict.fromkeys(("dtype",), "_dtype"),
    "device": "_device | _str | _int | None",
    "generator": "Generator | None",
    "fill_value": "_Number",
    "parameters": "Iterable[Tensor]",
    "params": "Iterable[Any]",
    **dict.fromkeys(("size", "kernel_size", "output_size"), "_int | Sequence[_int]"),
    **dict.fromkeys(("stride", "dilation", "output_padding"), "_int | Sequence[_int]"),
    "padding": "_int | Sequence[_int] | _str",
    "lr": "_float | Tensor",
    "size_average": "_bool | None",
    "reduce": "_bool | None",
}
TRANSFORM = "Callable[..., Any]"

# Results that have no annotation in the source.
RETURNS = {
    **dict.fromkeys((f"jaxgrad.func.{name}" for name in (
        "grad", "value_and_grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "vmap",
        "functionalize",
    )), TRANSFORM),
    **dict.fromkeys(("jaxgrad.from_jax", "jaxgrad.to_jax"), TRANSFORM),
    "jaxgrad.autograd.grad": "tuple[Any, ...]",
    **dict.fromkeys((f"jaxgrad.Tensor.{name}" for name in (
        "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int",
        "long", "short", "where", "__getitem__", "__rfloordiv__", "__rmatmul__", "__rmod__",
        "__rpow__", "__rtruediv__",
    )), "Tensor"),
    "jaxgrad.Tensor.__iter__": "Iterator[Tensor]",
    "jaxgrad.Tensor.backward": "None",
    **dict.fromkeys(("jaxgrad.dtype.to_complex", "jaxgrad.dtype.to_real"), "_dtype"),
}  # fmt: skip
SPECIAL_RETURNS = {
    **dict.fromkeys(("__len__", "__int__", "__index__"), "_int"),
    **dict.fromkeys(("__bool__", "__contains__"), "_bool"),
    **{"__float__": "_float", "__complex__": "_complex", "__array__": "_NDArray[Any]"},
}
BUILT_IN_BASES = {
    **{types.ModuleType: "ModuleType", tuple: "tuple[Any, ...]"},
    **{list: "list[Any]", dict: "dict[Any, Any]", ("Size", tuple): "tuple[_int, ...]"},
}

# Members of a class that its instances get from elsewhere.
WRITTEN_MEMBERS = {
    "FunctionCtx": [
        "@property",
        "def saved_tensors(self) -> tuple[Tensor, ...]: ...",
        "needs_input_grad: tuple[_bool, ...]",
        "def __getattr__(self, name: _str) -> Any: ...",
        "def __setattr__(self, name: _str, value: Any) -> None: ...",
    ],
}

# Declarations that a signature cannot express.
WRITTEN = {
    "jaxgrad.jit": """\
@overload
def jit(
    function: _F,
    *,
    donate: _int | _str | Sequence[_int | _str] = "auto",
    static_argnames: _str | Sequence[_str] = (),
) -> _F: ...
@overload
def jit(
    function: None = None,
    *,
    donate: _int | _str | Sequence[_int | _str] = "auto",
    static_argnames: _str | Sequence[_str] = (),
) -> Callable[[_F], _F]: ...
""",
}

SHADOWED = re.compile(r"(?<![\w.])(bool|complex|float|int|str|dtype|device|layout|memory_format)\b")
LATER = ("dtype", "device", "layout", "memory_format")
BASES = (Exception, tuple, dict, list, enum.Enum, contextlib.ContextDecorator)
SPECIAL = {
    *("__init__", "__call__", "__enter__", "__exit__", "__iter__", "__next__", "__len__"),
    *("__getitem__", "__setitem__", "__delitem__", "__contains__", "__getattr__", "__reversed__"),
    *("__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__", "__iadd__"),
    *("__jax_array__", "__dlpack__", "__dlpack_device__", "__or__", "__ior__", "__ror__"),
    *("__rtruediv__", "__rpow__", "__rmatmul__", "__rfloordiv__", "__rmod__", "__add__"),
}


def public_names(module) -> list[str]:
    """What a module offers: what it defines or re-exports as `x as x`, and what `dir` adds."""
    if module is jaxgrad:
        return dir(module)
    tree = ast.parse(inspect.getsource(module))
    found = {name for statement in tree.body for name in _defined(statement)}
    found |= set(dir(module)) - set(vars(module))
    found |= set(getattr(module, "__all__", ()))
    if module is ops:
        found |= set(dir(module))
    return sorted(name for name in found if _is_offered(module, name))


def _defined(statement):
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom):
        return [alias.name for alias in statement.names if alias.asname == alias.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def _is_offered(module, name):
    if name.startswith("_") or name.isupper():
        return False
    value = getattr(module, name)
    return not inspect.ismodule(value) or value.__name__ in MODULES


class Homes:
    """Where each public object is declared."""

    def __init__(self):
        self.names = {name: public_names(importlib.import_module(name)) for name in MODULES}
        self.homes: dict[tuple[str, int], str] = {}
        self.classes: dict[type, tuple[str, str]] = {}
        for module, names in self.names.items():
            for name in names:
                value = getattr(importlib.import_module(module), name)
                self.homes.setdefault((name, id(value)), module)
                if inspect.isclass(value):
                    self.classes.setdefault(value, (module, name))

    def of(self, name, value) -> str:
        return self.homes[name, id(value)]


class Annotations:
    """Types as a stub spells them; `imported` gathers the classes that other stubs declare."""

    def __init__(self, module: str, homes: Homes):
        self.module, self.homes = module, homes
        self.imported: set[tuple[str, str]] = set()

    def text(self, kind) -> str:
        if kind is None or kind is type(None):
            return "None"
        if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
            return " | ".join(dict.fromkeys(self.text(each) for each in typing.get_args(kind)))
        if typing.get_origin(kind) is typing.Literal:
            return f"Literal[{', '.join(map(repr, kind.__args__))}]"
        if typing.get_origin(kind) is not None:
            return self.generic(typing.get_origin(kind), typing.get_args(kind))
        if inspect.isclass(kind):
            return self.of_class(kind)
        return "Self" if kind is typing.Self else "Any"

    def of_class(self, kind) -> str:
        if kind in self.homes.classes:
            return self.public(kind)
        if kind is numpy.ndarray:
            return "_NDArray[Any]"
        if kind.__module__ == "builtins":
            return self.bare(kind.__name__)
        known = {"Callable": "[..., Any]", "Mapping": "[Any, Any]"}
        if kind.__module__ == "collections.abc" and kind.__name__ in HEADER:
            return kind.__name__ + known.get(kind.__name__, "[Any]")
        return "_Number" if kind.__name__ == "Number" else "Any"

    def bare(self, name) -> str:
        generic = {"list": "list[Any]", "tuple": "tuple[Any, ...]", "dict": "dict[Any, Any]"}
        others = {"set": "set[Any]", "type": "type[Any]", "slice": "Any", "module": "Any"}
        return (generic | others).get(name) or SHADOWED.sub(r"_\1", name)

    def public(self, kind) -> str:
        module, name = self.homes.classes[kind]
        alias = f"_{name}" if name in LATER else name
        if module != self.module:
            self.imported.add((module, name if alias == name else f"{name} as {alias}"))
        return alias

    def generic(self, origin, arguments) -> str:
        if origin is collections.abc.Callable:
            *parameters, result = arguments or (..., typing.Any)
            inner = parameters[0] if len(parameters) == 1 else ...
            listed = "..." if inner is ... else f"[{', '.join(map(self.text, inner))}]"
            return f"Callable[{listed}, {self.text(result)}]"
        name = getattr(origin, "__name__", "Any")
        if origin.__module__ not in ("builtins", "collections.abc") or name not in HEADER + "tuple list dict set frozenset type":
            return "Any"
        inner = ("..." if each is ... else self.text(each) for each in arguments)
        return f"{name}[{', '.join(inner)}]"

    def of_table(self, text: str) -> str:
        """The type of a schema, as documentation.py spells it."""
        for name in ("dtype", "memory_format", "layout", "Tensor"):
            if re.search(rf"\b{name}\b", text):
                self.public(getattr(jaxgrad, name))
        return SHADOWED.sub(r"_\1", text).replace("Number", "_Number")


class Stub:
    """One module's stub, line by line."""

    def __init__(self, module: str, homes: Homes):
        self.name, self.module, self.homes = module, importlib.import_module(module), homes
        self.annotations = Annotations(module, homes)
        self.lines: list[str] = []

    def text(self) -> str:
        imports = []
        for name in self.homes.names[self.name]:
            value = getattr(self.module, name)
            if inspect.ismodule(value):
                package, _, last = value.__name__.rpartition(".")
                imports.append((package, f"{last} as {name}"))
            elif self.homes.of(name, value) != self.name:
                imports.append((self.homes.of(name, value), f"{name} as {name}"))
            else:
                self.declare(name, value)
        children = [name for name in MODULES if name.rpartition(".")[0] == self.name]
        for child in children:
            last = child.rpartition(".")[2]
            if inspect.ismodule(getattr(self.module, last, None)):
                imports.append((self.name, f"{last} as {last}"))
        aliases = [f"_{name} = {name}" for name in LATER] if self.name == "jaxgrad" else []
        used = {"Tensor", "Generator", *LATER} if self.name != "jaxgrad" else set()
        body = "\n".join(self.lines)
        for name in used:
            alias = f"_{name}" if name in LATER else name
            if re.search(rf"\b{alias}\b", body) and not re.search(rf"^class {alias}\b", body, re.M):
                self.annotations.public(getattr(jaxgrad, name))
        imports += self.annotations.imported
        parts = [HEADER, *imported(imports), *aliases, body]
        return "\n".join(filter(None, parts)) + "\n"

    def declare(self, name, value):
        if f"{self.name}.{name}" in WRITTEN:
            self.lines.append(WRITTEN[f"{self.name}.{name}"])
        elif hasattr(value, "operator"):
            self.lines += operator_lines(name, value, self.annotations)
        elif inspect.isclass(value):
            self.lines += ClassStub(name, value, self).text()
        elif inspect.isroutine(value):
            self.lines += self.function(name, value, f"{self.name}.{name}")
        else:
            kind = "Any" if value is None else self.annotations.text(type(value))
            self.lines.append(f"{name}: {kind}")

    def function(self, name, function, path, decorator="", is_method=False) -> list[str]:
        """The lines of a function, or of a method."""
        signature = signature_of(function)
        if signature is None:
            return [f"{decorator}def {name}(*args: Any, **kwargs: Any) -> Any: ..."]
        parameters = self.parameters(signature)
        if is_method:
            parameters[:1] = ["self", *(p for p in parameters[:1] if p.startswith("*"))]
        returned = self.returned(function, signature, path)
        return [*filter(None, [decorator]), f"def {name}({', '.join(parameters)}) -> {returned}: ..."]

    def parameters(self, signature) -> list[str]:
        found, star = [], False
        given = [p for p in signature.parameters.values() if not p.name.startswith("_")]
        for position, parameter in enumerate(given):
            if parameter.kind is parameter.KEYWORD_ONLY and not star:
                found.append("*")
            star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
            if typing.get_origin(parameter.annotation) is typing.Unpack:
                found += self.unpacked(parameter, star)
            else:
                found.append(self.parameter(parameter, is_first=position == 0))
            later = given[position + 1 :]
            if parameter.kind is parameter.POSITIONAL_ONLY and all(
                p.kind is not p.POSITIONAL_ONLY for p in later
            ):
                found.append("/")
        return found

    def unpacked(self, parameter, star) -> list[str]:
        hints = typing.get_type_hints(parameter.annotation.__args__[0])
        options = [f"{name}: {self.annotations.text(kind)} = ..." for name, kind in hints.items()]
        return options if star else ["*", *options]

    def parameter(self, parameter, is_first) -> str:
        if is_first and parameter.name in ("self", "cls"):
            return parameter.name
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = f"{prefix.get(parameter.kind, '')}{parameter.name}: {self.kind_of(parameter)}"
        return text if parameter.default is parameter.empty else f"{text} = {default_of(parameter)}"

    def kind_of(self, parameter) -> str:
        if parameter.annotation is not parameter.empty:
            found = self.annotations.text(parameter.annotation)
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return PARAMETERS[parameter.name] if parameter.name == "size" else "Any"
        else:
            found = PARAMETERS.get(parameter.name) or kind_of_default(parameter.default)
        is_open = parameter.default is None and "None" not in found and found != "Any"
        return f"{found} | None" if is_open else found

    def returned(self, function, signature, path) -> str:
        if path in RETURNS:
            return RETURNS[path]
        if signature.return_annotation is not signature.empty:
            return self.annotations.text(signature.return_annotation)
        name = path.rpartition(".")[2]
        if name in SPECIAL_RETURNS:
            return SPECIAL_RETURNS[name]
        if self.name == "jaxgrad.nn.functional":
            return "Tensor"
        return returned_by_code(function)


def imported(imports) -> list[str]:
    """Import statements, one a module."""
    modules: dict[str, list[str]] = {}
    for module, name in sorted(set(imports)):
        modules.setdefault(module, []).append(name)
    return [
        f"from {module} import (\n    " + ",\n    ".join(names) + ",\n)"
        for module, names in modules.items()
    ]


def signature_of(function):
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError, AttributeError):
        try:
            return inspect.signature(function)
        except ValueError:
            return None


def kind_of_default(default) -> str:
    """The type of an argument that has no annotation: that of its default."""
    return f"_{type(default).__name__}" if type(default) in (bool, str) else "Any"


def default_of(parameter) -> str:
    return stub_default(parameter.default)


def returned_by_code(function) -> str:
    """`None` where no statement returns a value, `Self` where all return `self`, else `Any`."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        tree = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return "Any"
    if not isinstance(tree, ast.FunctionDef):
        return "Any"
    own = list(_own_nodes(tree))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own):
        return "Any"
    values = [node.value for node in own if isinstance(node, ast.Return)]
    if all(value is None for value in values):
        raises = isinstance(tree.body[-1], ast.Raise)
        return "Any" if raises else "None"
    are_self = all(isinstance(v, ast.Name) and v.id == "self" for v in values)
    return "Self" if are_self else "Any"


def _own_nodes(function):
    """The nodes of a function without those of the functions inside it."""
    stack = list(function.body)
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            stack.extend(ast.iter_child_nodes(node))


# operators


def operator_lines(name, operator, annotations, as_method=False, inside="") -> list[str]:
    """The overloads of an operator as a function, or as a method of Tensor."""
    inplace = hasattr(operator.operator, "written_as")
    rules = ops.library.table.rules(operator.operator.name)
    schemas = [rule.schema for rule in rules]
    if as_method:
        first = [schema.arguments[0] for schema in schemas]
        schemas = [s for s, a in zip(schemas, first, strict=True) if is_tensor_self(a)]
    lines = [line for schema in schemas for line in variants(schema, inplace, as_method)]
    lines = list(dict.fromkeys(lines))
    marks = ["@overload\n"] if len(lines) > 1 else [""]
    doc = ops.library.table.doc(operator.operator.name)
    for schema in schemas if as_method else ():
        if len(schema.returns) > 1:
            annotations.imported.add(("jaxgrad.ops", result_of(schema)))
    texts = [f"{marks[0]}def {name}{annotations.of_table(line)}: ..." for line in lines]
    if doc and not as_method:
        texts[0] = texts[0].removesuffix(" ...") + f'\n    """{doc}"""'
    for schema in schemas:
        if len(schema.returns) > 1 and not as_method:
            texts.insert(0, result_class(schema))
    return texts


def is_tensor_self(argument):
    return argument.name == "self" and str(argument.type) == "Tensor"


def variants(schema, inplace, as_method) -> list[str]:
    """The parameters and the result of a schema; twice where extents may be given one by one."""
    parameters = ["self"] if as_method else []
    keyword = False
    for argument in schema.arguments[as_method:]:
        if argument.keyword_only and not keyword:
            parameters.append("*")
            keyword = True
        default = "" if argument.default is REQUIRED else f" = {stub_default(argument.default)}"
        parameters.append(f"{public_name(argument)}: {python_type(argument.type)}{default}")
    if takes_out(schema) and not inplace and not as_method:
        kind = "Tensor" if len(schema.returns) == 1 else "tuple[Tensor, ...]"
        parameters += [*([] if keyword else ["*"]), f"out: {kind} | None = None"]
    result = result_of(schema)
    found = [f"({', '.join(parameters)}) -> {result}"]
    if as_method and len(schema.arguments) == 2 and str(schema.arguments[1].type) == "int[]":
        found.append(f"(self, *{schema.arguments[1].name}: int) -> {result}")
    return found


def stub_default(default) -> str:
    """A default that a reader can use, else `...`."""
    is_number = type(default) in (bool, int, float) and math.isfinite(default)
    return repr(default) if default is None or type(default) is str or is_number else "..."


def result_of(schema) -> str:
    if len(schema.returns) == 1:
        return "tuple[Tensor, ...]" if schema.returns[0].type.list else "Tensor"
    return f"_{schema.name}_result"


def result_class(schema) -> str:
    fields = "".join(f"\n    {r.name}: Tensor" for r in schema.returns)
    return f"class _{schema.name}_result(NamedTuple):{fields}"


# classes


class ClassStub:
    """A class, with the members of its private bases."""

    def __init__(self, name, kind, stub):
        self.name, self.kind, self.stub = name, kind, stub
        self.members: dict[str, object] = {}
        self.private = [kind]
        self.bases = list(dict.fromkeys(self.public_bases(kind)))
        for each in reversed(self.private):
            self.members |= vars(each)

    def public_bases(self, kind):
        for base in kind.__bases__:
            if base is object:
                continue
            if base in self.stub.homes.classes:
                yield self.stub.annotations.public(base)
            elif base.__module__ in ("builtins", "enum"):
                yield BUILT_IN_BASES.get((self.name, base), BUILT_IN_BASES.get(base, base.__name__))
            elif base.__module__.startswith("jaxgrad"):
                self.private.append(base)
                yield from self.public_bases(base)

    def text(self) -> list[str]:
        if issubclass(self.kind, tuple) and hasattr(self.kind, "_fields"):
            body, bases = self.fields(), ["NamedTuple"]
        elif issubclass(self.kind, enum.Enum):
            body, bases = [f"{member.name} = {member.value!r}" for member in self.kind], self.bases
        else:
            body, bases = self.body(), self.bases
        heading = f"class {self.name}({', '.join(bases)}):" if bases else f"class {self.name}:"
        lines = textwrap.indent("\n".join(body) or "...", "    ")
        return [heading, lines]

    def fields(self):
        hints = typing.get_type_hints(self.kind)
        return [f"{n}: {self.stub.annotations.text(hints[n])}" for n in self.kind._fields]

    def body(self) -> list[str]:
        found = []
        for name, hint in self.attributes().items():
            if name not in self.members:
                found.append(f"{name}: {PROPERTIES.get((self.name, name), hint)}")
        special = () if issubclass(self.kind, tuple) else SPECIAL
        found += WRITTEN_MEMBERS.get(self.name, ())
        for name in sorted(self.members):
            if name in special or not name.startswith("_"):
                found += self.member(name, self.members[name])
        if self.name == "Tensor":
            found += self.protocol()
        return found

    def attributes(self) -> dict[str, str]:
        """Attributes that the code of the class sets, and those that it annotates."""
        found = {}
        for kind in reversed(self.private):
            for name in assigned_in(kind):
                found[name] = "Any"
            for name, hint in annotations_of(kind).items():
                found[name] = self.stub.annotations.text(hint)
        return {name: hint for name, hint in found.items() if not name.startswith("_")}

    def member(self, name, value) -> list[str]:
        path = f"{self.stub.name}.{self.name}.{name}"
        if isinstance(value, property):
            return self.property(name, value)
        if isinstance(value, staticmethod | classmethod):
            mark = f"@{type(value).__name__}"
            return self.stub.function(name, value.__func__, path, mark)
        if hasattr(value, "operator"):
            is_method = not name.startswith("__")
            lines = operator_lines(name, value, self.stub.annotations, as_method=True)
            return lines if is_method else []
        if name == "__call__" and "__enter__" in self.members:
            return ["def __call__(self, function: _F) -> _F: ..."]
        if inspect.isfunction(value):
            lines = self.stub.function(name, value, path, is_method=True)
            return [f"{lines[0]}  # type: ignore[override]"] if self.changes(name) else lines
        if inspect.ismemberdescriptor(value) or inspect.isgetsetdescriptor(value):
            return [f"{name}: {PROPERTIES.get((self.name, name), 'Any')}"]
        if inspect.isclass(value) or value is None or callable(value):
            return [f"{name}: Any"]
        return [f"{name}: {self.stub.annotations.text(type(value))}"]

    def changes(self, name) -> bool:
        """Whether a method takes other arguments than that of a public base."""
        bases = [b for b in self.kind.__mro__[1:] if b in self.stub.homes.classes and hasattr(b, name)]
        if not bases or name.startswith("__"):
            return False
        own, inherited = (
            list(inspect.signature(getattr(kind, name)).parameters.values())
            for kind in (self.kind, bases[0])
        )
        if any(p.kind is p.VAR_KEYWORD for p in inherited):
            return False
        same = [p.name for p in own[: len(inherited)]] == [p.name for p in inherited]
        return not same or any(p.default is p.empty for p in own[len(inherited) :])

    def property(self, name, value) -> list[str]:
        returned = "Any"
        if value.fget is not None and not hasattr(value.fget, "operator"):
            signature = signature_of(value.fget)
            if signature is not None and signature.return_annotation is not signature.empty:
                returned = self.stub.annotations.text(signature.return_annotation)
        elif value.fget is not None:
            returned = "Tensor"
        returned = PROPERTIES.get((self.name, name), returned)
        lines = ["@property", f"def {name}(self) -> {returned}: ..."]
        if value.fset is not None:
            lines += [f"@{name}.setter", f"def {name}(self, value: {returned}) -> None: ..."]
        if value.fdel is not None:
            lines += [f"@{name}.deleter", f"def {name}(self) -> None: ..."]
        return lines

    def protocol(self) -> list[str]:
        """Python's operators on tensors."""
        found = []
        for name, value in self.members.items():
            if not name.startswith("__") or not hasattr(value, "operator"):
                continue
            schemas = [rule.schema for rule in ops.library.table.rules(value.operator.name)]
            unary = len([a for a in schemas[0].arguments if a.default is REQUIRED]) == 1
            other = "" if unary else ", other: Tensor | _Number | _NDArray[Any]"
            mark = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            found.append(f"def {name}(self{other}) -> Tensor: ...{mark}")
        return found


# Properties of Tensor that have no annotation in the source.
PROPERTIES = {
    ("BackwardCFunction", "saved_tensors"): "tuple[Tensor, ...]",
    ("Tensor", "shape"): "Size",
    ("Tensor", "dtype"): "_dtype",
    ("Tensor", "device"): "_device",
    **{("Tensor", name): "Tensor" for name in ("T", "H", "mT", "mH", "real", "imag", "data")},
    **{("Tensor", name): "_int" for name in ("itemsize", "nbytes")},
    **{("dtype", name): "_int" for name in ("itemsize", "category")},
    **{("dtype", f"is_{name}"): "_bool" for name in ("complex", "floating_point", "signed")},
    **{("finfo", name): "_float" for name in ("eps", "max", "min", "resolution", "tiny")},
    **{("iinfo", name): "_int" for name in ("bits", "max", "min")},
    **{("device", "type"): "_str", ("device", "index"): "_int | None", ("dtype", "name"): "_str"},
}


def annotations_of(kind) -> dict:
    try:
        hints = typing.get_type_hints(kind)
    except NameError:
        return {}
    return {name: hints[name] for name in vars(kind).get("__annotations__", {}) if name in hints}


def assigned_in(kind) -> list[str]:
    """The attributes of `self` that the methods of a class set."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return []
    targets = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return list(dict.fromkeys(
        node.attr for node in targets
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    ))  # fmt: skip


def path_of(module: str) -> Path:
    source = Path(importlib.import_module(module).__file__)
    return source.with_suffix(".pyi")


def stubs() -> dict[Path, str]:
    """The text of every stub, by its path."""
    homes = Homes()
    return {path_of(module): Stub(module, homes).text() for module in MODULES}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
