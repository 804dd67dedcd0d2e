"""Joined memory: tensors from outside that share memory which a traced function writes to.

The memory is one input of the program. Each captured tensor that shows a part of the memory is a
view of it in the trace too, by the view operators of its place outside. So a write through one
tensor reaches the others (storage/alias.py). Each call gives the memory its new value, and the
tensors follow when they are read.

At first a function is traced with separate captured tensors, since nothing writes to most shared
memory. If the function does write to it, `SharesMemory` tells which memory to join, and the
function is traced again.
"""

from __future__ import annotations

import numpy as np

from ..core.copy_slices import ViewStep, in_order, same
from ..core.view_ops import is_strided
from ..storage.alias import (
    Alias,
    begin,
    chain_from,
    offset_of,
    place_inside,
    root_of,
    settle,
)
from ..tape.tensor import (
    Tensor,
    abstract_value,
    alias_of,
    held,
    known_counter,
    set_alias,
    set_counter,
    wrap,
)
from .captured import TensorInput
from .graph_input import TensorSource
from .guards import SeparateMemory

# what a program gets in the place of the array of a joined tensor, which it does not read
PLACEHOLDER = np.zeros((), np.bool_)


class OwnerSource(TensorSource):
    """Finds a tensor that shows the whole memory of a captured view."""

    def __init__(self, member):
        self.number, self.is_outside = member.number, member.is_outside

    def find(self, leaves, tensors):
        return owner_of(tensors[self.number])


class ViewedSource(TensorSource):
    """Finds the root or the base of a captured view, by `read` of its alias."""

    def __init__(self, member, read):
        self.number, self.read, self.is_outside = member.number, read, member.is_outside

    def find(self, leaves, tensors):
        alias = alias_of(tensors[self.number])
        return None if alias is None or alias.root is None else self.read(alias)


def owner_of(tensor: Tensor) -> Tensor | None:
    """A new tensor for all of the memory that a tensor shares; None where it shares none."""
    alias = alias_of(tensor)
    if alias is None:
        return None
    settle(alias.storage)
    owner = wrap(alias.storage.array, alias.storage.aval)
    set_alias(owner, Alias(alias.storage))
    set_counter(owner, known_counter(tensor))
    return owner


def is_viewed(captured) -> bool:
    """Whether a captured tensor is one that an argument is a view of."""
    return isinstance(captured.source, ViewedSource) and not captured.is_outside


def base_of(alias: Alias) -> Tensor | None:
    return alias.base


class Cut:
    """The part of a joined memory that a captured tensor shows.

    `number`: the number of the tensor; `root`, `base`: the numbers of its root and base, None for
    none; `place`, `steps`: the view calls that lead to it from the memory and from the root;
    `creation`: how it was created as a view; `offset`: its first element, if all views are given by
    strides.
    """

    __slots__ = ("base", "creation", "number", "offset", "place", "root", "steps")

    def __init__(self, number: int, alias: Alias, root: int | None, base: int | None):
        self.number, self.root, self.base, self.creation = number, root, base, alias.creation
        self.place, self.steps = alias.place, alias.steps
        self.offset = strided_offset(alias.place)

    def fits(self, alias: Alias, tensors) -> bool:
        """Whether the alias of a tensor is this cut; its shape and strides are known to fit."""
        if alias.creation != self.creation or (alias.root is None) is not (self.root is None):
            return False
        if self.root is not None:
            base = None if self.base is None else tensors[self.base]
            if alias.root is not alias_of(tensors[self.root]) or alias.base is not base:
                return False
        if same(alias.place, self.place):
            return True
        return self.offset is not None and strided_offset(alias.place) == self.offset


def strided_offset(place: ViewStep | None) -> int | None:
    """The number of elements of the memory before the first element at a place; None if a view on
    the way is not given by strides.
    """
    if not all(is_strided(call) for call, _ in in_order(place)):
        return None
    return offset_of(place)


