"""Which argument of a failed call has a type that the function does not take.

Functions look at their arguments without a check of types, since one would cost each call. A call
that has failed is checked here, so that its error names the argument, as PyTorch's does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..core.dtypes import INTEGRAL
from ..core.pytorch_tensors import type_name

# the types that an annotation excludes; others may have a conversion
_OTHERS = frozenset((type(None), str, bytes, bool, float, complex, list, tuple, dict))
_EXCLUDED = {"Tensor": _OTHERS | {int}, "int": _OTHERS}
# an object with one of these may become a tensor; a module or a generator has none. `shape` comes
# last: a nested tensor raises there
_CONVERTED = ("__torch_function__", "__array__", "__jax_array__", "__float__", "shape")

# how the TypeErrors of Python itself begin
_OF_PYTHON = ("'", "unsupported operand", "bad operand", "object of type", "cannot unpack")


def mistake_in(function: Callable, args: tuple, kwargs: dict, error: Exception) -> str | None:
    """What is wrong with the type of an argument of a call that has raised an error; None if it is
    none of the types that are certainly wrong, or if the error says it.
    """
    if isinstance(error, TypeError) and not str(error).startswith(_OF_PYTHON):
        return None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    parameters = bound.signature.parameters
    for number, (name, value) in enumerate(bound.arguments.items(), 1):
        wanted, is_optional = _wanted(parameters[name])
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            text = _mistake_in_items(value, wanted)
            if text is not None:
                return text
        elif _is_excluded(value, wanted) and not (is_optional and value is None):
            place = None if name in kwargs else number
            return _refusal(function, name, place, wanted, value)
    return _without_attribute(function, bound.arguments, error)


def is_index(value) -> bool:
    """Whether a value is a tensor of one integer, without dimensions.

    >>> is_index(jaxgrad.tensor(2)), is_index(jaxgrad.tensor(2.5)), is_index(None)
    (True, False, False)
    """
    return getattr(value, "ndim", None) == 0 and value.dtype.category == INTEGRAL


def _without_attribute(function, arguments, error) -> str | None:
    """What is wrong if an object of Python's, of a type that one argument has, lacks an attribute
    which the function reads.
    """
    if isinstance(error, AttributeError) and type(error.obj) in _OTHERS | {int}:
        for name, value in arguments.items():
            items = value if isinstance(value, list | tuple) else ()
            if any(error.obj is item for item in items):
                text = f"{function.__name__}(): argument '{name}' must not hold"
                return f"{text} objects of type {type_name(error.obj)}"
            if error.obj is value:
                text = f"{function.__name__}(): argument '{name}' must not be"
                return f"{text} {type_name(value)}"
    return None


def refusal(function: Callable, name: str, place: int, args: tuple, value) -> str:
    """What a call says that has a bool, an int or a float of another type at a place."""
    wanted = function.__annotations__[name].removesuffix(" | None")
    return _refusal(function, name, place + 1 if place < len(args) else None, wanted, value)


def _refusal(function, name, position, wanted, value):
    place = "" if position is None else f" (position {position})"
    text = f"{function.__name__}(): argument '{name}'{place} must be {wanted}"
    return f"{text}, not {type_name(value)}"


def _mistake_in_items(items: tuple, wanted: str | None) -> str | None:
    """What is wrong with the first of many positional arguments of a wrong type, if one is."""
    if len(items) == 1 and isinstance(items[0], list | tuple):
        return None  # one list in the place of many tensors
    for place, item in enumerate(items):
        if _is_excluded(item, wanted):
            return f"expected {wanted} as element {place} in argument 0, but got {type_name(item)}"
    return None


def _is_excluded(value, wanted: str | None) -> bool:
    if wanted == "Tensor" and not any(hasattr(value, name) for name in _CONVERTED):
        return True
    return type(value) in _EXCLUDED.get(wanted, ())


def _wanted(parameter: inspect.Parameter) -> tuple[str | None, bool]:
    """The type of an argument, and whether None may stand for it."""
    text = getattr(parameter.annotation, "__name__", parameter.annotation)
    if parameter.kind is parameter.VAR_KEYWORD or not isinstance(text, str):
        return None, False
    return text.removesuffix(" | None"), text.endswith(" | None")
