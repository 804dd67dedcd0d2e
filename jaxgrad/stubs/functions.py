"""Functions and methods as a stub declares them."""

import ast
import functools
import inspect
import math
import textwrap
import typing

from .annotations import Types
from .left_open import PARAMETERS, RETURNS, SPECIAL


class Functions:
    """Functions and methods as one stub declares them."""

    def __init__(self, types_: Types, kinds: dict[str, str] | None = None):
        self.types = types_
        self.kinds = kinds or {}  # of parameters that have no annotation

    def lines(self, name, function, path, decorators=(), is_method=False) -> list[str]:
        """The declaration of a function, or those of its overloads."""
        overloads = typing.get_overloads(function)
        if overloads:
            decorators = ["@overload", *decorators]
        declared = overloads or [function]
        return [
            line
            for variant in declared
            for line in self.declaration(name, variant, path, decorators, is_method)
        ]

    def declaration(self, name, function, path, decorators, is_method) -> list[str]:
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
        elif parameter.name in self.kinds:
            hint = self.kinds[parameter.name]
        elif parameter.kind is parameter.VAR_POSITIONAL and parameter.name != "size":
            hint = "Any"
        else:
            plain = type(parameter.default) in (bool, str)
            otherwise = type(parameter.default).__name__ if plain else "Any"
            hint = self.types.spelled(PARAMETERS.get(parameter.name, otherwise))
        is_open = parameter.default is None and "None" not in hint and hint != "Any"
        return f"{hint} | None" if is_open else hint

    def returned(self, function, signature, path) -> str:
        name = path.rpartition(".")[2]
        if path in RETURNS:
            return self.types.spelled(RETURNS[path])
        if is_context(function):
            (held,) = typing.get_args(signature.return_annotation) or (typing.Any,)
            return f"AbstractContextManager[{self.types.text(held)}]"
        if signature.return_annotation is not signature.empty:
            return self.types.text(signature.return_annotation)
        return self.types.spelled(SPECIAL.get(name) or returned_by_code(function))


def signature_of(function):
    """A signature, its annotations evaluated as far as they can be."""
    shown = vars(function).get("__signature__")
    if shown is not None and hasattr(function, "__wrapped__"):
        # of a decorator that adds parameters: the others are those of the function inside
        inner = signature_of(function.__wrapped__)
        parameters = [inner.parameters.get(name, p) for name, p in shown.parameters.items()]
        return shown.replace(parameters=parameters, return_annotation=inner.return_annotation)
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:
        return inspect.signature(function)


def is_context(function) -> bool:
    """Whether a function is a generator that `contextlib.contextmanager` wraps."""
    wrapped = getattr(function, "__wrapped__", None)
    return inspect.isgeneratorfunction(wrapped) and not inspect.isgeneratorfunction(function)


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


@functools.cache
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
