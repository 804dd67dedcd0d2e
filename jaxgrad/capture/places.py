"""Places: names of holders that compiled functions bind anew, so that each call may find another
tensor or number there, or another container of tensors.
"""

from __future__ import annotations

import weakref

import jax

from ..tape import pytree
from ..tape.object_walk import UNSET
from ..tape.symbolic_number import fits
from ..tape.tensor import Tensor
from .guards import Guard, TensorSource, is_same_plain_value
from .holders import SetHolder


class Place:
    """A name of a holder. `key`: tells it apart from others while the holder lives."""

    __slots__ = ("bind", "holder", "key", "mapping", "name")

    def __init__(self, holder, name):
        self.holder, self.name = holder.reference, name
        self.mapping, self.bind = holder.mapping, holder.bind
        self.key = id(holder.reference()), name

    def value(self):
        """What the name is bound to; UNSET where it is not."""
        target = self.holder()
        try:
            return UNSET if target is None else self.mapping(target)[self.name]
        except (KeyError, IndexError, AttributeError):
            return UNSET

    def put(self, value):
        target = self.holder()
        if target is not None:
            self.bind(target, self.name, value)


class PlaceSource(TensorSource):
    """The tensor of a class at a place, or that of a leaf of the container there."""

    def __init__(self, place: Place, leaf: int | None, kind: type):
        self.place, self.leaf, self.kind = place, leaf, kind

    def find(self, leaves, tensors):
        found = self.place.value()
        if self.leaf is not None:
            inner, _ = pytree.flatten(found)
            found = inner[self.leaf] if self.leaf < len(inner) else None
        return found if type(found) is self.kind else None

    def is_same(self, other: TensorSource) -> bool:
        """Whether another source finds its tensor at the same place."""
        is_place = isinstance(other, PlaceSource)
        return is_place and (other.place.key, other.leaf) == (self.place.key, self.leaf)

    def put(self, tensor):
        """Put a tensor there, for a replay."""
        if self.leaf is not None:
            inner, structure = pytree.flatten(self.place.value())
            inner[self.leaf] = tensor
            tensor = jax.tree.unflatten(structure, inner)
        self.place.put(tensor)


class SameTensorGuard(Guard):
    """A place has the captured tensor of this number, which another source finds."""

    __slots__ = ("number", "source")

    def __init__(self, source: PlaceSource, number: int):
        self.source, self.number = source, number

    def check(self, leaves, tensors):
        return self.source.find(leaves, tensors) is tensors[self.number]

    def reason(self, leaves, tensors):
        return f"{self.source.place.name} is another tensor than what it was the same as"


class PinnedTensorGuard(Guard):
    """A place has a tensor that the function also reads from another place, where each call finds
    the same one.
    """

    __slots__ = ("reference", "source")

    def __init__(self, source: PlaceSource, tensor: Tensor):
        self.source, self.reference = source, weakref.ref(tensor)

    def check(self, leaves, tensors):
        tensor = self.reference()
        return tensor is not None and self.source.find(leaves, tensors) is tensor

    def reason(self, leaves, tensors):
        return f"{self.source.place.name} is another tensor than the one of another name"


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
    """The program computes numbers from those that vary as Python does: none is divided by zero,
    too large, or of another kind than it was in the trace.
    """

    __slots__ = ("numbers", "sources")

    def __init__(self, derived: list):
        self.sources = frozenset().union(*[each.origins for each in derived])
        # without the tracer
        self.numbers = [(each.compute, each.kind) for each in derived]

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
    """A place has a tensor, or a container of tensors of one structure with equal other leaves."""

    __slots__ = ("leaves", "place", "structure")

    def __init__(self, place: Place, value):
        self.place = place
        leaves, self.structure = pytree.flatten(value)
        self.leaves = [UNSET if isinstance(each, Tensor) else each for each in leaves]

    def check(self, leaves, tensors):
        found, structure = pytree.flatten(self.place.value())
        return structure == self.structure and all(
            isinstance(new, Tensor) if known is UNSET else is_same_plain_value(new, known)
            for new, known in zip(found, self.leaves, strict=True)
        )

    def reason(self, leaves, tensors):
        return f"{self.place.name} has other contents"


def has_tensors(value) -> bool:
    """Whether a value is a tensor or a container of some."""
    if isinstance(value, Tensor):
        return True
    is_container = isinstance(value, tuple | list | dict)
    return is_container and any(isinstance(each, Tensor) for each in pytree.flatten(value)[0])


def containers_in(value) -> set[int]:
    """The ids of the containers of a value, its own among them."""
    if not isinstance(value, tuple | list | dict):
        return set()
    inner = value.values() if isinstance(value, dict) else value
    return {id(value)}.union(*map(containers_in, inner))


def part_tree(value, inner: list, leaves: list):
    """Add the lists and dicts of a tree to `inner`, and what is neither, nor a tuple, to `leaves`.
    One that is met twice is added twice, and entered once.
    """
    if not isinstance(value, tuple | list | dict):
        leaves.append(value)
        return
    is_met = any(value is known for known in inner)
    if not isinstance(value, tuple):
        inner.append(value)
    for part in () if is_met else value.values() if isinstance(value, dict) else value:
        part_tree(part, inner, leaves)


# ---- the names of instances that compiled functions bind anew

_rebound: dict[tuple, weakref.ref] = {}


def note_rebound(holder, bound: dict):
    """Note that a compiled function binds names anew, for the programs of other functions: what
    they find there need not be the tensor that they were traced with.
    """
    target, kind = holder.reference(), type(holder)
    # the elements of a set are there or not, and no name has another one at each call
    for name, value in () if kind is SetHolder else bound.items():
        holder.rebound.add(name)
        if isinstance(holder.reference, weakref.ref) and has_tensors(value):
            key = id(target), kind, name
            _rebound[key] = weakref.ref(target, lambda _, key=key: _rebound.pop(key, None))


def is_rebound(holder, name) -> bool:
    """Whether a compiled function binds this name to something else at each call."""
    return name in holder.rebound or (id(holder.reference()), type(holder), name) in _rebound
