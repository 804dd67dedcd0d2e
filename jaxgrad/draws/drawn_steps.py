"""The steps by which each call of a program draws again: events, computations of NumPy on drawn
numbers, and checks.
"""

from __future__ import annotations

import jax
import numpy as np

from ..state.objects import PLAIN, reference_to
from ..tape import pytree
from ..tape.drawn_array import DrawnArray
from ..tape.symbolic_number import Varying, fits
from ..tape.tensor import Tensor
from .event_log import EventLog

# the events that take an element out of an iterator or a queue: it may hold tensors
TAKING = frozenset(["next", "get"])


class Event:
    """A call that each call of the program makes.

    owner: the object that it reads from, such as a generator; name: the method or function; run:
    takes the owner and the arguments. `error`: the class of the error that it raised; `structure`:
    of its result, None for a single value; `forms`: of each leaf the class of a number, Tensor for
    a tensor, else the value itself in a tuple; `first`: the slot of the first leaf.
    """

    __slots__ = ("error", "first", "forms", "name", "owner", "plan", "run", "structure")

    def __init__(self, owner, name: str, run, plan):
        self.owner, self.name, self.run, self.plan = reference_to(owner), name, run, plan
        self.structure = self.error = None
        self.forms: list = []

    def perform(self, guard, log: EventLog):
        """Make it again, or take it from the log; whether it gives what a trace was made of."""
        owner, values = self.owner(), guard.values
        if owner is None:
            return False
        args, kwargs = self.plan.filled(values)
        try:
            value = log.perform((id(owner), self.name), lambda: self.run(owner, *args, **kwargs))
        except Exception as error:
            return type(error) is self.error
        if self.error is not None:
            return False
        leaves = [value]
        if self.structure is not None:
            leaves, structure = pytree.flatten(value)
            if structure != self.structure:
                return False
        guard.slots += leaves
        return all(map(has_form, leaves, self.forms))


def has_form(value, form) -> bool:
    """Whether a leaf of an event's result has the form that it had in the trace."""
    if type(form) is tuple:
        return is_equal(value, form[0]) if len(form) == 1 else _has_array_form(value, form)
    return isinstance(value, Tensor) if form is Tensor else fits(value, form)


def _has_array_form(value, form) -> bool:
    return isinstance(value, np.ndarray | np.generic) and form_of(value) == form


class Plan:
    """The arguments of an event. Earlier draws may determine some of them."""

    __slots__ = ("arguments", "leaves", "structure", "varies")

    def __init__(self, args, kwargs):
        self.arguments, self.structure = jax.tree.flatten((args, kwargs))
        self.leaves = [_kept(leaf) for leaf in self.arguments]
        self.varies = any(type(leaf) in COMPUTED for leaf in self.leaves)

    def filled(self, values):
        leaves = self.leaves
        if self.varies:
            leaves = [e.compute(values) if type(e) is _Computed else e for e in leaves]
        return jax.tree.unflatten(self.structure, leaves)

    def known(self):
        """The arguments at the call that is traced."""
        arguments, self.arguments = self.arguments, None
        return jax.tree.unflatten(self.structure, list(map(known_value, arguments)))

    def release(self):
        self.leaves = list(map(released, self.leaves))


def _kept(leaf):
    """An argument as a plan keeps it."""
    if type(leaf) is slice:
        return slice(*map(known_bound, (leaf.start, leaf.stop, leaf.step)))
    return leaf.copy() if type(leaf) is np.ndarray else leaf


def known_bound(value):
    """A bound of a slice, whose value is looked at."""
    return value.__index__() if type(value) in COMPUTED else value


def parts_in(value) -> list:
    """A value, or what is in its lists and tuples."""
    if isinstance(value, tuple | list):
        return [part for element in value for part in parts_in(element)]
    return [value]


COMPUTED = (Varying, DrawnArray)


def known_value(leaf):
    """The value of an argument at the call that is traced."""
    if type(leaf) is Varying:
        return leaf.value
    return leaf._value if type(leaf) is DrawnArray else leaf


def released(leaf):
    """An argument without its tracer."""
    return _Computed(leaf) if type(leaf) in COMPUTED else leaf


class Derived:
    """A result of NumPy from drawn numbers: `function`, called again at each call."""

    __slots__ = ("forms", "function", "plan", "structure")

    def __init__(self, function, plan):
        self.function, self.plan, self.structure = function, plan, None
        self.forms: list = []

    def perform(self, guard, log):
        args, kwargs = self.plan.filled(guard.values)
        try:
            leaves, structure = jax.tree.flatten(self.function(*args, **kwargs), is_leaf=is_array)
        except Exception:
            return False
        guard.slots += leaves
        return structure == self.structure and all(map(has_form, leaves, self.forms))


def is_array(value) -> bool:
    return isinstance(value, np.ndarray | np.generic) or value is None


def form_of(value) -> tuple:
    """The facts about a drawn array on which a program depends."""
    return type(value), value.shape, value.dtype


class Check:
    """The result of a look at drawn numbers: `function` of `operands`, some of them computed."""

    __slots__ = ("expected", "function", "operands")

    def __init__(self, function, operands, expected):
        self.function, self.operands, self.expected = function, operands, expected

    def perform(self, guard, log):
        values = guard.values
        try:
            operands = [e.compute(values) if hasattr(e, "compute") else e for e in self.operands]
            return is_equal(self.function(*operands), self.expected)
        except (ArithmeticError, TypeError, ValueError):
            return False


class _Computed:
    """How a number is computed, without its tracer."""

    __slots__ = ("compute",)

    def __init__(self, drawn: Varying | DrawnArray):
        is_array = type(drawn) is DrawnArray
        self.compute = drawn._run.compute_of(drawn) if is_array else drawn.compute


def is_equal(value, known) -> bool:
    """Whether a value is the same to any code: equal, and of the same class."""
    if value is known:
        return True
    if type(value) is not type(known):
        return False
    if isinstance(value, tuple | list):
        return len(value) == len(known) and all(map(is_equal, value, known))
    if isinstance(value, dict):
        return list(value) == list(known) and all(map(is_equal, value.values(), known.values()))
    if isinstance(value, np.ndarray):
        same = value.dtype == known.dtype and value.shape == known.shape
        return bool(same and (value.dtype.hasobject or value.tobytes() == known.tobytes()))
    if isinstance(value, float):
        return value.hex() == known.hex()
    return isinstance(value, (*PLAIN, np.generic, *_COMPARED)) and bool(value == known)


_COMPARED = (frozenset, set, range, slice, bytearray)
