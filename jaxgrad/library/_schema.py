"""Schemas of operators that users define: inferred from annotations, parsed, bound to calls."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import json
import operator
import types
import typing

import jax

from ..core import dtypes
from ..core.device import device
from ..table.schema import REQUIRED, Schema, SchemaError, parse_schema
from ..tape.tensor import Tensor

_BASES = {
    **{Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str"},
    **{dtypes.dtype: "ScalarType", device: "Device", frozenset((int, float, bool)): "Scalar"},
}
_ITEMS = ("Tensor", "Tensor?", "SymInt", "float", "bool", "Scalar")
_OPTIONAL_LISTS = ("SymInt", "float", "bool")
_RESULTS = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")
_LISTS = (list, collections.abc.Sequence)


def infer_schema(
    prototype_function, /, *, mutates_args, op_name: str | None = None, tags=()
) -> str:
    """Infer the schema of an operator from the annotations of a function.

    prototype_function: a function whose parameters and result are annotated: Tensor, int, float,
        bool, str, dtype, device, int | float | bool, `Optional[...]` and `Sequence[...]` of them;
        the result may be a tuple, or None.
    mutates_args: the names of the parameters that it writes to, or "unknown" for every tensor.
    op_name: a name to put before the schema.
    tags: accepted for PyTorch's code, without effect.

    Raises ValueError for a parameter or result without a type, or of another type.

    >>> from jaxgrad import Tensor
    >>> def scaled(x: Tensor, *, factor: float = 2.0) -> Tensor: ...
    >>> jaxgrad.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, *, float factor=2.0) -> Tensor'
    """
    try:
        signature = inspect.signature(prototype_function, eval_str=True)
    except NameError as error:
        raise ValueError(f"infer_schema(func): cannot evaluate an annotation: {error}") from None
    written = _names(mutates_args, signature)
    texts = []
    for number, parameter in enumerate(signature.parameters.values()):
        is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if is_keyword and "*" not in texts:
            texts.append("*")
        texts.append(_parameter(parameter, number, written, signature))
    result = _result(signature.return_annotation, signature)
    return f"{op_name or ''}({', '.join(texts)}) -> {result}"


def _refusal(why, signature):
    return ValueError(f"infer_schema(func): {why}. Got func with signature {signature}")


def _names(mutates_args, signature):
    if mutates_args == "unknown":
        return mutates_args
    if isinstance(mutates_args, str):
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated "
            f"or the string 'unknown', but is {mutates_args!r}"
        )
    unknown = set(mutates_args) - set(signature.parameters)
    if unknown:
        raise _refusal(
            f"{sorted(unknown)} in mutates_args were not found in the custom op's signature",
            signature,
        )
    return set(mutates_args)


def _parameter(parameter, number, written, signature) -> str:
    name, kinds = parameter.name, inspect.Parameter
    if parameter.kind not in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
        why = "We do not support positional-only args, varargs, or varkwargs"
        raise _refusal(why, signature)
    if parameter.annotation is kinds.empty:
        raise _refusal(f"Parameter {name} must have a type annotation", signature)
    text = _type(parameter.annotation)
    if text is None:
        why = f"Parameter {name} has unsupported type {parameter.annotation}"
        if typing.get_origin(parameter.annotation) is tuple:
            why += ": use a list in place of a tuple"
        raise _refusal(why, signature)
    if name in written or (written == "unknown" and text.startswith("Tensor")):
        if not text.startswith("Tensor"):
            why = f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors"
            raise _refusal(f"{why} can be mutated", signature)
        text = f"Tensor(a{number}!){text.removeprefix('Tensor')}"
    if parameter.default is kinds.empty:
        return f"{text} {name}"
    return f"{text} {name}={_default(parameter, signature)}"


def _default(parameter, signature) -> str:
    value = parameter.default
    if value is None or isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | device):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, dtypes.dtype):
        return str(value).rpartition(".")[2]
    why = f"Parameter {parameter.name} has an unsupported default value type {type(value)}"
    raise _refusal(why, signature)


def _type(annotation) -> str | None:
    """The type in the language of schemas, or None if it has none."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [part for part in parts if part is not type(None)]
        text = _BASES.get(frozenset(inner)) if len(inner) > 1 else _type(inner[0])
        if len(inner) == len(parts) or text is None:
            return text
        is_list = text.endswith("[]")
        return None if is_list and text[:-2] not in _OPTIONAL_LISTS else f"{text}?"
    if origin in _LISTS:
        item = _type(parts[0])
        return f"{item}[]" if item in _ITEMS else None
    return _BASES.get(annotation)


