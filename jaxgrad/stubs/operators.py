"""Operators as a stub declares them, by the schemas of the table."""

from .. import ops
from ..ops.documentation import public_name, python_type, sentence, takes_out
from ..table import REQUIRED
from .annotations import Types
from .functions import default_text


def operator_lines(name, operator, types_: Types) -> list[str]:
    """The overloads of an operator as a function, after the classes of named results."""
    schemas = schemas_of(operator)
    inplace = hasattr(operator.operator, "written_as")
    signatures = [types_.spelled(f"({parameters_of(schema, inplace)})") for schema in schemas]
    signatures = [f"{line} -> {result_of(s)}" for line, s in zip(signatures, schemas, strict=True)]
    lines = overloads(name, signatures)
    is_copy = operator.operator.name in ops.library.copies
    summary = operator.__doc__.partition("\n")[0] if is_copy else ""
    doc = summary or sentence(ops.library, operator.operator.name)
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
    name = operator.operator.name
    name = ops.library.copies.get(name, name)  # a copy takes what its view takes
    return [rule.schema for rule in ops.library.table.rules(name)]


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
