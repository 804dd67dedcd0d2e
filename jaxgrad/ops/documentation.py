"""Docstrings and signatures of the operators, from their entries of the table.

`document` runs when an operator is made. It reads the operator's entries, which the first call of
the operator needs too.
"""

from __future__ import annotations

import ast
import re
import types
from functools import partial
from inspect import Parameter, Signature

from ..table import REQUIRED, Argument, Formula, Rule, Schema, Type, Word
from ..table.grammar import expression

PYTHON_TYPES = {
    "Scalar": "Number",
    "ScalarType": "dtype",
    "MemoryFormat": "memory_format",
    "Layout": "layout",
    "Device": "device",
}

# The descriptions of arguments that mean the same in every entry.
ARGUMENTS = {
    "accumulate": "add to the elements instead of replacing them",
    "alpha": "factor of the term that is added or subtracted",
    "beta": "factor of input",
    "condition": "bool, shapes broadcast; True selects from input, False from other",
    "correction": "the divisor is the number of elements minus this; None means 1",
    "decimals": "number of decimal places to round to",
    "diagonal": "which diagonal: 0 the main one, positive above it, negative below it",
    **dict.fromkeys(
        ("axis0", "axis1", "dim", "dim0", "dim1", "dim2", "dimension"),
        "dimension, from -ndim to ndim - 1",
    ),
    "dtype": "dtype of the result; the input is cast to it first",
    "grad_output": "gradient of the forward operator's output, of its shape",
    "ignore_index": "target value that contributes neither loss nor gradient",
    "input_dtype": "dtype of the input of the forward operator",
    "input_sizes": "shape of the input of the forward operator",
    "keepdim": "keep each reduced dimension, with extent 1",
    "mask": "bool, shapes broadcast",
    "offset": "which diagonal: 0 the main one, positive above it, negative below it",
    "out": "tensor that receives the result; then no input may require grad",
    "reduction": "0: no reduction, 1: mean, 2: sum",
    "rounding_mode": "None: true division, 'trunc': round towards 0, 'floor': round down",
    "scale_grad_by_freq": "divide the gradient of each row by the number of its indices",
    "storage_offset": "position of the first element in the storage; None: that of input",
    **dict.fromkeys(("train", "training"), "compute as in training, not as in evaluation"),
    "unbiased": "divide by the number of elements minus 1 instead of the number of elements",
}

WORDS = {
    "auto": "derived by JAX from the value",
    "auto_element_wise": "the formula of the gradient, applied to the tangent",
    "auto_linear": "the operator itself, applied to the tangent",
    "non_differentiable": "none",
    "transpose": "the transpose of the gradient",
    "zeros": "0",
}


class Text(str):
    """A type or default as a signature shows it, without quotes."""

    __repr__ = str.__str__


SELF = re.compile(r"\bself\b")
OPTIONAL = Text("...")  # the default of a parameter that only some overloads have


def document(function, library, name: str):
    """Give `function` the docstring and the signature of its entries, and return it.

    `name`: the operator of `library` or its in-place form. Raises TableError if an entry has a
    mistake.
    """
    kept = library.kept.help_of(name) if library.kept is not None else None
    function.__doc__, function.__signature__ = kept or texts(library, name)
    return function


def texts(library, name: str) -> tuple[str, Signature]:
    """The docstring and the signature of an operator or its in-place form, from its entries."""
    inplace = library.functional(name) is not None
    rules = library.table.rules(library.functional(name) or name)
    signatures = [signature_of(rule.schema, inplace) for rule in rules]
    text = Docstring(library, name, inplace, rules, signatures).text()
    return text, merged(signatures)


def as_method(function, name: str, is_protocol: bool = False, beside_array=None):
    """A copy of an operator with the signature of a method: `self` first, and no `out`.

    name: the method's name in `Tensor`, by which a `__torch_function__` gets it. is_protocol: a
    special method, which returns NotImplemented for objects that it does not know. beside_array:
    gives the result where the last argument is an array of NumPy; None: arrays become tensors.
    """
    # a copy, since a function has one signature; it shares the closure, and so the plans
    call = partial(function.operator.general_call, method=name, beside_array=beside_array)
    variables = {"general_call": call, "is_protocol": is_protocol}
    closure = tuple(
        types.CellType(variables[variable]) if variable in variables else cell
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True)
    )
    method = types.FunctionType(function.__code__, function.__globals__, name, None, closure)
    method.__dict__.update(function.__dict__)
    method.__doc__, method.__module__ = function.__doc__, function.__module__
    _, *others = function.__signature__.parameters.values()
    parameters = [Parameter("self", POSITIONAL), *(p for p in others if p.name != "out")]
    first, *rest = [p for p in parameters[1:] if p.kind is POSITIONAL] or [None]
    if first is not None and not rest and "Sequence[int]" in first.annotation.split(" | "):
        kinds = union([EXTENTS, first.annotation])
        parameters[1] = Parameter(first.name, Parameter.VAR_POSITIONAL, annotation=kinds)
    method.__signature__ = function.__signature__.replace(parameters=parameters)
    return method


# signatures