class JoinedMemory:
    """A memory that is one input of a program, by the number of its `owner`, and its `cuts`.

    These exist only while tracing: `inner`: the memory in the trace; `avals`: by number the first
    abstract values of the tensors in the trace; `entries`: their aliases; `of_alias`: the captured
    tensors, by the ids of their aliases outside.
    """

    def __init__(self, owner):
        alias = begin(owner.tensor)
        owner.entry = alias
        self.owner, self.inner, self.cuts = owner.number, alias.storage, []
        self.avals: dict[int, object] = {}
        self.entries: dict[int, Alias] = {}
        self.of_alias: dict[int, object] = {}

    def place(self, cut: Cut, captured, before: Tensor | None, base: Tensor | None):
        """Give a captured tensor its place inside. before, base: the handles of its root and base;
        None where it has none.
        """
        if cut.root is None:
            entry = Alias(self.inner, chain_from(self.inner.aval, cut.place))
        else:
            root = self.entries[cut.root]
            steps = place = chain_from(self.avals[cut.root], cut.steps)
            if root.place is not None:
                place = root.place
                for call, numbers in in_order(steps):
                    place = ViewStep(call, numbers, place)
            entry = Alias(self.inner, place, root, base, steps, cut.creation)
            entry.before = before if base is None else None
        entry.followed = 0
        tensor = captured.tensor
        place_inside(tensor, entry)
        self.cuts.append(cut)
        self.entries[cut.number], self.avals[cut.number] = entry, abstract_value(tensor)
        captured.entry, captured.tracer = entry, held(tensor)

    def release(self):
        self.inner = self.avals = self.entries = self.of_alias = None


def released(groups: dict) -> list[JoinedMemory]:
    """The joined memories of a scope that has ended, for later calls."""
    for group in groups.values():
        group.release()
    return list(groups.values())


def is_joined(captured, joined: set) -> bool:
    """Whether a captured tensor shows a part of joined memory."""
    alias = captured.snapshot.alias
    is_owner = type(captured.source) is OwnerSource
    return alias is not None and alias.storage in joined and not is_owner


def join(scope, captured):
    """Capture a tensor as a part of joined memory."""
    alias, tensor = captured.snapshot.alias, captured.tensor
    group = scope.groups.get(id(alias.storage))
    if group is None:
        with scope.outer_trace():
            owner = owner_of(tensor)
        owner = scope.capture(owner, OwnerSource(captured))
        group = scope.groups[id(alias.storage)] = JoinedMemory(owner)
    root = base = None
    if alias.root is not None:
        root = group.of_alias.get(id(alias.root))
        if root is None:
            root = scope.capture(root_of(alias), ViewedSource(captured, root_of))
        if alias.base is not None:
            base = scope.capture(alias.base, ViewedSource(captured, base_of))
    group.of_alias[id(alias)] = captured
    scope.add_input(PLACEHOLDER, TensorInput(captured))
    numbers = [None if viewed is None else viewed.number for viewed in (root, base)]
    handles = [None if viewed is None else viewed.tensor for viewed in (root, base)]
    group.place(Cut(captured.number, alias, *numbers), captured, *handles)


def join_again(scope, groups, captured):
    """Give the tensors of a replay the places of the captured ones of a trace.

    groups: those of the trace; captured: the captured tensors of the replay, by number.
    """
    for group in groups:
        again = JoinedMemory(captured[group.owner])
        for cut in group.cuts:
            root, base = [
                None if number is None else captured[number].tensor
                for number in (cut.root, cut.base)
            ]
            again.place(cut, captured[cut.number], root, base)
        scope.groups[id(again)] = again


class JoinedTensors(SeparateMemory):
    """The captured tensors share memory as in the trace, and with no other tensors; see
    `SeparateMemory`.
    """

    __slots__ = ("groups", "members")

    def __init__(self, written: list[int], alone: list[int], groups: list[JoinedMemory]):
        super().__init__(written, alone)
        self.groups = groups
        owners = {group.owner for group in groups}
        self.members = owners | {cut.number for group in groups for cut in group.cuts}

    def check(self, leaves, tensors):
        storages = set()
        for group in self.groups:
            storage = alias_of(tensors[group.owner]).storage
            storages.add(id(storage))
            for cut in group.cuts:
                alias = alias_of(tensors[cut.number])
                if alias is None or alias.storage is not storage or not cut.fits(alias, tensors):
                    return False
        others = [tensor for number, tensor in enumerate(tensors) if number not in self.members]
        elsewhere = {id(alias.storage) for alias in map(alias_of, others) if alias is not None}
        is_same = len(storages) == len(self.groups) and storages.isdisjoint(elsewhere)
        return is_same and super().check(leaves, tensors)

    def reason(self, leaves, tensors):
        return "tensors that share memory which it changes do so in another way now"
