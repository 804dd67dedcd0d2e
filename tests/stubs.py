"""The type stubs of jaxgrad's public modules: operators from the table, everything else from the
imported modules.

    python tests/stubs.py      writes them (`make stubs`)

A stub stands beside its module. Stubs import only stubs, so that a type checker reads none of the
modules that users do not call. What the source annotates is taken from there; the tables below
hold the types of what it leaves open.
"""

import ast
import collections.abc
import enum
import importlib
import inspect
import math
import re
import textwrap
import types
import typing
from pathlib import Path

import jaxgrad
from jaxgrad import ops
from jaxgrad.core.not_provided import is_placeholder
from jaxgrad.frontend.methods import PROTOCOL, LazyMethod
from jaxgrad.late import LateModule
from jaxgrad.ops.documentation import public_name, python_type, sentence, takes_out
from jaxgrad.table import REQUIRED

# An object is declared in the first of these modules that offers it; the others import it.
MODULES = (
    "jaxgrad.ops",
    "jaxgrad",
    "jaxgrad.accelerator",
    "jaxgrad.backends",
    "jaxgrad.backends.cuda",
    "jaxgrad.backends.cudnn",
    "jaxgrad.backends.mkl",
    "jaxgrad.backends.mkldnn",
    "jaxgrad.backends.mps",
    "jaxgrad.backends.openmp",
    "jaxgrad.compat",
    "jaxgrad.compiler",
    "jaxgrad.cpu",
    "jaxgrad.cuda",
    "jaxgrad.cuda.nvtx",
    "jaxgrad.distributed",
    "jaxgrad.distributed.device_mesh",
    "jaxgrad.distributed.tensor",
    "jaxgrad.distributed.tensor.parallel",
    "jaxgrad.distributed.fsdp",
    "jaxgrad.distributed.nn.functional",
    "jaxgrad.distributed.checkpoint",
    "jaxgrad.distributed.checkpoint.state_dict",
    "jaxgrad.hub",
    "jaxgrad.mps",
    "jaxgrad.overrides",
    "jaxgrad.mtia",
    "jaxgrad.multiprocessing",
    "jaxgrad.quasirandom",
    "jaxgrad.xpu",
    "jaxgrad.testing",
    "jaxgrad.torch_version",
    "jaxgrad.version",
    "jaxgrad.random",
    "jaxgrad.serialization",
    "jaxgrad.tracing",
    "jaxgrad.nn",
    "jaxgrad.nn.attention",
    "jaxgrad.nn.attention.flex_attention",
    "jaxgrad.nn.functional",
    "jaxgrad.nn.init",
    "jaxgrad.nn.module",
    "jaxgrad.nn.parallel",
    "jaxgrad.nn.parameter",
    "jaxgrad.nn.utils",
    "jaxgrad.nn.utils.parametrizations",
    "jaxgrad.nn.utils.parametrize",
    "jaxgrad.nn.utils.prune",
    "jaxgrad.nn.utils.rnn",
    "jaxgrad.optim",
    "jaxgrad.optim.lr_scheduler",
    "jaxgrad.optim.optimizer",
    "jaxgrad.optim.swa_utils",
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
    "jaxgrad.distributions",
    "jaxgrad.distributions.constraint_registry",
    "jaxgrad.distributions.constraints",
    "jaxgrad.distributions.distribution",
    "jaxgrad.distributions.kl",
    "jaxgrad.distributions.transforms",
    "jaxgrad.distributions.utils",
    "jaxgrad.masked",
    "jaxgrad.fft",
    "jaxgrad.linalg",
    "jaxgrad.signal",
    "jaxgrad.signal.windows",
    "jaxgrad.sparse",
    "jaxgrad.library",
    "jaxgrad.special",
    "jaxgrad.amp",
    "jaxgrad.profiler",
    "jaxgrad.utils",
    "jaxgrad.utils._pytree",
    "jaxgrad.utils.benchmark",
    "jaxgrad.utils.collect_env",
    "jaxgrad.utils.dlpack",
    "jaxgrad.utils.model_zoo",
    "jaxgrad.utils.tensorboard",
    "jaxgrad.utils.checkpoint",
    "jaxgrad.utils.data",
    "jaxgrad.utils.data.dataloader",
    "jaxgrad.utils.data.dataset",
    "jaxgrad.utils.data.distributed",
    "jaxgrad.utils.data.sampler",
    "jaxgrad.utils.hooks",
)

