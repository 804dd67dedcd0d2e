"""Objects of any class that a traced function makes, and returns or leaves behind: each call makes
them again, as `copy.deepcopy` would, with its own tensors in place of the tensors of the trace.
"""

from __future__ import annotations

import enum
import functools
import types

import jax
import numpy as np

from ..state.objects import own_dict, slot_values, slots_of
from ..state.ownership import is_closed, is_of_library, is_value_class
from ..tape.drawn_array import DrawnArray
from ..tape.node import Node
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor

# what a copy shares with its original
ATOMS = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    range,
    slice,
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.CodeType,
    Node,
    enum.Enum,
)
# what nobody changes later: each call makes one anew only where it holds something new
FIXED = (tuple, frozenset, types.FunctionType, types.MethodType, functools.partial)
# Python's modules whose classes hold the user's data
OPEN = ("builtins", "collections", "types", "functools")
MOST_MET = 10_000  # a value with more parts is not searched any further


class Part:
    """An object, or a part of one. `make`: makes it from the values of `arguments`; `fill`: puts
    the values of `contents` into it; `result`: where a call finds a tensor, an array or a symbolic
    number; `is_new`: whether each call makes a new one. Otherwise each call returns `value`: an
    object from before the trace, or one that cannot be copied.
    """

    __slots__ = ("arguments", "contents", "fill", "is_new", "make", "plain", "result", "value")

    def __init__(self, value):
        self.value, self.result = value, None
        is_number = type(value) is DrawnArray
        is_number |= isinstance(value, Varying) and value.compute is not None
        self.is_new = is_number or isinstance(value, Tensor | jax.Array)
        self.make, self.fill = None, None
        self.arguments: list[Part] = []
        self.contents: list[Part] = []
        self.plain: list | None = None  # the values of the contents, where none of them is new

    def rebuild(self, value_of, rebuilt: dict):
        """The object of a call. value_of: gives the value of a result; rebuilt: by the id of
        their part the objects that this call has made.
        """
        if self.result is not None:
            return value_of(self.result)
        if not self.is_new:
            return self.value
        if id(self) not in rebuilt:
            arguments = [part.rebuild(value_of, rebuilt) for part in self.arguments]
            if id(self) in rebuilt:
                return rebuilt[id(self)]  # an argument holds the object itself
            rebuilt[id(self)] = self.make(*arguments)
            # later, since contents may refer to the object itself
            if self.fill is not None:
                contents = self.plain or [p.rebuild(value_of, rebuilt) for p in self.contents]
                self.fill(rebuilt[id(self)], contents)
        return rebuilt[id(self)]


class Objects:
    """The objects that the results of one trace consist of.

    result_of: gives where a call finds a tensor, an array or a symbolic number; observation: tells
    which objects are from before the trace, and stay what they are; with_plain: whether objects
    without tensors are made again too; is_of_call: whether each call has another object in place of
    a container from outside; `constants`: the objects that each call returns as they are.
    """

    def __init__(self, result_of, observation, with_plain=True, is_of_call=lambda _: False):
        self.result_of, self.with_plain, self.is_of_call = result_of, with_plain, is_of_call
        self.is_old = (lambda _: False) if observation is None else observation.has_existed
        self.parts: dict[int, Part] = {}
        self.kept: list = []  # while their ids are in use
        self.constants: list = []

    def has_existed(self, value) -> bool:
        """Whether an object is from before the trace, or from the arguments of each call."""
        return self.is_of_call(value) or self.is_old(value)

    def part(self, value) -> Part | None:
        """The part of an object that each call makes anew, else None."""
        unmet: list[Part] = []
        root, met = self.part_of(value, unmet), []
        while unmet and len(self.parts) < MOST_MET:
            part = unmet.pop()
            met.append(part)
            if part.is_new or not _is_open(part.value) or self.has_existed(part.value):
                continue
            part.make, arguments, part.fill, contents = _taken_apart(part.value)
            part.is_new = self.with_plain and part.make is not None and not _is_fixed(part.value)
            part.arguments = [self.part_of(argument, unmet) for argument in arguments]
            part.contents = [self.part_of(content, unmet) for content in contents]
        _mark(self.parts.values())
        for part in (*met, *unmet):
            self.finish(part)
        return root if root.is_new else None

    def finish(self, part: Part):
        """Find where a call finds a part, once all new objects are known."""
        if not part.is_new:
            self.constants.append(part.value)
            return
        if part.make is None:
            part.result = self.result_of(part.value)
        elif part.contents and not any(content.is_new for content in part.contents):
            part.plain = [content.value for content in part.contents]
        part.value = None  # the object of the trace may go

    def part_of(self, value, unmet) -> Part:
        if isinstance(value, ATOMS) and not isinstance(value, Varying):
            return Part(value)
        part = self.parts.get(id(value))
        if part is None:
            part = self.parts[id(value)] = Part(value)
            part.is_new |= self.is_of_call(value)
            self.kept.append(value)
            unmet.append(part)
        return part