POSITIONAL, KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
EXTENTS = Text("int | Sequence[int]")


def python_type(kind: Type) -> str:
    """The annotation of an argument of a schema's type."""
    item = PYTHON_TYPES.get(kind.base, kind.base)
    if kind.list:
        sequence = f"Sequence[{item} | None]" if kind.optional_items else f"Sequence[{item}]"
        item = f"{item} | {sequence}" if kind.size is not None else sequence
    return f"{item} | None" if kind.optional else item


def union(annotations) -> Text:
    """The union of annotations, None last."""
    parts = dict.fromkeys(part for annotation in annotations for part in annotation.split(" | "))
    # the sort is stable: None goes last, and the others keep their order
    return Text(" | ".join(sorted(parts, key="None".__eq__)))


def returned_type(schema: Schema) -> str:
    """The annotation of an operator's result; a named tuple shows its field names."""
    returns = schema.returns
    if len(returns) > 1:
        return f"({', '.join(f'{r.name}: Tensor' if r.name else 'Tensor' for r in returns)})"
    return "tuple[Tensor, ...]" if returns[0].type.list else "Tensor"


def public_name(argument: Argument) -> str:
    """The name of an argument in PyTorch's functions: `input` for `self`."""
    return in_public_names(argument.name)


def takes_out(schema: Schema) -> bool:
    """Whether the function of a schema has `out`: views and in-place operators have not."""
    return not (schema.is_view or schema.written or schema.returns[0].type.list)


def signature_of(schema: Schema, inplace: bool = False) -> Signature:
    """One overload as a Python signature."""
    parameters = [_parameter(argument) for argument in schema.arguments]
    if takes_out(schema) and not inplace:
        kind = Text("Tensor | None" if len(schema.returns) == 1 else "tuple[Tensor, ...] | None")
        parameters.append(Parameter("out", KEYWORD, default=None, annotation=kind))
    return Signature(parameters, return_annotation=Text(returned_type(schema)))


def _parameter(argument: Argument) -> Parameter:
    kind = KEYWORD if argument.keyword_only else POSITIONAL
    default = Parameter.empty if argument.default is REQUIRED else argument.default
    annotation = Text(python_type(argument.type))
    return Parameter(public_name(argument), kind, default=default, annotation=annotation)


def merged(signatures: list[Signature]) -> Signature:
    """One signature to which the calls of all overloads bind."""
    if len(signatures) == 1:
        return signatures[0]
    longest = max(map(_positional, signatures), key=len)
    positional = _loosened(longest, signatures)
    others = dict.fromkeys(name for signature in signatures for name in signature.parameters)
    names = others.keys() - {parameter.name for parameter in positional}
    keywords = [_common(name, signatures) for name in others if name in names]
    keywords.sort(key=lambda parameter: parameter.name == "out")
    kinds = union(signature.return_annotation for signature in signatures)
    return Signature([*positional, *keywords], return_annotation=kinds)


def _common(name, signatures) -> Parameter:
    """The keyword parameter `name`, merged from the signatures that have it."""
    parameters = [s.parameters[name] for s in signatures if name in s.parameters]
    kinds = union(parameter.annotation for parameter in parameters)
    # optional even where some overloads require it: a call of another one leaves it out
    return parameters[0].replace(kind=KEYWORD, default=_default(parameters[0]), annotation=kinds)


def _positional(signature) -> list[Parameter]:
    return [
        parameter for parameter in signature.parameters.values() if parameter.kind is POSITIONAL
    ]


def _loosened(parameters, signatures) -> list[Parameter]:
    """Positional parameters, optional from the first one that some overload does not require."""
    loosened, required = [], True
    for position, parameter in enumerate(parameters):
        same = [signature.parameters.get(parameter.name) for signature in signatures]
        required = required and all(p is not None and p.default is p.empty for p in same)
        there = [s[position] for s in map(_positional, signatures) if position < len(s)]
        default = Parameter.empty if required else _default(parameter)
        kinds = union(counterpart.annotation for counterpart in there)
        loosened.append(parameter.replace(default=default, annotation=kinds))
    return loosened


def _default(parameter):
    return OPTIONAL if parameter.default is Parameter.empty else parameter.default


# docstrings


def sentence(library, name: str) -> str:
    """The first sentence of an operator's docstring, from its entry."""
    doc = library.table.doc(name) or f"The operator `{name}` of {library.table.path}."
    return in_public_names(doc)


def in_public_names(text: str) -> str:
    """A text of the table with `input` for `self`, as PyTorch's functions name it."""
    return SELF.sub("input", text)


