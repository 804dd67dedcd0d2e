"""Overload resolution: binds the arguments of a call to a schema, by PyTorch's rules and with
PyTorch's error if no overload fits.
"""

from __future__ import annotations

import contextlib
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..table import REQUIRED, Argument, Schema
from . import dtypes
from .pytorch_tensors import type_name
from .symbolic_extents import is_symbolic

# PyTorch's functions say `input` where schemas say `self`, and accept numpy's names
ALIASES = {
    **dict.fromkeys(("input", "x", "a", "x1"), "self"),
    **{"x2": "other", "axis": "dim", "keepdims": "keepdim"},
    "split_size_or_sections": "split_size",  # of torch.split; the method says split_size
}


class Mismatch(TypeError):
    """A call does not fit a schema; the message says why."""


class LargeNumber(Mismatch, ValueError, OverflowError):
    """An int has more than 64 bits."""


def _scalar(value, is_tensor):
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, numbers.Number) or (is_tensor(value) and value.ndim == 0):
        return value
    if is_symbolic(value):
        return value
    raise Mismatch


def _integer(value, is_tensor):
    # a bool has an index too, but PyTorch refuses it for an int
    if isinstance(value, bool | float | complex):
        raise Mismatch
    if is_symbolic(value):
        return value
    if getattr(value, "ndim", 0):  # a tensor with one element has an index too
        raise Mismatch
    try:
        number = operator.index(value)
    except (TypeError, ValueError):
        raise Mismatch from None
    if not -(2**63) <= number < 2**63:
        raise LargeNumber
    return number


def _may_be_extent(value) -> bool:
    """Whether a value can be the first of many ints: an int, or a 0-D tensor or array."""
    return isinstance(value, int) or getattr(value, "ndim", None) == 0 or is_symbolic(value)


def _boolean(value, is_tensor):
    if not isinstance(value, bool | np.bool_):
        raise Mismatch
    return bool(value)


def _float(value, is_tensor):
    if not isinstance(value, numbers.Real):  # a bool is one, as in PyTorch
        raise Mismatch
    return float(value)


def _string(value, is_tensor):
    if not isinstance(value, str):
        raise Mismatch
    return value


def _dtype(value, is_tensor):
    try:
        return dtypes.as_dtype(value)
    except (TypeError, RuntimeError):
        raise Mismatch from None


def _tensor(value, is_tensor):
    if not is_tensor(value):
        raise Mismatch
    return value


# These raise without a message: `Signature.take` writes it, since it knows the argument.
CONVERTERS: dict[str, Callable] = {
    "Tensor": _tensor,
    "Scalar": _scalar,
    "int": _integer,
    "float": _float,
    "bool": _boolean,
    "str": _string,
    "ScalarType": _dtype,
}


def convert(argument: Argument, value, is_tensor):
    """The value converted to the type in the schema. Raises Mismatch."""
    kind = argument.type
    if value is None:
        if kind.optional or argument.default is None:
            return None
        if kind.list and argument.default is not REQUIRED:
            return argument.default
        raise Mismatch
    # other types, such as a generator, pass as they are
    convert_item = CONVERTERS.get(kind.base, lambda value, is_tensor: value)
    if not kind.list:
        return convert_item(value, is_tensor)
    if isinstance(value, list | tuple):
        if kind.optional_items:  # as in the indices of x[:, i]
            return tuple(None if item is None else convert_item(item, is_tensor) for item in value)
        return tuple([convert_item(item, is_tensor) for item in value])
    if kind.size is not None:
        return (convert_item(value, is_tensor),) * kind.size
    raise Mismatch


def refusal(argument: Argument, position: int, value) -> str:
    """What a value is not, of the type in the schema."""
    is_list_of_tensors = argument.type.base == "Tensor" and argument.type.list
    items = value if is_list_of_tensors and isinstance(value, list | tuple) else ()
    for number, item in enumerate(items):
        if item is None:
            return f"expected Tensor as element {number} in argument {position}, but got NoneType"
    name = "input" if argument.name == "self" else argument.name  # as it is called in PyTorch
    kind = argument.type
    if kind.list and kind.size is None and not kind.optional:
        kind = f"tuple of {kind.base}s"
    start = f"argument '{name}' (position {position + 1}) must be {kind}"
    if argument.type.list and isinstance(value, list | tuple):
        kinds = " and ".join(sorted({type_name(item) for item in value}))
        return f"{start}, not a {type_name(value)} of {kinds}"
    return f"{start}, not {type_name(value)}"


