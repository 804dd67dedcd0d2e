"""The shipped operators in the file of templates: their rules, and the texts that `help` shows.

It takes milliseconds to read the entry of an operator, to check its formulas and to write its
docstring. `make templates` does so once, and the file has the results under the prefix `= `. The
file has a hash of the sources that it was made from (core/template_store.py). If they have changed,
the entry is read.
"""

from __future__ import annotations

import functools
import json
from inspect import Parameter, Signature

from ..late import LateModule

documentation = LateModule("jaxgrad.ops.documentation")
rule_data = LateModule("jaxgrad.table.rule_data")
store = LateModule("jaxgrad.core.template_store")

FUNCTIONS, MARKS = "= functions", "= marks"


def rules_of(name: str, path: str) -> tuple | None:
    """The rules of an operator of the table in the file `path`; None where they are not kept."""
    data = _find(f"= rules {name}")
    return None if data is None else tuple([rule_data.rule_of(rule, path) for rule in data])


def functions() -> dict | None:
    """The data of `rules.Functions.read`, without reading the families; None if it is not kept."""
    return _find(FUNCTIONS)


def marks_of(name: str) -> dict | None:
    """The marks of the value function of an overload; None where they are not kept."""
    known = _marks(store.shipped())
    return None if known is None else known.get(name, {})


@functools.lru_cache(maxsize=1)
def _marks(file) -> dict | None:
    line = file.find(MARKS)
    return None if line is None else json.loads(line)


def help_of(name: str) -> tuple[str, Signature] | None:
    """The docstring and the signature of an operator; None where they are not kept."""
    data = _find(f"= help {name}")
    if data is None:
        return None
    doc, parameters, returned = data
    text = documentation.Text
    parameters = [_parameter(text, *parameter) for parameter in parameters]
    return doc, Signature(parameters, return_annotation=text(returned))


def _find(key: str):
    line = store.shipped().find(key)
    return None if line is None else json.loads(line)


_KINDS = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _parameter(text, name, is_keyword, annotation, *default) -> Parameter:
    """A parameter of its data. Its default is a value of a schema, or stands for one as a list."""
    value = Parameter.empty
    if default:
        (value,) = default
        value = tuple(value) if type(value) is list else value
        value = text(*value.values()) if type(value) is dict else value
    return Parameter(name, _KINDS[is_keyword], default=value, annotation=text(annotation))


# ---- writing


def records(library) -> dict[str, object]:
    """The lines of the file, by their keys: of all operators of the shipped library."""
    lines, marks = {FUNCTIONS: library.functions.read()}, {}
    for name in library.table.names:
        for primitive in library.find(name).primitives:
            if primitive.marks:
                marks[primitive.rule.schema.full_name] = primitive.marks
        data = [rule_data.data_of(rule) for rule in library.table.rules(name)]
        lines[f"= rules {name}"] = data
        for form in dict.fromkeys((name, f"{name}_", f"{name.removeprefix('_')}_")):
            if library.has(form) and library.canonical(form) == form:
                lines[f"= help {form}"] = _help_data(*documentation.texts(library, form))
    return lines | {MARKS: marks}


def _help_data(doc: str, signature: Signature) -> list:
    parameters = [_parameter_data(parameter) for parameter in signature.parameters.values()]
    return [doc, parameters, signature.return_annotation]


def _parameter_data(parameter: Parameter) -> list:
    default = parameter.default
    if type(default) is documentation.Text:
        default = {"text": default}
    kind = parameter.kind is Parameter.KEYWORD_ONLY
    data = [parameter.name, kind, parameter.annotation]
    return data if default is Parameter.empty else [*data, default]