# Names such as `float` and `dtype` are dtypes, methods and properties in some stubs. So types go by
# names that begin with an underscore; the tables below have them without it.
HEADER = """\
# Made by `make stubs`; do not edit.
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import Enum, IntEnum
from types import ModuleType, TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

from numpy.typing import NDArray as _NDArray

_F = TypeVar("_F", bound=Callable[..., Any])
_T_co = TypeVar("_T_co", covariant=True)
_Number: TypeAlias = _bool | _int | _float | _complex
"""
ALIASED = ("dtype", "device", "layout", "memory_format")
TYPES = ("bool", "complex", "float", "int", "str", "Number", "NDArray", "F", *ALIASED)
PLAIN = re.compile(rf"\b({'|'.join(TYPES)})\b(?!: [^.])")  # and no name of a parameter

# ---- types that the source leaves open

# parameters by name
PARAMETERS = {
    **dict.fromkeys(("input", "target", "input1", "input2", "x1", "x2", "tensor"), "Tensor"),
    **dict.fromkeys(("anchor", "positive", "negative", "query", "key", "value"), "Tensor"),
    **dict.fromkeys(("weight", "bias", "pos_weight", "running_mean", "running_var"), "Tensor"),
    **dict.fromkeys(("func", "function", "closure"), "Callable[..., Any]"),
    **dict.fromkeys(("size", "kernel_size", "output_size"), "int | Sequence[int]"),
    **dict.fromkeys(("stride", "dilation", "output_padding"), "int | Sequence[int]"),
    **dict.fromkeys(("size_average", "reduce"), "bool | None"),
    "padding": "int | Sequence[int] | str",
    "dtype": "dtype",
    "device": "device | str | int | None",
    "generator": "Generator | None",
    "fill_value": "Number",
    "lr": "float | Tensor",
    "parameters": "Iterable[Tensor]",
    "params": "Iterable[Any]",
}

