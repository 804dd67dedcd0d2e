"""The tensors in the arguments and results of calls, and the names of functions."""

from __future__ import annotations

import sys

DEEPEST = 4
LONGEST = 60  # of a value that is recorded as text

# what the two libraries call an operator that Python calls by its symbol
NAMES = {"truediv": "div", "rtruediv": "rdiv", "invert": "bitwise_not", "floordiv": "floor_divide"}


def replace(name: str, value):
    """Put a value in place of a function of the library, under both names of the library."""
    for module in filter(None, map(sys.modules.get, ("torch", "jaxgrad"))):
        setattr(module, name, value)


def tensors_in(value, kind, depth=0) -> list:
    """The tensors in a value: itself, or those in tuples, lists, dicts and plain objects."""
    if isinstance(value, kind):
        return [value]
    if depth == DEEPEST:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dataclass_fields__"):
        value = list(vars(value).values())
    if not isinstance(value, (tuple, list)):
        return []
    return [tensor for item in value for tensor in tensors_in(item, kind, depth + 1)]


def name_of(function) -> str:
    """The name of a function of tensors, without what only one of the libraries writes."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "__get__":  # of a property
        return name
    if name.startswith("__"):
        return NAMES.get(name.strip("_"), name.strip("_"))
    for space in ("linalg_", "fft_", "special_"):
        name = name.removeprefix(space)
    return name


def is_inplace(name: str) -> bool:
    """Whether a function changes its first argument."""
    return name == "setitem" or (name.endswith("_") and not name.startswith("_"))


def settings_of(args, kwargs) -> dict:
    """The numbers, texts and dtypes among the arguments of a call, by position or name."""
    named = {str(position): value for position, value in enumerate(args)} | kwargs
    shown = {name: plain(value) for name, value in named.items()}
    return {name: text for name, text in shown.items() if text is not None}


def plain(value) -> str | None:
    """The text of a value that is no tensor; None for others."""
    if isinstance(value, (bool, int, float, complex, str)) and len(str(value)) <= LONGEST:
        return repr(value)
    if type(value) in (tuple, list) and len(value) <= DEEPEST * 2:
        parts = [plain(item) for item in value]
        return None if None in parts else f"({', '.join(parts)})"
    return None