def _is_open(value) -> bool:
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    if isinstance(value, types.FunctionType):
        return not (is_of_library(value.__module__ or "") or _is_global(value))
    return not isinstance(value, ATOMS) and not is_closed(type(value), but=OPEN)


def _is_global(function) -> bool:
    """Whether a function is bound to its own name in its module, as decorated functions are."""
    place = function.__globals__
    for name in function.__qualname__.split("."):
        place = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
    return place is function


def _is_fixed(value) -> bool:
    return isinstance(value, FIXED) or is_value_class(type(value))


def _mark(parts):
    """Mark what holds a part that is marked."""
    holders: dict[int, list[Part]] = {}
    for part in parts:
        for inner in (*part.arguments, *part.contents):
            holders.setdefault(id(inner), []).append(part)
    marked = [part for part in parts if part.is_new]
    while marked:
        for holder in holders.get(id(marked.pop()), ()):
            if not holder.is_new:
                holder.is_new = True
                marked.append(holder)


# ---- how an object is made anew


def _taken_apart(value) -> tuple:
    """How an object is made: a function, its arguments, a function that fills the object, and the
    contents for this; nothing for an object that cannot be copied.
    """
    kind = type(value)
    if kind in (tuple, frozenset):
        return lambda *elements: kind(elements), value, None, ()
    if kind in (list, set):
        return kind, (), list.extend if kind is list else set.update, value
    if kind is dict:
        return dict, (), _fill_dict, (*value, *value.values())
    if kind is types.FunctionType:
        return _function_taken_apart(value)
    if kind is types.CellType:
        contents = (value.cell_contents,) if _is_bound(value) else ()
        return types.CellType, (), _fill_cell, contents
    if kind is np.ndarray:
        return value.copy, (), None, ()
    try:
        reduced = value.__reduce_ex__(4)
        if isinstance(reduced, str):  # a global of this name
            return None, (), None, ()
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    except Exception:  # its class may refuse in any way to be copied
        return None, (), None, ()
    items, pairs = list(items or ()), list(pairs or ())
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    put = _set_state
    if _reduces_plainly(kind) and not is_closed(kind):
        # everything that it holds: `__getstate__` may leave out what no file needs
        state, put = (dict(own_dict(value)), slot_values(value, slots_of(kind))), _set_attributes
    fill = functools.partial(_fill, put, len(items))
    return make, arguments, fill, (state, *items, *keys, *values)


def _fill_dict(target, contents):
    count = len(contents) // 2
    target.update(zip(contents[:count], contents[count:], strict=True))


def _reduces_plainly(kind: type) -> bool:
    """Whether a class leaves to Python how its instances are taken apart."""
    names = "__reduce_ex__", "__reduce__"
    return all(getattr(kind, name) is getattr(object, name) for name in names)


def _fill(put, count: int, target, contents):
    """Fill an object by its state, so many elements, and items, as Python's `copy` does."""
    state, elements, items = contents[0], contents[1 : count + 1], contents[count + 1 :]
    if state is not None:
        put(target, state)
    if elements:
        target.extend(elements)
    half = len(items) // 2
    for key, value in zip(items[:half], items[half:], strict=True):
        target[key] = value


def _set_state(target, state):
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    is_pair = isinstance(state, tuple) and len(state) == 2
    _set_attributes(target, state if is_pair else (state, None))


def _set_attributes(target, state):
    attributes, slots = state
    if attributes:
        vars(target).update(attributes)
    for name, value in (slots or {}).items():
        object.__setattr__(target, name, value)  # the class may be frozen


def _fill_cell(cell, contents):
    for value in contents:
        cell.cell_contents = value


def _function_taken_apart(function) -> tuple:
    """The variables of a function as parts: functions that share a variable share it in the copies
    too, and a variable that the traced function also has stays the same.
    """
    code, scope, name = function.__code__, function.__globals__, function.__name__
    qualified_name = function.__qualname__

    def make(*cells):
        copy = types.FunctionType(code, scope, name, None, cells)
        copy.__qualname__ = qualified_name
        return copy

    def fill(copy, contents):
        copy.__defaults__, copy.__kwdefaults__, attributes = contents
        copy.__dict__.update(attributes)

    contents = function.__defaults__, function.__kwdefaults__, vars(function)
    return make, function.__closure__ or (), fill, contents


def _is_bound(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