class Docstring:
    """The docstring of an operator or its in-place form, paragraph by paragraph."""

    def __init__(self, library, name, inplace, rules, signatures):
        self.library, self.name, self.inplace = library, name, inplace
        self.rules, self.signatures = rules, signatures
        self.pointwise = [rule for rule in rules if self.is_pointwise(rule)]
        self.broadcasts = any(len(rule.tensor_arguments) > 1 for rule in self.pointwise)
        known = library.table.arguments(rules[0].schema.name)
        self.descriptions = {
            in_public_names(name): in_public_names(text) for name, text in known.items()
        }

    def text(self) -> str:
        paragraphs = [*self.summary()]
        for title in ("Arguments", "Returns", "Raises", "Formulas", "Example"):
            lines = list(getattr(self, title.lower())())
            if lines:
                paragraphs.append("\n    ".join([f"{title}:", *lines]))
        return "\n\n".join(paragraphs)

    def is_pointwise(self, rule: Rule) -> bool:
        element_wise = Word("auto_element_wise") in rule.tangents.values()
        return element_wise or rule.schema.name in self.library.pointwise

    def summary(self):
        yield sentence(self.library, self.rules[0].schema.name)
        if self.inplace:
            yield f"The in-place form of `{self.name[:-1]}`: it writes to its first argument."
        if len(self.signatures) > 1:
            yield "\n".join(f"    {self.name}{signature}" for signature in self.signatures)

    def arguments(self):
        kinds: dict[str, list[str]] = {}
        for signature in self.signatures:
            for name, parameter in signature.parameters.items():
                kinds.setdefault(name, []).append(parameter.annotation)
        for name in sorted(kinds, key="out".__eq__):
            shapes = self.shapes() if "Tensor" in kinds[name] else None
            text = self.descriptions.get(name) or ARGUMENTS.get(name) or shapes
            yield f"{name} ({union(kinds[name])}){f': {text}' if text else ''}"

    def shapes(self) -> str | None:
        """The shapes that the tensors may have, for a pointwise operator."""
        if self.broadcasts:
            return "shapes broadcast, dtypes promote"
        return "of any shape" if self.pointwise else None

    def returns(self):
        kinds = union(signature.return_annotation for signature in self.signatures)
        text = "; ".join(filter(None, self.returned()))
        yield f"{kinds}{f': {text}' if text else ''}"

    def returned(self):
        if self.inplace:
            yield "the first argument"
            return
        yield self.descriptions.get("returns") or self.pointwise_result()
        if self.rules[0].is_view:
            yield "a view, which shares the storage of the first argument"

    def pointwise_result(self) -> str | None:
        """The shape of a pointwise operator's result, and its dtype where the function tells it."""
        if not self.pointwise:
            return None
        shape = "to which the tensors broadcast" if self.broadcasts else "of the argument"
        dtype = getattr(self.library.value_function(self.rules[0]), "result_dtype", None)
        return f"of the shape {shape}{f', {dtype}' if dtype else ''}"

    def raises(self):
        yield "TypeError: the arguments fit no overload"
        if self.broadcasts:
            yield "RuntimeError: the shapes do not broadcast"
        if any("dim" in signature.parameters for signature in self.signatures):
            yield "IndexError: a dimension is out of range"
        if self.inplace:
            yield "RuntimeError: the first argument is a leaf that requires grad, outside no_grad()"
            yield "RuntimeError: it cannot hold the shape or the dtype of the result"

    def formulas(self):
        """The formulas of each overload, as in its entry."""
        for rule in self.rules:
            yield rule.schema.text
            yield f"    value: {self.value(rule)}"
            for names, formula in rule.gradients:
                yield f"    gradient of {', '.join(names)}: {shown(formula)}"
            for name in rule.differentiable_outputs if rule.differentiable_inputs else ():
                yield f"    tangent of {name}: {shown(rule.tangents.get(name, TRANSPOSE))}"

    def value(self, rule: Rule) -> str:
        if rule.forward is not None:
            return rule.forward.text
        schema = rule.schema
        bases = [schema.name, schema.name[:-1]] if schema.inplace else [schema.name]
        names = [name for base in bases for name in (f"{base}_{schema.overload}", base)]
        families = getattr(self.library.functions, "families", {})
        paths = (f"jaxgrad.rules.{families[n]}.{n}" for n in names if n in families)
        return next(paths, schema.name)

    def example(self):
        """The entry's example as a doctest; for an in-place form, that it returns its argument."""
        example = self.library.table.example(self.rules[0].schema.name)
        return () if example is None else self.doctest(*example)

    def doctest(self, call, result):
        yield ">>> import jaxgrad as torch"
        if not self.inplace:
            yield from (f">>> {call}", result)
            return
        tree = expression(call)
        names = [argument.name for argument in self.rules[0].schema.arguments]
        target, owner = tree.args[names.index("self")], ast.unparse(tree.func.value)
        yield f">>> x = {call[target.col_offset : target.end_col_offset]}"
        is_function = "inplace_function" in self.library.tags(self.rules[0].schema.name)
        if owner == "torch" and not is_function:
            others = [ast.unparse(node) for node in tree.args if node is not target]
            others += [ast.unparse(node) for node in tree.keywords]
            yield f">>> x.{self.name}({', '.join(others)}) is x"
        else:
            yield f">>> {owner}.{self.name}(x{call[target.end_col_offset :]} is x"
        yield "True"


TRANSPOSE = Word("transpose")


def shown(formula) -> str:
    """A formula of the table as text, and what a word in its place means."""
    is_formula = isinstance(formula, Formula)
    return formula.text if is_formula else WORDS.get(formula.kind, formula.message)