class Signature:
    """A schema that binds the arguments of a Python call.

    >>> from jaxgrad.table import parse_schema
    >>> schema = parse_schema("sum.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
    >>> signature = Signature(schema)
    >>> signature.bind(["x", 0], {}, lambda value: value == "x")
    ['x', (0,), False]
    """

    def __init__(self, schema: Schema):
        self.schema = schema
        self.arguments = schema.arguments
        self.positions = {argument.name: i for i, argument in enumerate(schema.arguments)}
        self.positional = sum(not argument.keyword_only for argument in schema.arguments)
        last = self.arguments[self.positional - 1].type if self.positional else None
        self.takes_many = bool(last and last.list and last.base == "int")

    def route(self, args: Sequence, names: Sequence[str]) -> dict[int, int | slice]:
        """The place of each given argument, by position, among the values of `args` and `names`."""
        places = self.gather(args)
        for place, name in enumerate(names, start=len(args)):
            position = self.position(name)
            if position in places:
                raise Mismatch(f"got multiple values for argument '{name}'")
            places[position] = place
        return places

    def bind(self, args: Sequence, kwargs: dict[str, Any], is_tensor, read=None) -> list:
        """The arguments in the schema's order with defaults filled in. Raises Mismatch.

        read: gives the value of an argument for a `float`, of what the call has.
        """
        values = (*args, *kwargs.values())
        by_position = {
            position: values[place] for position, place in self.route(args, tuple(kwargs)).items()
        }
        if read is not None:
            floats = [i for i in by_position if self.arguments[i].type.base == "float"]
            by_position |= {i: read(by_position[i]) for i in floats}
        return [self.take(i, by_position, is_tensor) for i in range(len(self.arguments))]

    def gather(self, args) -> dict[int, int | slice]:
        """Positions of positional arguments. Trailing ints form one list: `view(2, 3)` means
        `view((2, 3))`.
        """
        start = self.positional - 1
        is_many = self.takes_many and len(args) > start
        many = is_many and _may_be_extent(args[start])
        # a single int fills a list of fixed size by itself (`convert`)
        if many and (len(args) > start + 1 or self.arguments[start].type.size is None):
            return {**{i: i for i in range(start)}, start: slice(start, len(args))}
        if len(args) > self.positional and is_many:
            last = self.arguments[start]
            raise Mismatch(f"argument '{last.name}' must be ints, not {describe(args[start])}")
        if len(args) > self.positional:
            end = "s" * (self.positional != 1)
            raise Mismatch(
                f"takes {self.positional} positional argument{end} but {len(args)} were given"
            )
        return {i: i for i in range(len(args))}

    def position(self, name: str) -> int:
        position = self.positions.get(name, self.positions.get(ALIASES.get(name, "")))
        if position is None:
            raise Mismatch(f"got an unexpected keyword argument '{name}'")
        return position

    def take(self, position, by_position, is_tensor):
        argument = self.arguments[position]
        if position not in by_position:
            if argument.default is REQUIRED:
                raise Mismatch(f"missing argument '{argument.name}'")
            return argument.default
        try:
            return convert(argument, by_position[position], is_tensor)
        except Mismatch as mismatch:
            if isinstance(mismatch, LargeNumber):
                raise LargeNumber(
                    "Overflow when unpacking long long: an int has 64 bits, and argument "
                    f"'{argument.name}' more"
                ) from None
            raise Mismatch(refusal(argument, position, by_position[position])) from None


def renamed(kwargs: dict[str, Any], parameters) -> dict[str, Any]:
    """Keyword arguments with PyTorch's names of `parameters` in place of numpy's.

    >>> renamed({"axis": 0}, ("input", "dim"))
    {'dim': 0}
    """
    return {k if k in parameters else ALIASES.get(k, k): value for k, value in kwargs.items()}


def describe(value) -> str:
    """A value's type, as in PyTorch's error for a wrong call."""
    if isinstance(value, list | tuple):
        items = ", ".join([*map(describe, value[:4]), *(["..."] if len(value) > 4 else [])])
        return f"{type(value).__name__} of ({items})"
    return type_name(value)


def read_number(value):
    """The number in a 0-D tensor that requires no grad, which PyTorch takes for a `float`; any
    other value is its own.
    """
    is_number = getattr(value, "ndim", None) == 0 and getattr(value, "requires_grad", None) is False
    return value.item() if is_number else value


def resolve(
    name: str, signatures: Sequence[Signature], args, kwargs, is_tensor
) -> tuple[int, list]:
    """The position of the first signature that fits a call, and the bound arguments.

    Raises TypeError with the reason for each signature.
    """
    reasons, too_large = [], None  # texts: an error would keep this frame, and its tensors
    for position, signature in enumerate(signatures):
        try:
            return position, signature.bind(args, kwargs, is_tensor)
        except Mismatch as reason:
            reasons.append(str(reason))
            if isinstance(reason, LargeNumber):
                too_large = too_large or reasons[-1]
    for position, signature in enumerate(signatures):
        with contextlib.suppress(Mismatch):
            return position, signature.bind(args, kwargs, is_tensor, read_number)
    if too_large is not None:
        raise LargeNumber(f"{name}(): {too_large}")
    if len(reasons) == 1:
        if reasons[0].endswith("must be Tensor, not tuple"):
            reasons[0] += " (a layer such as LSTM returns a tuple: pass one of its elements)"
        raise TypeError(f"{name}(): {reasons[0]}; its schema is {signatures[0].schema.text}")
    got = ", ".join(
        [*map(describe, args), *(f"{key}={describe(value)}" for key, value in kwargs.items())]
    )
    expected = "".join(
        f"\n * {s.schema.text}: {why}" for s, why in zip(signatures, reasons, strict=True)
    )
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({got}), but expected one "
        f"of:{expected}"
    )