def _result(annotation, signature) -> str:
    if annotation is inspect.Signature.empty:
        raise _refusal("No return type annotation was provided. Please add one", signature)
    if annotation in (None, type(None)):
        return "()"
    is_tuple = typing.get_origin(annotation) is tuple
    parts = typing.get_args(annotation) if is_tuple else (annotation,)
    texts = [None if typing.get_origin(p) is _LISTS[1] else _type(p) for p in parts]
    for part, text in zip(parts, texts, strict=True):
        if text not in _RESULTS:
            raise _refusal(f"Return has unsupported type {part}", signature)
    return f"({', '.join(texts)})" if is_tuple else texts[0]


def parse(namespace: str, text: str) -> Schema:
    """The schema of `name.overload(...) -> ...`. Raises RuntimeError if it cannot be one."""
    try:
        schema = parse_schema(text)
    except SchemaError as error:
        raise RuntimeError(f"{namespace}::{text}: no schema: {error}") from None
    arguments = [
        dataclasses.replace(a, default=_default_value(a.type.base, a.default))
        for a in schema.arguments
    ]
    full_schema = dataclasses.replace(
        schema, arguments=tuple(arguments), text=f"{namespace}::{text.strip()}"
    )
    _check_aliases(full_schema)
    return full_schema


def _default_value(base, value):
    if isinstance(value, str) and base in ("ScalarType", "Device"):
        return device(value) if base == "Device" else getattr(dtypes, value)
    return value


def _check_aliases(schema):
    written = {a.type.alias for a in schema.arguments if a.type.written}
    marked = [*schema.arguments, *schema.returns]
    views = {spec.type.alias for spec in marked} - written - {None}
    if views:
        raise RuntimeError(
            f"{schema.text}: a result that is a view of an argument is supported in no version "
            "yet: return a clone, and leave out the alias"
        )


def _tensor(value):
    if not isinstance(value, Tensor | jax.Array):
        raise TypeError
    return value


def _float(value):
    if isinstance(value, str) or (isinstance(value, Tensor) and value.ndim):
        raise TypeError
    return float(value)


def _instance(*kinds):
    def check(value):
        if not isinstance(value, kinds):
            raise TypeError
        return value

    return check


def _number(value):
    return value if isinstance(value, int | float | complex) else value.item()


_CONVERTERS = {
    "Tensor": _tensor,
    "int": operator.index,
    "float": _float,
    "bool": _instance(bool),
    "str": _instance(str),
    "Scalar": _number,
    "ScalarType": dtypes.as_dtype,
    "Device": device,
}


def _converted(kind, value):
    if value is None:
        if kind.optional:
            return None
        raise TypeError
    convert = _CONVERTERS.get(kind.base, lambda value: value)
    if not kind.list:
        return convert(value)
    if not isinstance(value, list | tuple):
        raise TypeError
    items = [None if kind.optional_items and item is None else convert(item) for item in value]
    return items


def bind(schema: Schema, args, kwargs) -> list:
    """The arguments of a call in the schema's order, converted, with the defaults filled in.

    Raises RuntimeError if the call does not fit the schema.
    """
    name = schema.text.partition("(")[0]
    positional = [a.name for a in schema.arguments if not a.keyword_only]
    if len(args) > len(positional):
        raise RuntimeError(
            f"{name}() takes {len(positional)} positional argument(s) but {len(args)} was/were "
            f"given. Declaration: {schema.text}"
        )
    values = dict(zip(positional, args, strict=False))
    for key, value in kwargs.items():
        if key not in schema.names or key in values:
            why = f"got two values for argument '{key}'" if key in values else ""
            why = why or f"Unknown keyword argument '{key}' for operator '{name}'"
            raise RuntimeError(f"{name}() {why}. Schema: {schema.text}")
        values[key] = value
    return [_take(name, schema, argument, values) for argument in schema.arguments]


def _take(name, schema, argument, values):
    if argument.name not in values:
        if argument.default is REQUIRED:
            raise RuntimeError(
                f"{name}() is missing value for argument '{argument.name}'. "
                f"Declaration: {schema.text}"
            )
        return argument.default
    value = values[argument.name]
    try:
        return _converted(argument.type, value)
    except (TypeError, ValueError, AttributeError):
        raise RuntimeError(
            f"{name}() Expected a value of type '{argument.type}' for argument "
            f"'{argument.name}' but instead found type '{type(value).__name__}'. "
            f"Declaration: {schema.text}"
        ) from None
