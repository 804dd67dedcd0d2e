"""Which places of a world a program may name, told from the world itself and not from a list: each
is an expression, with what stands there now and what holds it.
"""

import collections
import contextvars
import enum
import functools
import types
import weakref
from typing import Any, NamedTuple

import numpy as np

import jaxgrad

from . import prelude

MOST = 150
DEEPEST = 4


class Place(NamedTuple):
    """`holder` is the kind of what holds it: its letter; `owner` the expression of that, `key` its
    name or index there. g: global, a: attribute, c: attribute of the class, i: item, u: item of a
    tuple, o: option of an optimizer. `kind` is that of the value.
    """

    expression: str
    value: Any
    holder: str
    owner: str
    key: Any
    kind: str


KINDS = (
    (bool, "B"),
    (int | float, "N"),
    (str, "S"),
    (jaxgrad.Tensor, "T"),
    (list, "L"),
    (dict, "D"),
    (collections.deque, "Q"),
    (set, "E"),
    (tuple, "U"),
    (jaxgrad.nn.Module, "M"),
    (jaxgrad.optim.Optimizer, "P"),
    (jaxgrad.Generator, "G"),
    (functools._lru_cache_wrapper | weakref.ref | enum.Enum, "?"),
    (np.ndarray, "A"),
    (contextvars.ContextVar, "V"),
    (functools.partial, "F"),
    (types.FunctionType | types.MethodType, "F"),
    (types.ModuleType, "X"),
    (type, "C"),
)


def kind_of(value):
    """The letter of the kind of a value; O for any object with attributes, ? for another."""
    for kind, letter in KINDS:
        if isinstance(value, kind):
            return letter
    is_object = hasattr(type(value), "__slots__") or hasattr(value, "__dict__")
    return "O" if is_object and type(value).__module__ != "builtins" else "?"


def own_names(value):
    """The attributes of an object that are its own, by name."""
    if isinstance(value, jaxgrad.nn.Module):
        attributes = {k: v for k, v in vars(value).items() if k not in ("training", "in_features")}
        for members in ("_parameters", "_buffers", "_modules"):
            attributes |= vars(value).get(members, {})
        return {k: v for k, v in attributes.items() if not k.startswith("_")}
    try:
        attributes = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        attributes = {}
    if isinstance(value, jaxgrad.Tensor) and value.is_leaf and value.grad is not None:
        attributes["grad"] = value.grad
    slots = [n for c in type(value).__mro__ for n in vars(c).get("__slots__", ())]
    for name in slots:
        if not name.startswith("__") and hasattr(value, name):
            attributes[name] = getattr(value, name)
    return {name: v for name, v in attributes.items() if not name.startswith("_")}


def members(kind):
    """What a class and its bases give to instances: plain values only, by name."""
    shown = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("world") or base in (prelude.Data, prelude.Frozen):
            shown |= {n: v for n, v in vars(base).items() if not n.startswith("_")}
    return {n: v for n, v in shown.items() if kind_of(v) in "BNSTLDQEU"}


def inside(value, expression, letter):
    """Yield (expression, value, holder, key) of all that an object holds."""
    if letter in "OMXFT":
        for name, part in own_names(value).items():
            is_name = name.isidentifier()  # of a part of a Sequential it is a number
            yield expression + (f".{name}" if is_name else f"[{name}]"), part, "a", name
        if letter in "OM":
            for name, part in members(type(value)).items():
                if name not in own_names(value):
                    yield f"{expression}.{name}", part, "c", name
    elif letter == "C":
        for name, part in vars(value).items():
            if not name.startswith("_") and kind_of(part) in "BNSTLDQEU":
                yield f"{expression}.{name}", part, "a", name
    elif letter == "D":
        for key, part in value.items():
            if isinstance(key, str | int):
                yield f"{expression}[{key!r}]", part, "i", key
    elif letter in "LQU":
        for number, part in enumerate(value):
            yield f"{expression}[{number}]", part, "i" if letter != "U" else "u", number
    elif letter == "P":
        for number, group in enumerate(value.param_groups):
            yield f"{expression}.param_groups[{number}]['lr']", group["lr"], "o", "lr"


def places(names, depth=DEEPEST):
    """All places that are reached from the globals of a world, the near ones first."""
    level = [
        Place(name, value, "g", "", name, kind_of(value))
        for name, value in names.items()
        if name not in prelude.NAMES and not name.startswith("_") and name != "step"
    ]
    everything = []
    for _ in range(depth):
        everything += level
        if len(everything) > MOST:
            break
        level = [
            Place(text, part, holder, outer.expression, key, kind_of(part))
            for outer in level
            for text, part, holder, key in inside(outer.value, outer.expression, outer.kind)
        ]
    return everything[:MOST]
