"""Calls of old programs, with the numbers before the tensors: `x.add_(-0.1, gradient)`. Operators
with the tag `old_form` take them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from numbers import Number

from ..core.tracebacks import users_stacklevel
from ..late import LateModule
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor

table_schema = LateModule("jaxgrad.table.schema")


def present_form(schema, args, kwargs, name: str | None = None):
    """The arguments of an old call as they are passed today; None if the call is no old one.

    schema: the `Schema` of the overload of tensors alone, whose keywords the numbers are.
    name: of the function, by default that of the schema.
    """
    keywords = [argument.name for argument in schema.arguments if argument.keyword_only]
    count = len(schema.tensors) - 1
    tensors = tuple(value for value in args if isinstance(value, Tensor))
    numbers = [value for value in args if isinstance(value, Number | Varying)]
    if len(tensors) != count + 1 or not 0 < len(numbers) <= len(keywords):
        return None
    is_old = all(isinstance(value, Tensor) for value in args[-count:])
    # `beta` may stand before the tensor that it scales, the other numbers only after it
    if not is_old or (keywords[0] != "beta" and args[0] is not tensors[0]):
        return None
    passed = dict(zip(keywords, numbers, strict=False))
    shown = ", ".join(f"{keyword}={number}" for keyword, number in passed.items())
    warnings.warn(
        f"This overload of {name or schema.name} is deprecated: numbers before tensors; pass "
        f"{shown}",
        stacklevel=users_stacklevel(),
    )
    return tensors, kwargs | passed


def takes_old_form(text: str) -> Callable:
    """A decorator of functions that are no operators: they take old calls of a schema too."""

    schema = functools.cache(lambda: table_schema.parse_schema(text))

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            present = present_form(schema(), args, kwargs)
            args, kwargs = (args, kwargs) if present is None else present
            return function(*args, **kwargs)

        return call

    return decorate
