"""Places that compiled functions assign, and the guards on them: each call may find another tensor
or number at such a place.
"""

from __future__ import annotations

import dataclasses
import weakref

import jax

from ..state.code import UNSET
from ..state.guards import AttributeValue, Guard, StateGuard
from ..state.holder import MOST_COMPARED, Place, SetHolder
from ..state.objects import is_same_plain_value, own_dict, slot_values, slots_of
from ..tape import pytree
from ..tape.symbolic_number import fits
from ..tape.tensor import Tensor, abstract_value
from .graph_input import TensorSource


class PlaceSource(TensorSource):
    """Finds the tensor of a class at a place, or a leaf of the container there."""

    def __init__(self, place: Place, leaf: int | None, kind: type):
        self.place, self.leaf, self.kind = place, leaf, kind

    def find(self, leaves, tensors):
        value = self.place.value()
        if self.leaf is not None:
            inner = [] if pytree.has_cycle(value) else pytree.flatten(value)[0]
            value = inner[self.leaf] if self.leaf < len(inner) else None
        return value if type(value) is self.kind else None

    def is_same(self, other: TensorSource) -> bool:
        """Whether another source finds its tensor at the same place."""
        is_place = isinstance(other, PlaceSource)
        return is_place and (other.place.key, other.leaf) == (self.place.key, self.leaf)

    def put(self, tensor):
        """Put a tensor there."""
        self.place.put(tensor)


def put_leaves(place: Place, tensors: dict) -> object:
    """Put a container like the earlier one at a place, with tensors by the numbers of its leaves;
    returns it.
    """
    leaves, structure = pytree.flatten(place.value())
    leaves = [tensors.get(number, leaf) for number, leaf in enumerate(leaves)]
    place.put(jax.tree.unflatten(structure, leaves))
    return place.value()


class SameTensorGuard(Guard):
    """The place has the captured tensor of this number, which another source finds."""

    __slots__ = ("number", "source")

    def __init__(self, source: PlaceSource, number: int):
        self.source, self.number = source, number

    def check(self, leaves, tensors):
        return self.source.find(leaves, tensors) is tensors[self.number]

    def reason(self, leaves, tensors):
        return f"{self.source.place.name} is another tensor than what it was the same as"


class PinnedTensorGuard(Guard):
    """The place has a tensor that the function also reads from another place, where each call finds
    the same tensor.
    """

    __slots__ = ("reference", "source")

    def __init__(self, source: PlaceSource, tensor: Tensor):
        self.source, self.reference = source, weakref.ref(tensor)

    def check(self, leaves, tensors):
        tensor = self.reference()
        return tensor is not None and self.source.find(leaves, tensors) is tensor

    def reason(self, leaves, tensors):
        return f"{self.source.place.name} is another tensor than the one of another name"


class CapturedAttributes(StateGuard):
    """The attributes of a captured tensor that may be another tensor at each call, such as an
    argument.
    """

    def __init__(self, holder, names, number: int):
        super().__init__(holder, names)
        self.number = number

    def check(self, leaves, tensors):
        return self.holds(tensors[self.number])

    def reason(self, leaves, tensors):
        return self.reason_of(tensors[self.number])

    def reinstate(self):
        pass  # a replay has a tensor of its own in the place of this one

    def give_to(self, tensor):
        """Give a tensor the attributes that the captured one had when the guard was made."""
        referred = {name: reference() for name, reference in self.weak.items()}
        alive = {name: value for name, value in referred.items() if value is not None}
        vars(tensor).update(self.strong | alive)


class KindGuard(AttributeValue):
    """The abstract value of a tensor that is no input of the program."""

    __slots__ = ()

    def reason(self, leaves, tensors):
        tensor = self.owner()
        change = "is gone" if tensor is None else f"is {abstract_value(tensor)}"
        return f"a tensor that it reaches was {self.value}, and {change}"


class NumberGuard(Guard):
    """A place has a number of one type, whose value is an input."""

    __slots__ = ("kind", "place")

    def __init__(self, place: Place, kind: type):
        self.place, self.kind = place, kind

    def check(self, leaves, tensors):
        return type(self.place.value()) is self.kind

    def reason(self, leaves, tensors):
        return f"{self.place.name} is no {self.kind.__name__} any more"


class DerivedNumbers(Guard):
    """The program computes derived numbers as Python does: no division by zero, no overflow, and
    the kinds of the trace.
    """

    __slots__ = ("numbers", "sources")

    def __init__(self, derived: list):
        self.sources = frozenset().union(*[number.origins for number in derived])
        # without the tracer
        self.numbers = [(number.compute, number.kind) for number in derived]

    def check(self, leaves, tensors):
        values = {source: source.array(leaves) for source in self.sources}
        try:
            return all(fits(compute(values), kind) for compute, kind in self.numbers)
        # TypeError: of a place that has no number any more, as NumberGuard tells
        except (ArithmeticError, TypeError):
            return False

    def reason(self, leaves, tensors):
        return "a number computed from one that varies is of another kind, or too large"


