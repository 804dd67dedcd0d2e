"""Calls as graphs of PyTorch write them: an overload of `torch.ops.aten`, its arguments in the
order of the schema, without the last ones that are defaults.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

from ..core import dtypes
from ..core.device import device, layout, memory_format
from ..core.symbolic_extents import is_symbolic
from ..ops.aten import schemas
from ..table.schema import REQUIRED, Argument, Schema, Type
from ..tape.tensor import Tensor


class BoundCall(NamedTuple):
    """A call of an operator. full_name: of the overload, `add.Tensor`; schema: of it."""

    full_name: str
    args: tuple
    kwargs: dict[str, Any]
    schema: Schema


def bound(name: str, args: tuple, kwargs: dict) -> BoundCall | None:
    """The call of the first overload that takes these arguments; None if there is none."""
    known = schemas(name)
    ordered = sorted(known, key=lambda overload: _rank(known[overload]))
    # a number stands for a tensor where no overload takes numbers: x.add(1) is add.Tensor;
    # ints in a row for a list, where no overload takes them as they are: x.view(2, 3)
    for takes_numbers, packs in ((False, False), (False, True), (True, False), (True, True)):
        for overload in ordered:
            values = _values(known[overload], args, kwargs, takes_numbers, packs)
            if values is not None:
                schema = known[overload]
                return BoundCall(f"{name}.{overload}", *_written(schema, values), schema)
    return None


def _rank(schema: Schema) -> tuple:
    """Overloads of numbers come before those of tensors, which may stand for numbers."""
    kinds = [argument.type for argument in schema.arguments]
    if schema.name in _STATISTICS:
        return (_STATISTICS[schema.name].index(schema.overload), 0)
    return (sum(kind.tensor and not kind.list for kind in kinds), len(kinds))


# PyTorch's parser tries these in another order
_STATISTICS = dict.fromkeys(
    ("std", "var", "std_mean", "var_mean"), ("dim", "correction", "", "names_dim")
)


def _values(
    schema: Schema, args, kwargs, takes_numbers: bool, packs: bool
) -> dict[str, Any] | None:
    """The values of the arguments by their names; None if they do not fit."""
    positional = [argument for argument in schema.arguments if not argument.keyword_only]
    args = _packed(positional, args) if packs else args
    kwargs = _renamed(schema, kwargs)
    if len(args) > len(positional) or not kwargs.keys() <= {*schema.names}:
        return None
    values = {argument.name: value for argument, value in zip(positional, args, strict=False)}
    if values.keys() & kwargs.keys():
        return None
    values |= kwargs
    for argument in schema.arguments:
        if argument.name not in values:
            if argument.default is REQUIRED:
                return None
            continue
        # of decompositions 1 - x, which Python writes as rsub
        is_first = argument is schema.arguments[0] and schema.name != "sub"
        is_operand = takes_numbers and not is_first
        value = _converted(argument.type, values[argument.name], is_operand)
        if value is REQUIRED:
            return None
        values[argument.name] = value
    return values


# Python's names of arguments that schemas call otherwise
_NAMES = {"input": "self", "axis": "dim", "x1": "self", "keepdims": "keepdim"}


def _renamed(schema: Schema, kwargs) -> dict:
    def name_of(name):
        other = _NAMES.get(name)
        return other if name not in schema.names and other in schema.names else name

    return {name_of(name): value for name, value in kwargs.items()}


def _packed(positional: list[Argument], args) -> tuple:
    """The arguments with ints that follow one another in a list: `x.view(2, 3)`."""
    place = next((i for i, a in enumerate(positional[:2]) if _is_list_of_ints(a.type)), None)
    if place is None or len(args) <= place or not _is_int(args[place]):
        return args
    # one of a fixed size takes a single number
    if positional[place].type.size and len(args) <= len(positional):
        return args
    ints = [*args[place:]]
    return (*args[:place], ints) if all(map(_is_int, ints)) else args


def _is_list_of_ints(kind: Type) -> bool:
    return kind.base == "int" and kind.list


def _is_int(value) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or is_symbolic(value)


def _is_number(value) -> bool:
    return isinstance(value, numbers.Number) or is_symbolic(value)


def _is_float(value) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


_CHECKS = {
    "int": _is_int,
    "Scalar": _is_number,
    "float": _is_float,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "ScalarType": lambda value: isinstance(value, dtypes.dtype),
    "Device": lambda value: isinstance(value, str | device | int),
    "Layout": lambda value: isinstance(value, layout),
    "MemoryFormat": lambda value: isinstance(value, memory_format),
}


def _converted(kind: Type, value, takes_numbers: bool):
    """A value as graphs have it; REQUIRED if it has another type."""
    if value is None:
        return None if kind.optional else REQUIRED
    if kind.list:
        return _list_of(kind, value)
    if kind.tensor:
        fits = isinstance(value, Tensor) or (takes_numbers and _is_number(value))
        return value if fits else REQUIRED
    check = _CHECKS.get(kind.base)
    if check is None or not check(value):
        return REQUIRED
    if kind.base == "float" and type(value) is int:
        return float(value)
    return device(value) if kind.base == "Device" else value


def _list_of(kind: Type, value):
    if kind.size and kind.base in ("int", "float") and _CHECKS[kind.base](value):
        value = [value] * kind.size
    if not isinstance(value, list | tuple):
        return REQUIRED
    if kind.tensor:
        fits = all(isinstance(i, Tensor) or (kind.optional_items and i is None) for i in value)
        return [*value] if fits else REQUIRED
    items = [_converted(Type(kind.base), item, False) for item in value]
    return REQUIRED if REQUIRED in map(_kept, items) else items


def _kept(value):
    # tensors and symbolic numbers compare by other means
    return REQUIRED if value is REQUIRED else None


def _written(schema: Schema, values) -> tuple[tuple, dict]:
    """The arguments of a call in a graph."""
    positional = [argument for argument in schema.arguments if not argument.keyword_only]
    needed = [i for i, a in enumerate(positional) if not _is_default(a, values)]
    args = [
        values.get(a.name, _as_list(a.default)) for a in positional[: max(needed, default=-1) + 1]
    ]
    by_name = [a for a in schema.arguments if a.keyword_only and not _is_default(a, values)]
    return tuple(args), {a.name: values[a.name] for a in by_name} | _options(schema, values)


def _options(schema: Schema, values) -> dict:
    """What a factory has besides: where its result lies."""
    if "pin_memory" not in schema.names or schema.name == "to":
        return {}
    options = {"pin_memory": bool(values.get("pin_memory"))}
    is_like = any(argument.type.tensor for argument in schema.arguments)
    if not is_like and values.get("device") is None:
        options = {"device": device("cpu"), **options}
    return options


def _as_list(value):
    return [*value] if isinstance(value, tuple) else value


def _is_default(argument: Argument, values) -> bool:
    if argument.name not in values:
        return True
    value, default = values[argument.name], _as_list(argument.default)
    if argument.type.base == "float" and type(default) is int:
        default = float(default)
    if isinstance(value, Tensor) or is_symbolic(value) or default is REQUIRED:
        return False
    if isinstance(value, list):
        numeric = not any(isinstance(item, Tensor) or is_symbolic(item) for item in value)
        return numeric and value == default
    if isinstance(value, memory_format | dtypes.dtype | device | layout):
        return str(value).removeprefix("torch.") == default
    return type(value) is type(default) and value == default
