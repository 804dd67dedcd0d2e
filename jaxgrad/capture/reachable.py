"""The tensors that a function can reach through its variables and arguments, and the variables that
its code names. The walk does not enter libraries.
"""

from __future__ import annotations

import types

import jax
import numpy as np

from ..state.code import cell_value, global_names, named_cells
from ..state.objects import ObjectWalk
from ..state.ownership import CLOSED, is_of_library
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor, grad_of

VALUES = (
    int,
    float,
    complex,
    str,
    bytes,
    jax.Array,
    np.ndarray,
    types.BuiltinFunctionType,
)


def reachable_tensors(roots, tensors, attributes_read) -> set[int]:
    """The ids of those tensors that can be reached from `roots`, a function and its arguments:
    variables, the object whose method it is, containers, attributes, modules, and the functions
    that code names are entered.

    attributes_read: gives what the function has read of the attributes of an instance, by name, or
    None where all of them may have been read.
    """
    sought = set(map(id, tensors))
    reached = set()
    for value in StateReach(attributes_read).walk(*roots) if sought else ():
        if id(value) in sought:
            reached.add(id(value))
            if reached == sought:
                break
    return reached


def refuse_numbers(values):
    """Raise RuntimeError if values hold a symbolic number, which must not outlive the trace; the
    error is that of code that looks at one.
    """
    for value in _NumberWalk().walk(*values):
        if type(value) is Varying:
            value._refuse()


def variables(function):
    """Yield the names and values of the variables that a function's code names."""
    yield from ((name, cell_value(cell)) for name, cell in named_cells(function))
    for name in global_names(function):
        yield name, function.__globals__[name]


# ---- the walks


class StateReach(ObjectWalk):
    """A walk over all state that a function can reach and that may hold tensors."""

    opaque = VALUES
    most = 200_000

    def __init__(self, attributes_read):
        super().__init__()
        self.attributes_read = attributes_read

    def contents(self, value):
        return (grad_of(value),) if isinstance(value, Tensor) else super().contents(value)

    def of_function(self, function):
        if _is_closed(function):
            return ()
        named = [value for _, value in variables(function)]
        defaults = (function.__kwdefaults__ or {}).values()
        return *named, *(function.__defaults__ or ()), *defaults

    def of_object(self, value):
        if isinstance(value, types.ModuleType):
            return () if is_of_library(value.__name__) else vars(value).values()
        read = self.attributes_read(value)
        held = super().of_object(value) if read is None else read.values()
        if _is_closed(value):
            # modules and optimizers hold tensors, their classes do not
            return () if isinstance(value, type) else held
        return held if isinstance(value, type) else (*held, type(value))


class NewObjects(ObjectWalk):
    """A walk over objects of a traced function, which leaves out all that existed before it ran."""

    opaque = (Tensor, str, bytes, jax.Array, np.ndarray, types.ModuleType, type)

    def __init__(self, has_existed):
        super().__init__()
        self.has_existed = has_existed

    def contents(self, value):
        return () if self.has_existed(value) else super().contents(value)


class _NumberWalk(ObjectWalk):
    """Everything that objects made by a function may hold."""

    opaque = (Tensor, str, bytes, jax.Array, np.ndarray, types.ModuleType, type)


def _is_closed(value) -> bool:
    return (getattr(value, "__module__", None) or "").partition(".")[0] in CLOSED