class TensorsGuard(Guard):
    """The place has a tensor, or a container of tensors of one structure whose other leaves are
    equal. Tensors that are no inputs have the same abstract value, since the function may have read
    their shape.
    """

    __slots__ = ("avals", "leaves", "place", "structure")

    def __init__(self, place: Place, value, inputs):
        """inputs: the ids of the tensors that are inputs."""
        self.place = place
        leaves, self.structure = pytree.flatten(value)
        others = {n: leaf for n, leaf in enumerate(leaves) if id(leaf) not in inputs}
        self.avals = [(n, abstract_value(t)) for n, t in others.items() if isinstance(t, Tensor)]
        self.leaves = [UNSET if isinstance(leaf, Tensor) else leaf for leaf in leaves]

    def check(self, leaves, tensors):
        value = self.place.value()
        if pytree.has_cycle(value):
            return False
        inner, structure = pytree.flatten(value)
        return (
            structure == self.structure
            and all(
                isinstance(new, Tensor) if known is UNSET else is_same_plain_value(new, known)
                for new, known in zip(inner, self.leaves, strict=True)
            )
            and all(abstract_value(inner[number]) == aval for number, aval in self.avals)
        )

    def reason(self, leaves, tensors):
        return f"{self.place.name} has other contents"

    def reinstate(self):
        if not self.check((), ()):  # the tensors are put there afterwards
            self.place.put(jax.tree.unflatten(self.structure, self.leaves))

    def objects(self) -> list:
        """The objects besides tensors that a replay must find at the place."""
        return [leaf for leaf in self.leaves if leaf is not UNSET]


def has_tensors(value) -> bool:
    """Whether a value is a tensor or a container of some, which does not contain itself."""
    if isinstance(value, Tensor):
        return True
    if not isinstance(value, tuple | list | dict) or pytree.has_cycle(value):
        return False
    return any(isinstance(leaf, Tensor) for leaf in pytree.flatten(value)[0])


def is_exchangeable(value) -> bool:
    """Whether each call may find another value at a place that the function assigns: a tensor, a
    container of tensors, or a small list, dict or tuple.
    """
    if has_tensors(value):
        return True
    if not isinstance(value, tuple | list | dict) or pytree.has_cycle(value):
        return False
    containers = [container for _, container in containers_in(value)]
    is_fixed = all(isinstance(container, tuple) for container in containers)
    return not is_fixed and len(pytree.flatten(value)[0]) <= MOST_COMPARED


class ContainerSource:
    """Finds a container at a place where each call may have another one, or a container within it
    by keys.
    """

    __slots__ = ("keys", "place")

    def __init__(self, place: Place, keys: tuple):
        self.place, self.keys = place, keys

    def value(self):
        value = self.place.value()
        for key in self.keys:
            value = value[key]
        return value


class SameContainers(Guard):
    """Containers at places are one object or several, as in the trace; those that the function also
    reads by a name that it does not assign are the same.
    """

    __slots__ = ("first", "pinned", "sources")

    def __init__(self, sources: list[ContainerSource], pinned: set[int]):
        self.sources = sources
        values = [source.value() for source in sources]
        self.first = _first_places(values)
        self.pinned = {n: value for n, value in enumerate(values) if id(value) in pinned}

    def check(self, leaves, tensors):
        try:
            values = [source.value() for source in self.sources]
        except (KeyError, IndexError, TypeError):
            return False  # another structure
        is_pinned = all(values[n] is value for n, value in self.pinned.items())
        return is_pinned and _first_places(values) == self.first

    def reason(self, leaves, tensors):
        return "containers at names that it binds anew are others, or one object"


def _first_places(values) -> list[int]:
    """For each value where it is first."""
    numbers = list(map(id, values))
    return list(map(numbers.index, numbers))


def items_of(container) -> dict:
    """The items of a tuple, list or dict by key."""
    return container if isinstance(container, dict) else dict(enumerate(container))


def containers_in(value, items=items_of, keys=(), around=()):
    """Yield the containers in a value, itself included, each after the keys that lead to it.

    items: gives the items of a container by key; around: the containers that hold the value.
    """
    if isinstance(value, tuple | list | dict) and not any(value is outer for outer in around):
        yield keys, value
        for key, inner in items(value).items():
            yield from containers_in(inner, items, (*keys, key), (*around, value))


def part_tree(value, inner: list, leaves: list):
    """Add the lists, dicts and dataclass instances of a tree to `inner`, and all other parts except
    tuples to `leaves`. A container that occurs twice is added twice, and entered once.
    """
    is_data = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if not (is_data or isinstance(value, tuple | list | dict)):
        leaves.append(value)
        return
    is_met = any(value is known for known in inner)
    if not isinstance(value, tuple):
        inner.append(value)
    items = value.values() if isinstance(value, dict) else value
    parts = [*items] if isinstance(value, tuple | list | dict) else []
    if is_data:
        parts += [*own_dict(value).values(), *slot_values(value, slots_of(type(value))).values()]
    for part in () if is_met else parts:
        part_tree(part, inner, leaves)


# ---- the places that functions bind anew

_rebound: dict[tuple, weakref.ref] = {}


def note_rebound(holder, bound: dict):
    """Note that a function assigns names, for the programs of other functions: they may find other
    values there than in their traces.
    """
    target, kind = holder.reference(), type(holder)
    # the elements of a set are there or not, and no name has another one at each call
    for name, value in () if kind is SetHolder else bound.items():
        holder.rebound.add(name)
        if isinstance(holder.reference, weakref.ref) and has_tensors(value):
            key = id(target), kind, name
            _rebound[key] = weakref.ref(target, lambda _, key=key: _rebound.pop(key, None))


def is_rebound(holder, name) -> bool:
    """Whether a function binds this name to something else at each call."""
    return name in holder.rebound or (id(holder.reference()), type(holder), name) in _rebound
