"""Objects of any class that a traced function makes and that hold its tensors: each call makes them
anew, as `copy.deepcopy` would, with its own tensors in the place of those of the trace.
"""

from __future__ import annotations

import functools
import types

import jax

from ..tape.drawn_array import DrawnArray
from ..tape.node import Node
from ..tape.symbolic_number import Varying
from ..tape.tensor import Tensor
from .state_walk import is_closed

# what a copy shares with its original
ATOMS = (
    int, float, complex, str, bytes, type(None), range, slice, type, types.ModuleType,
    types.BuiltinFunctionType, types.CodeType, Node,
)  # fmt: skip
# Python's modules whose classes hold the user's data
OPEN = ("builtins", "collections", "types", "functools")
MOST_MET = 10_000  # a value with more parts is not searched any further


class Part:
    """An object, or a part of one. `make`: makes it of the values of `arguments`; `fill`: puts the
    values of `contents` into it; `result`: where a call finds a tensor, an array or a symbolic
    number. Without both, each call gives `value`, an object from before the trace or one that
    cannot be copied.
    """

    __slots__ = ("arguments", "contents", "fill", "has_tensors", "make", "result", "value")

    def __init__(self, value):
        self.value, self.result = value, None
        is_number = type(value) is DrawnArray
        is_number |= isinstance(value, Varying) and value.compute is not None
        self.has_tensors = is_number or isinstance(value, Tensor | jax.Array)
        self.make, self.fill = None, None
        self.arguments: list[Part] = []
        self.contents: list[Part] = []

    def rebuild(self, value_of, rebuilt: dict):
        """The object of a call. value_of: gives the value of a result; rebuilt: by the id of
        their part the objects that this call has made.
        """
        if self.result is not None:
            return value_of(self.result)
        if self.make is None:
            return self.value
        if id(self) not in rebuilt:
            arguments = [part.rebuild(value_of, rebuilt) for part in self.arguments]
            rebuilt[id(self)] = self.make(*arguments)
            # later, since contents may refer to the object itself
            contents = [part.rebuild(value_of, rebuilt) for part in self.contents]
            if self.fill is not None:
                self.fill(rebuilt[id(self)], contents)
        return rebuilt[id(self)]


class Objects:
    """The objects of one trace that its results consist of.

    result_of: gives where a call finds a tensor, an array or a symbolic number; observation: tells
    which objects are from before the trace, and stay what they are.
    """

    def __init__(self, result_of, observation):
        self.result_of = result_of
        self.has_existed = (lambda _: False) if observation is None else observation.has_existed
        self.parts: dict[int, Part] = {}
        self.kept: list = []  # while their ids are in use

    def part(self, value) -> Part | None:
        """The part of an object that the trace has made and that holds tensors, else None."""
        unmet: list[Part] = []
        root = self.part_of(value, unmet)
        met = []
        while unmet and len(self.parts) < MOST_MET:
            part = unmet.pop()
            met.append(part)
            if part.has_tensors or not _is_open(part.value) or self.has_existed(part.value):
                continue
            part.make, arguments, part.fill, contents = _taken_apart(part.value)
            part.arguments = [self.part_of(argument, unmet) for argument in arguments]
            part.contents = [self.part_of(content, unmet) for content in contents]
        _mark(self.parts.values())
        for part in met:
            if part.has_tensors and part.make is None:
                part.result = self.result_of(part.value)
            if part.has_tensors or (root.has_tensors and part.make is not None):
                part.value = None  # the object of the trace may go
        return root if root.has_tensors else None

    def part_of(self, value, unmet) -> Part:
        part = self.parts.get(id(value))
        if part is None:
            part = self.parts[id(value)] = Part(value)
            self.kept.append(value)
            unmet.append(part)
        return part


def _is_open(value) -> bool:
    return not isinstance(value, ATOMS) and not is_closed(type(value), but=OPEN)


def _mark(parts):
    """Mark what holds a part that is marked."""
    holders: dict[int, list[Part]] = {}
    for part in parts:
        for inner in (*part.arguments, *part.contents):
            holders.setdefault(id(inner), []).append(part)
    marked = [part for part in parts if part.has_tensors]
    while marked:
        for holder in holders.get(id(marked.pop()), ()):
            if not holder.has_tensors:
                holder.has_tensors = True
                marked.append(holder)


# ---- how an object is made anew


def _taken_apart(value) -> tuple:
    """What makes an object, the arguments for it, what fills it, and the contents for that; nothing
    of one that cannot be copied.
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
    try:
        reduced = value.__reduce_ex__(4)
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    except Exception:  # its class may refuse in any way to be copied
        return None, (), None, ()
    items, pairs = list(items or ()), list(pairs or ())
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    fill = functools.partial(_fill, len(items))
    return make, arguments, fill, (state, *items, *keys, *values)


def _fill_dict(target, contents):
    count = len(contents) // 2
    target.update(zip(contents[:count], contents[count:], strict=True))


def _fill(count: int, target, contents):
    """Fill an object by its state, so many elements, and items, as Python's `copy` does."""
    state, elements, items = contents[0], contents[1 : count + 1], contents[count + 1 :]
    if state is not None:
        _set_state(target, state)
    if elements:
        target.extend(elements)
    half = len(items) // 2
    for key, value in zip(items[:half], items[half:], strict=True):
        target[key] = value


def _set_state(target, state):
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        vars(target).update(attributes)
    for name, value in (slots or {}).items():
        object.__setattr__(target, name, value)  # the class may be frozen


def _function_taken_apart(function) -> tuple:
    code, scope, name = function.__code__, function.__globals__, function.__name__
    qualified_name, cells = function.__qualname__, function.__closure__ or ()
    count = len(cells)

    def make():
        cells = tuple(types.CellType() for _ in range(count))
        copy = types.FunctionType(code, scope, name, None, cells)
        copy.__qualname__ = qualified_name
        return copy

    filled = [number for number, cell in enumerate(cells) if _is_bound(cell)]

    def fill(copy, contents):
        copy.__defaults__, copy.__kwdefaults__, attributes, *values = contents
        copy.__dict__.update(attributes)
        for number, value in zip(filled, values, strict=True):
            copy.__closure__[number].cell_contents = value

    values = [cells[number].cell_contents for number in filled]
    contents = function.__defaults__, function.__kwdefaults__, vars(function), *values
    return make, (), fill, contents


def _is_bound(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