# results by path
TRANSFORMS = (
    *("grad", "value_and_grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "vmap"),
    "functionalize",
)
METHODS_THAT_GIVE_TENSORS = (
    *("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int"),
    *("long", "short", "where", "__getitem__", "__rfloordiv__", "__rmatmul__", "__rmod__"),
    *("__rpow__", "__rtruediv__"),
)
RETURNS = {
    **{f"jaxgrad.func.{name}": "Callable[..., Any]" for name in TRANSFORMS},
    **{f"jaxgrad.Tensor.{name}": "Tensor" for name in METHODS_THAT_GIVE_TENSORS},
    **dict.fromkeys(("jaxgrad.from_jax", "jaxgrad.to_jax"), "Callable[..., Any]"),
    **dict.fromkeys(("jaxgrad.dtype.to_complex", "jaxgrad.dtype.to_real"), "dtype"),
    "jaxgrad.Tensor.__iter__": "Iterator[Tensor]",
    "jaxgrad.Tensor.backward": "None",
    "jaxgrad.autograd.grad": "tuple[Any, ...]",
}

# Python's own methods, which are declared besides the public ones, and their results
SPECIAL = {
    **{"__init__": "None", "__call__": None, "__enter__": None, "__exit__": "None"},
    **{"__iter__": None, "__next__": None, "__len__": "int", "__contains__": "bool"},
    **{"__getitem__": None, "__setitem__": "None", "__delitem__": "None", "__getattr__": "Any"},
    **{"__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex"},
    **{"__index__": "int", "__array__": "NDArray[Any]", "__jax_array__": "Any"},
    **{"__dlpack__": "Any", "__dlpack_device__": "Any", "__reversed__": None},
    **{"__add__": None, "__iadd__": None, "__or__": None, "__ior__": None, "__ror__": None},
    **{"__rtruediv__": None, "__rpow__": None, "__rmatmul__": None, "__rfloordiv__": None},
    "__rmod__": None,
}

# attributes and properties by class
ATTRIBUTES = {
    "BackwardCFunction": {"saved_tensors": "tuple[Tensor, ...]"},
    "Tensor": {
        "grad": "Tensor | Any",  # None before a backward pass, which programs know
        **dict.fromkeys(("T", "H", "mT", "mH", "real", "imag", "data"), "Tensor"),
        **{"shape": "Size", "dtype": "dtype", "device": "device"},
        **dict.fromkeys(("itemsize", "nbytes"), "int"),
    },
    "device": {"type": "str", "index": "int | None"},
    "dtype": {
        **dict.fromkeys(("is_complex", "is_floating_point", "is_signed"), "bool"),
        **{"itemsize": "int", "category": "int", "name": "str"},
    },
    "finfo": dict.fromkeys(("eps", "max", "min", "resolution", "tiny"), "float"),
    "iinfo": dict.fromkeys(("bits", "max", "min"), "int"),
}

# what an instance has that its class does not define
ADDED = {
    "FunctionCtx": [
        "@property",
        "def saved_tensors(self) -> tuple[Tensor, ...]: ...",
        "needs_input_grad: tuple[bool, ...]",
        "def __getattr__(self, name: str) -> Any: ...",
        "def __setattr__(self, name: str, value: Any) -> None: ...",
    ],
}

BASES = {
    types.ModuleType: "ModuleType",
    tuple: "tuple[Any, ...]",
    list: "list[Any]",
    dict: "dict[Any, Any]",
}

# what no signature expresses
OPTIONS_OF_JIT = (
    'donate: int | str | Sequence[int | str] = "auto", '
    "static_argnames: str | Sequence[str] = (), verify: int | None = None"
)
DECLARATIONS = {
    # JAX's class, whose properties have no Python code
    **{
        f"jaxgrad.{name}": [f"class {name}(RuntimeError): ..."]
        for name in ("AcceleratorError", "OutOfMemoryError")
    },
    "jaxgrad.jit": [
        f"@overload\ndef jit(function: F, *, {OPTIONS_OF_JIT}) -> F: ...",
        f"@overload\ndef jit(function: None = None, *, {OPTIONS_OF_JIT}) -> Callable[[F], F]: ...",
    ],
}

# ---- names


def public_names(module) -> list[str]:
    """What a module offers: the names in `dir`, those that it loads at their first use and those
    in `__all__`, but not what it imports for itself.
    """
    tree = ast.parse(inspect.getsource(module))
    own = {name for statement in tree.body for name in _imported_for_itself(statement)}
    own = set() if module is jaxgrad else own - {*getattr(module, "__all__", ())}
    later = {*getattr(module, "_LATER", ()), *getattr(module, "__all__", ())}
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    names = {*dir(module), *later, *classes} - own
    return sorted(name for name in names if _is_offered(module, name))


def _imported_for_itself(statement):
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return []
    return [a.asname or a.name for a in statement.names if a.asname != a.name]


def _is_offered(module, name):
    if name.startswith("_"):
        return False
    value = getattr(module, name)
    if name.isupper() and not inspect.isclass(value):
        return False  # a constant
    if is_placeholder(value):
        return False
    if isinstance(value, LateModule):
        return False  # another module, for the functions of this one
    return not inspect.ismodule(value) or value.__name__ in MODULES


class Homes:
    """The module that declares each public object."""

    def __init__(self):
        self.names = {name: public_names(importlib.import_module(name)) for name in MODULES}
        self.modules: dict[tuple[str, int], str] = {}
        self.classes: dict[type, tuple[str, str]] = {}
        for module, names in self.names.items():
            for name in names:
                value = getattr(importlib.import_module(module), name)
                self.modules.setdefault((name, id(value)), module)
                if inspect.isclass(value) and value is not typing.Any:
                    self.classes.setdefault(value, (module, name))

    def of(self, name, value) -> str:
        return self.modules[name, id(value)]


# ---- types


def is_generic(kind) -> bool:
    return bool(getattr(kind, "__parameters__", ()))


class Types:
    """Types as one stub spells them; `imported` gathers the names that it takes from others."""

    def __init__(self, module: str, homes: Homes):
        self.module, self.homes = module, homes
        self.imported: set[tuple[str, str]] = set()
        self.results: set[str] = set()  # the classes of results declared so far

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
        return "Self" if kind is typing.Self else "Any"

    def of_class(self, kind) -> str:
        if kind in self.homes.classes:
            return self.public(kind) + ("[Any]" if is_generic(kind) else "")
        if kind.__module__ == "builtins":
            return self.built_in(kind)
        if kind is collections.abc.Sized:
            return "Sized"
        if kind.__module__ == "collections.abc":
            return self.generic(kind, (..., typing.Any) if kind is collections.abc.Callable else ())
        others = {"ndarray": "NDArray[Any]", "Number": "Number"}
        return self.spelled(others.get(kind.__name__, "Any"))

    def built_in(self, kind) -> str:
        if kind in (slice, types.ModuleType, types.FunctionType):
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
        if origin.__module__ not in ("builtins", "collections.abc"):
            return "Any"
        count = 2 if origin in (dict, collections.abc.Mapping) else 1
        items = arguments or (typing.Any,) * count
        inner = ("..." if item is ... else self.text(item) for item in items)
        return f"{origin.__name__}[{', '.join(inner)}]"

    def spelled(self, text: str) -> str:
        """A declaration or a type that is written with plain names."""
        for name in ("Generator", "Tensor", *ALIASED):
            if re.search(rf"\b{name}\b(?!: [^.])", text):
                self.public(getattr(jaxgrad, name))
        return PLAIN.sub(r"_\1", text)


# ---- functions


class Functions:
    """Functions and methods as one stub declares them."""

    def __init__(self, types_: Types):
        self.types = types_

    def lines(self, name, function, path, decorators=(), is_method=False) -> list[str]:
        signature = signature_of(function)
        parameters = self.parameters(signature)
        if is_method:
            parameters[:1] = ["self", *(p for p in parameters[:1] if p.startswith("*"))]
        returned = self.returned(function, signature, path)
        if not is_method and "self" in parameters:
            # an operator of jaxgrad.ops: a method too, or with PyTorch's name for an argument
            parameters[parameters.index("self")] = "self: Tensor"
            returned = returned.replace("Self", "Tensor")
        return [*decorators, f"def {name}({', '.join(parameters)}) -> {returned}: ..."]

    def parameters(self, signature) -> list[str]:
        parameters = [p for p in signature.parameters.values() if not p.name.startswith("_")]
        texts = []
        for kind, prefix, suffix in (
            (inspect.Parameter.POSITIONAL_ONLY, [], ["/"]),
            (inspect.Parameter.POSITIONAL_OR_KEYWORD, [], []),
            (inspect.Parameter.VAR_POSITIONAL, [], []),
            (inspect.Parameter.KEYWORD_ONLY, ["*"], []),
            (inspect.Parameter.VAR_KEYWORD, [], []),
        ):
            part = [text for p in parameters if p.kind is kind for text in self.parameter(p)]
            is_closed = any(text.startswith("*") for text in texts)
            is_unpacked = kind is inspect.Parameter.VAR_KEYWORD and part and part[0][0] != "*"
            star = prefix or (["*"] if is_unpacked else [])
            texts += [*([] if is_closed else star), *part, *suffix] if part else []
        return texts

    def parameter(self, parameter) -> list[str]:
        """One parameter, or for `**options: Unpack[Options]` those that the options name."""
        if typing.get_origin(parameter.annotation) is typing.Unpack:
            options = typing.get_type_hints(*typing.get_args(parameter.annotation))
            return [f"{name}: {self.types.text(kind)} = ..." for name, kind in options.items()]
        if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
            return [parameter.name]
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = f"{stars.get(parameter.kind, '')}{parameter.name}: {self.kind_of(parameter)}"
        is_required = parameter.default is parameter.empty
        return [text if is_required else f"{text} = {default_text(parameter.default)}"]

    def kind_of(self, parameter) -> str:
        if parameter.annotation is not parameter.empty:
            hint = self.types.text(parameter.annotation)
        elif parameter.kind is parameter.VAR_POSITIONAL and parameter.name != "size":
            hint = "Any"
        else:
            plain = type(parameter.default) in (bool, str)
            otherwise = type(parameter.default).__name__ if plain else "Any"
            hint = self.types.spelled(PARAMETERS.get(parameter.name, otherwise))
        is_open = parameter.default is None and "None" not in hint and hint != "Any"
        return f"{hint} | None" if is_open else hint

    def returned(self, function, signature, path) -> str:
        module, _, name = path.rpartition(".")
        if path in RETURNS:
            return self.types.spelled(RETURNS[path])
        if signature.return_annotation is not signature.empty:
            return self.types.text(signature.return_annotation)
        if module == "jaxgrad.nn.functional":
            return self.types.spelled("Tensor")
        return self.types.spelled(SPECIAL.get(name) or returned_by_code(function))


def signature_of(function):
    """A signature, its annotations evaluated as far as they can be."""
    own = vars(function).get("__signature__")
    if own is not None and hasattr(function, "__wrapped__"):
        # of a decorator that adds parameters: the others are those of the function inside
        inner = signature_of(function.__wrapped__)
        parameters = [inner.parameters.get(name, p) for name, p in own.parameters.items()]
        return own.replace(parameters=parameters, return_annotation=inner.return_annotation)
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:
        return inspect.signature(function)


def default_text(default) -> str:
    """A default that a reader can use, else `...`."""
    is_number = type(default) in (bool, int, float) and math.isfinite(default)
    return repr(default) if default is None or type(default) is str or is_number else "..."


def returned_by_code(function) -> str:
    """`None` where no statement returns a value, `Self` where all return `self`, else `Any`."""
    tree = tree_of(function)
    if not isinstance(tree, ast.FunctionDef) or isinstance(tree.body[-1], ast.Raise):
        return "Any"
    nodes = list(_own_nodes(tree))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return "Any"
    values = [node.value for node in nodes if isinstance(node, ast.Return)]
    if not any(values):
        return "None"
    return "Self" if all(getattr(value, "id", "") == "self" for value in values) else "Any"


def tree_of(definition):
    """The syntax tree of a function or class, None without its source."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(definition))).body[0]
    except (OSError, TypeError, SyntaxError):  # no source, or that of a lambda
        return None


def _own_nodes(function):
    """The nodes of a function without those of the functions inside it."""
    stack = list(function.body)
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            stack.extend(ast.iter_child_nodes(node))


# ---- operators


def operator_lines(name, operator, types_: Types) -> list[str]:
    """The overloads of an operator as a function, after the classes of named results."""
    schemas = schemas_of(operator)
    inplace = hasattr(operator.operator, "written_as")
    signatures = [types_.spelled(f"({parameters_of(schema, inplace)})") for schema in schemas]
    signatures = [f"{line} -> {result_of(s)}" for line, s in zip(signatures, schemas, strict=True)]
    lines = overloads(name, signatures)
    doc = sentence(ops.library, operator.operator.name)
    lines[0] = lines[0].removesuffix(" ...") + f'\n    """{doc}"""'
    named = [s for s in schemas if len(s.returns) > 1 and s.returns[0].name is not None]
    classes = dict.fromkeys(result_class(s) for s in named if not inplace)
    classes = [text for text in classes if text not in types_.results]  # an alias shares them
    types_.results.update(classes)
    return [*classes, *lines]


def method_lines(name, operator, types_: Types) -> list[str]:
    """The overloads of an operator whose first argument is the tensor `self`."""
    signatures = []
    for schema in schemas_of(operator):
        first, *others = schema.arguments
        if first.name != "self" or str(first.type) != "Tensor":
            continue
        result = result_of(schema)
        if result.startswith("_"):
            types_.imported.add(("jaxgrad.ops", result))
        inner = ", ".join(["self", *listed(others)])
        signatures.append(f"({inner}) -> {result}")
        if [str(argument.type) for argument in others] == ["int[]"]:
            signatures.append(f"(self, *{others[0].name}: int) -> {result}")
    return overloads(name, map(types_.spelled, signatures))


def overloads(name, signatures) -> list[str]:
    signatures = list(dict.fromkeys(signatures))
    mark = "@overload\n" if len(signatures) > 1 else ""
    return [f"{mark}def {name}{signature}: ..." for signature in signatures]


def schemas_of(operator):
    return [rule.schema for rule in ops.library.table.rules(operator.operator.name)]


def parameters_of(schema, inplace) -> str:
    parameters = listed(schema.arguments)
    if takes_out(schema) and not inplace:
        kind = "Tensor" if len(schema.returns) == 1 else "tuple[Tensor, ...]"
        parameters += [*([] if "*" in parameters else ["*"]), f"out: {kind} | None = None"]
    return ", ".join(parameters)


def listed(arguments) -> list[str]:
    """Arguments of a schema as parameters of Python."""
    parameters = []
    for argument in arguments:
        if argument.keyword_only and "*" not in parameters:
            parameters.append("*")
        is_required = argument.default is REQUIRED
        default = "" if is_required else f" = {default_text(argument.default)}"
        parameters.append(f"{public_name(argument)}: {python_type(argument.type)}{default}")
    return parameters


def result_of(schema) -> str:
    if len(schema.returns) > 1 and schema.returns[0].name is None:
        return f"tuple[{', '.join(['Tensor'] * len(schema.returns))}]"
    if len(schema.returns) > 1:
        return f"_{schema.name}_result"
    return "tuple[Tensor, ...]" if schema.returns[0].type.list else "Tensor"


def result_class(schema) -> str:
    fields = "".join(f"\n    {output.name}: Tensor" for output in schema.returns)
    return f"class {result_of(schema)}(NamedTuple):{fields}"


# ---- classes


class Class:
    """A class as one stub declares it, with the members of its private bases."""

    def __init__(self, module: str, name: str, kind: type, types_: Types):
        self.path, self.name, self.kind, self.types = f"{module}.{name}", name, kind, types_
        known = ATTRIBUTES.get(name, {})
        self.known = {name: types_.spelled(text) for name, text in known.items()}
        self.parts = [kind]  # the class and its private bases
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
            for name, hint in self.attributes().items()
            if name not in self.members and not name.startswith("_")
        ]
        lines += map(self.types.spelled, ADDED.get(self.name, ()))
        special = () if issubclass(self.kind, tuple) else SPECIAL
        for name in sorted(self.members):
            if name in special or not name.startswith("_"):
                lines += self.member(name, self.members[name])
        symbols = PROTOCOL if self.name == "Tensor" else ()
        return lines + [self.types.spelled(protocol_line(symbol)) for symbol in symbols]

    def attributes(self) -> dict[str, str]:
        """What the code of the class assigns to `self`, and what the class annotates."""
        attributes = {}
        for part in reversed(self.parts):
            attributes |= dict.fromkeys(assigned_in(part), "Any")
            hints = typing.get_type_hints(part)
            own = vars(part).get("__annotations__", {})
            attributes |= {name: self.types.text(hints[name]) for name in own}
        return attributes

    def member(self, name, value) -> list[str]:
        functions, path = Functions(self.types), f"{self.path}.{name}"
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
            return [f"{name}: {self.known.get(name, self.kind_of(value))}"]
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
        own = list(inspect.signature(getattr(self.kind, name)).parameters.values())
        if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= {
            p.kind for p in own
        }:
            return False
        base = list(inspect.signature(replaced).parameters.values())
        kinds = {parameter.kind for parameter in base}
        if inspect.Parameter.VAR_KEYWORD in kinds and inspect.Parameter.KEYWORD_ONLY not in kinds:
            return False
        asked = [p.name for p in own if p.default is p.empty]
        same = [parameter.name for parameter in base] == [p.name for p in own[: len(base)]]
        return not same or asked != [p.name for p in base if p.default is p.empty]

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


def protocol_line(symbol) -> str:
    """One of Python's operators on tensors."""
    schema = schemas_of(getattr(ops, PROTOCOL[symbol]))[0]
    is_unary = sum(argument.default is REQUIRED for argument in schema.arguments) == 1
    other = "" if is_unary else ", other: Tensor | Number | NDArray[Any]"
    mark = "  # type: ignore[override]" if symbol in ("eq", "ne") else ""
    return f"def __{symbol}__(self{other}) -> Tensor: ...{mark}"


def assigned_in(kind) -> list[str]:
    """The attributes of `self` that the methods of a class assign."""
    tree = tree_of(kind)
    targets = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    stored = (node for node in targets if isinstance(node.ctx, ast.Store))
    return [node.attr for node in stored if getattr(node.value, "id", "") == "self"]


# ---- stubs


class Stub:
    """The stub of one module."""

    def __init__(self, module: str, homes: Homes):
        self.name, self.module, self.homes = module, importlib.import_module(module), homes
        self.types = Types(module, homes)
        self.imports = self.types.imported

    def text(self) -> str:
        body = [line for name in self.homes.names[self.name] for line in self.declaration(name)]
        self.imports |= {(self.name, f"{child} as {child}") for child in self.children()}
        is_root = self.name == "jaxgrad"
        aliases = [f"_{name} = {name}" for name in ALIASED] if is_root else []
        return "\n".join([HEADER, *import_lines(self.imports), *aliases, *body, ""])

    def children(self):
        """The public modules inside this one that it holds as attributes."""
        inner = (m.rpartition(".") for m in MODULES)
        names = [name for package, _, name in inner if package == self.name]
        return [name for name in names if inspect.ismodule(getattr(self.module, name, None))]

    def declaration(self, name) -> list[str]:
        value, path = getattr(self.module, name), f"{self.name}.{name}"
        if inspect.ismodule(value):
            package, _, last = value.__name__.rpartition(".")
            self.imports.add((package, f"{last} as {name}"))
            return []
        if self.homes.of(name, value) != self.name:
            self.imports.add((self.homes.of(name, value), f"{name} as {name}"))
            return []
        if path in DECLARATIONS:
            return list(map(self.types.spelled, DECLARATIONS[path]))
        if hasattr(value, "operator"):
            return operator_lines(name, value, self.types)
        if inspect.isclass(value):
            return Class(self.name, name, value, self.types).lines()
        if inspect.isroutine(value):
            return Functions(self.types).lines(name, value, path)
        return [f"{name}: {self.types.text(type(value))}"]


def import_lines(imports) -> list[str]:
    modules: dict[str, list[str]] = {}
    for module, name in sorted(imports):
        modules.setdefault(module, []).append(f"    {name},\n")
    return [f"from {module} import (\n{''.join(names)})" for module, names in modules.items()]


def stubs() -> dict[Path, str]:
    """The text of every stub by its path."""
    homes = Homes()
    files = {name: Path(importlib.import_module(name).__file__) for name in MODULES}
    return {path.with_suffix(".pyi"): Stub(name, homes).text() for name, path in files.items()}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
