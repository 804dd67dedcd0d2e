"""Docstrings and signatures of the operators, from their entries of the table.

`document` runs when an operator is made. It reads the operator's entries, which the first call of
the operator needs too.
"""

from __future__ import annotations

import ast
import types
from inspect import Parameter, Signature

from .rules import FAMILIES
from .table import REQUIRED, Argument, Formula, Rule, Schema, Type, Word

PYTHON_TYPES = {
    "Scalar": "Number",
    "ScalarType": "dtype",
    "MemoryFormat": "memory_format",
    "Layout": "layout",
    "Device": "device",
}

# What an argument of a name means in every entry that has it.
ARGUMENTS = {
    "accumulate": "add to the elements instead of replacing them",
    "alpha": "factor of the term that is added or subtracted",
    "condition": "bool tensor; True selects from input, False from other",
    "correction": "the divisor is the number of elements minus this; None means 1",
    "decimals": "number of decimal places to round to",
    "diagonal": "which diagonal: 0 the main one, positive above it, negative below it",
    "dim": "dimension, from -ndim to ndim - 1",
    "dtype": "dtype of the result; the input is cast to it first",
    "grad_output": "gradient with respect to the output",
    "ignore_index": "target value that contributes neither loss nor gradient",
    "index": "int64 positions along the dimension",
    "input_dtype": "dtype of the input of the forward operator",
    "input_sizes": "shape of the input of the forward operator",
    "keepdim": "keep each reduced dimension, with extent 1",
    "mask": "bool tensor that broadcasts to the shape of input",
    "offset": "which diagonal: 0 the main one, positive above it, negative below it",
    "out": "tensor that receives the result; then no input may require grad",
    "reduction": "0: no reduction, 1: mean, 2: sum",
    "rounding_mode": "None: true division, 'trunc': round towards 0, 'floor': round down",
    "storage_offset": "position in the storage of the first element",
    "tensors": "sequence of tensors",
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


OPTIONAL = Text("...")  # the default of a parameter that only some overloads have


def document(function, library, name: str):
    """The operator `function` with the docstring and the signature of its entries.

    `name`: the operator of `library` or its in-place form. Raises TableError where an entry has a
    mistake.
    """
    inplace = library.functional(name) is not None
    rules = library.table.rules(library.functional(name) or name)
    signatures = [signature_of(rule.schema, inplace) for rule in rules]
    function.__doc__ = Docstring(library, name, inplace, rules, signatures).text()
    function.__signature__ = merged(signatures)
    return function


def as_method(function):
    """A copy of an operator whose signature is that of a method: `self` first, and no `out`."""
    method = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    method.__dict__.update(function.__dict__)
    method.__doc__ = function.__doc__
    _, *others = function.__signature__.parameters.values()
    parameters = [Parameter("self", POSITIONAL), *(p for p in others if p.name != "out")]
    if [p.annotation for p in parameters[1:] if p.kind is POSITIONAL] == ["Sequence[int]"]:
        extents = Parameter.VAR_POSITIONAL
        parameters[1] = Parameter(parameters[1].name, extents, annotation=EXTENTS)
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


def returned_type(schema: Schema) -> str:
    """The annotation of what an operator returns; fields show their names."""
    found = schema.returns
    if len(found) > 1:
        return f"({', '.join(f'{r.name}: Tensor' if r.name else 'Tensor' for r in found)})"
    return "tuple[Tensor, ...]" if found[0].type.list else "Tensor"


def public_name(argument: Argument) -> str:
    """What PyTorch's functions call an argument: `input` for `self`."""
    return "input" if argument.name == "self" else argument.name


def takes_out(schema: Schema) -> bool:
    """Whether the function of a schema has `out`: no view has, and no in-place operator."""
    return not (schema.is_view or schema.written or schema.returns[0].type.list)


def signature_of(schema: Schema, inplace: bool = False) -> Signature:
    """One overload as a Python signature."""
    parameters = [_parameter(argument) for argument in schema.arguments]
    if takes_out(schema) and not inplace:
        kind = "Tensor" if len(schema.returns) == 1 else "tuple[Tensor, ...]"
        parameters.append(Parameter("out", KEYWORD, default=None, annotation=Text(f"{kind} | None")))
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
    names = {parameter.name for parameter in positional}
    every = {p.name: p for s in signatures for p in s.parameters.values() if p.name not in names}
    keywords = [p.replace(kind=KEYWORD, default=_default(p)) for p in every.values()]
    keywords.sort(key=lambda parameter: parameter.name == "out")
    kinds = dict.fromkeys(signature.return_annotation for signature in signatures)
    return Signature([*positional, *keywords], return_annotation=Text(" | ".join(kinds)))


def _positional(signature) -> list[Parameter]:
    return [each for each in signature.parameters.values() if each.kind is POSITIONAL]


def _loosened(parameters, signatures) -> list[Parameter]:
    """Positional parameters that are optional from the first that some overload can do without."""
    found, required = [], True
    for position, parameter in enumerate(parameters):
        same = [signature.parameters.get(parameter.name) for signature in signatures]
        required = required and all(p is not None and p.default is p.empty for p in same)
        there = [s[position] for s in map(_positional, signatures) if position < len(s)]
        kinds = dict.fromkeys(kind for p in there for kind in p.annotation.split(" | "))
        default = Parameter.empty if required else _default(parameter)
        found.append(parameter.replace(default=default, annotation=Text(" | ".join(kinds))))
    return found


def _default(parameter):
    return OPTIONAL if parameter.default is Parameter.empty else parameter.default


# docstrings


class Docstring:
    """What `help` shows of an operator, or of its in-place form, paragraph by paragraph."""

    def __init__(self, library, name, inplace, rules, signatures):
        self.library, self.name, self.inplace = library, name, inplace
        self.rules, self.signatures = rules, signatures
        self.pointwise = [rule for rule in rules if self.is_pointwise(rule)]
        self.broadcasts = any(len(rule.tensor_arguments) > 1 for rule in self.pointwise)

    def text(self) -> str:
        formulas = [line for rule in self.rules for line in self.formulas(rule)]
        sections = {
            "Arguments": self.arguments(),
            "Returns": self.returns(),
            "Raises": self.errors(),
            "Formulas": formulas,
            "Example": self.example(),
        }
        paragraphs = [*self.summary()]
        for title, lines in sections.items():
            paragraphs.append("\n    ".join([f"{title}:", *lines]))
        return "\n\n".join(paragraphs)

    def is_pointwise(self, rule: Rule) -> bool:
        element_wise = Word("auto_element_wise") in rule.tangents.values()
        return element_wise or rule.schema.name in self.library.pointwise

    def summary(self):
        table, entry = self.library.table, self.rules[0].schema.name
        yield table.doc(entry) or f"The operator `{entry}` of {table.path}."
        if self.inplace:
            yield f"The in-place form of `{self.name[:-1]}`: it writes to its first argument."
        if len(self.signatures) > 1:
            yield "\n".join(f"    {self.name}{signature}" for signature in self.signatures)

    def arguments(self):
        kinds: dict[str, dict[str, None]] = {}
        for signature in self.signatures:
            for name, parameter in signature.parameters.items():
                kinds.setdefault(name, {})[parameter.annotation] = None
        for name in sorted(kinds, key="out".__eq__):
            tensor = self.broadcasts and name != "out" and "Tensor" in kinds[name]
            said = [ARGUMENTS.get(name), "shapes broadcast, dtypes promote" if tensor else None]
            yield f"{name}: {': '.join([' | '.join(kinds[name]), *filter(None, said)])}"

    def returns(self):
        kinds = dict.fromkeys(signature.return_annotation for signature in self.signatures)
        yield " | ".join(kinds) + self.returned()

    def returned(self) -> str:
        if self.inplace:
            return ": the first argument"
        if self.rules[0].is_view:
            return ": a view, which shares the storage of the first argument"
        shape = "to which the arguments broadcast" if self.broadcasts else "of the argument"
        return f": of the shape {shape}" if self.pointwise else ""

    def errors(self):
        several = len(self.rules) > 1
        yield f"TypeError: {'no overload fits' if several else 'the schema does not fit'} the arguments"
        if self.broadcasts:
            yield "RuntimeError: the shapes do not broadcast"
        if any("dim" in signature.parameters for signature in self.signatures):
            yield "IndexError: a dimension is out of range"
        if self.inplace:
            yield "RuntimeError: the first argument is a leaf that requires grad, outside no_grad()"
            yield "RuntimeError: it cannot hold the shape or the dtype of the result"

    def formulas(self, rule: Rule):
        """Those of one overload, as they stand in its entry."""
        yield rule.schema.text
        yield f"    value: {self.value(rule)}"
        for names, formula in rule.gradients:
            yield f"    gradient of {', '.join(names)}: {_shown(formula)}"
        if rule.differentiable_inputs:
            for name in rule.differentiable_outputs:
                yield f"    tangent of {name}: {_shown(rule.tangents.get(name, TRANSPOSE))}"

    def value(self, rule: Rule) -> str:
        if rule.forward is not None:
            return rule.forward.text
        function, names = self.library.value_function(rule), _names_of_value(rule.schema)
        found = (f"{f.__name__}.{n}" for f in FAMILIES for n in names if getattr(f, n, 0) is function)
        return next(found, rule.schema.name)

    def example(self):
        """The entry's example as a doctest; of an in-place form, that it returns its argument."""
        text = self.library.table.example(self.rules[0].schema.name)
        call, result = text.rsplit(" -> ", 1)
        yield ">>> import jaxgrad as torch"
        if not self.inplace:
            yield from (f">>> {call}", result)
            return
        tree = ast.parse(call, mode="eval").body
        first, owner = tree.args[0], ast.unparse(tree.func.value)
        yield f">>> x = {call[first.col_offset : first.end_col_offset]}"
        yield f">>> {owner}.{self.name}(x{call[first.end_col_offset :]} is x"
        yield "True"


TRANSPOSE = Word("transpose")


def _names_of_value(schema: Schema) -> list[str]:
    bases = [schema.name, schema.name[:-1]] if schema.inplace else [schema.name]
    return [name for base in bases for name in (f"{base}_{schema.overload}", base)]


def _shown(formula) -> str:
    return formula.text if isinstance(formula, Formula) else WORDS.get(formula.kind, formula.message)
