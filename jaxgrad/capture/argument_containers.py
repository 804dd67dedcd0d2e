"""Lists, dicts and dataclasses among the arguments of a compiled function, which it may change.

The function is traced on the caller's own containers. Where the trace has another leaf in a
container, such as a symbolic number, the function is traced on a copy of the container. Snapshots
of the containers (state/holder.py) show what the function changes in them, as they do for other
state. Each call changes the containers at the same places among its own arguments.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import operator

import jax

from ..state.guards import Guard
from ..state.holder import InstanceHolder, holder_of
from ..state.objects import reference_to
from ..tape import pytree
from ..tape.sparse_tensor import is_sparse
from . import RunsUncompiled
from .side_effects import StateEffect


class Leaves(list):
    """The leaves of the arguments of a call; `arguments` is the pair of arguments and keywords."""

    __slots__ = ("arguments",)


def containers_of(leaves) -> list:
    """The containers among the arguments of a call, in order, each as often as it is reached."""
    args, kwargs = getattr(leaves, "arguments", ((), {}))
    containers, waiting = [], [*args, *kwargs.values()][::-1]
    while waiting:
        value = waiting.pop()
        inner = _contents(value)
        if inner is not None:
            if not isinstance(value, tuple):
                containers.append(value)
            waiting.extend(reversed(inner))
    return containers


def _contents(value) -> list | None:
    """The contents of a node of the arguments' tree; None for a leaf."""
    if isinstance(value, tuple | list):
        return [*value]
    if isinstance(value, dict):
        return [*value.values()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    return None


def _has_sparse(arguments) -> bool:
    """Whether a sparse tensor is among arguments, whose leaves are its parts."""
    return any(map(is_sparse, pytree.flatten(arguments, is_sparse)[0]))


class ArgumentContainers:
    """The containers among the arguments of a call that is traced.

    `arguments`: the arguments of the traced function; `before`, `inside`: the caller's containers
    and those that the function gets, in order; `reached`: by place the containers that the function
    also reaches by itself; `positions`: by the id of a container its first place; `places`: by the
    id of a holder the place of its container; `is_used`: whether a call needs its own containers.
    """

    def __init__(self, leaves, inner, structure, observation):
        """leaves, structure: of the call; inner: what the function gets in the place of leaves;
        observation: None where no call repeats what is changed.
        """
        self.inner, self.structure, self.is_used = inner, structure, False
        self.before, self.arguments = containers_of(leaves), getattr(leaves, "arguments", None)
        is_same = self.arguments is not None and all(map(operator.is_, inner, leaves))
        if is_same and not _has_sparse(self.arguments):
            self.inside = self.before
        else:
            copied = Leaves(inner)
            self.arguments = copied.arguments = jax.tree.unflatten(structure, inner)
            self.inside = containers_of(copied)
        self.positions: dict[int, int] = {}
        self.places: dict[int, int] = {}
        self.reached: dict[int, object] = {}
        self.is_seen = observation is not None and len(self.inside) == len(self.before)
        if self.is_seen:
            self.observe(observation)

    def observe(self, observation):
        """Take snapshots of the containers, except of those that are observed as state."""
        for position, (outer, inner) in enumerate(zip(self.before, self.inside, strict=True)):
            kind = InstanceHolder if dataclasses.is_dataclass(inner) else None
            if observation.snapshots.get(outer, kind) is not None:
                self.reached[position] = outer
            elif id(inner) not in self.positions:
                self.positions[id(inner)] = position
                holder = (kind or holder_of)(inner, "an argument")
                self.places[id(holder)] = position
                observation.holders.append(holder)
                observation.existing.add(id(holder))
        # a copy does not stand for what is also something else
        is_own = len(set(map(id, self.before))) == len(set(map(id, self.inside)))
        pairs = [(value, self.inside[position]) for position, value in self.reached.items()]
        self.is_seen = is_own and all(itertools.starmap(operator.is_, pairs))

    def refuse_changes(self, name: str, changes):
        """Raise RuntimeError if the function has changed containers and no call would repeat the
        change. changes: the changes that snapshots show.
        """
        if pytree.has_cycle(self.arguments):
            raise RunsUncompiled(f"{name} puts a list or dict among its arguments into itself")
        leaves, structure = pytree.flatten(self.arguments)
        is_same = len(leaves) == len(self.inner) and all(map(operator.is_, leaves, self.inner))
        if is_same and structure == self.structure:
            return
        seen = {id(change.holder.reference()) for change in changes}
        if not self.is_seen or seen.isdisjoint(map(id, self.inside)):
            raise RuntimeError(
                f"{name}, compiled by jaxgrad.jit, changes a list or dict among its arguments, and "
                "the caller would not see it: return the new one"
            )

    def release_copies(self):
        """Release the objects that the function has put into its arguments."""
        self.arguments = self.inner = None

    def position_of(self, value) -> int | None:
        """The place of a container among the arguments, where each call has its own; None for any
        other value.
        """
        position = self.positions.get(id(value))
        self.is_used |= position is not None
        return position

    def effect_of(self, outputs, change) -> ArgumentEffect | None:
        """The effect of a change of a container; None where something else is changed."""
        position = self.places.get(id(change.holder))
        self.is_used |= position is not None
        return None if position is None else ArgumentEffect(outputs, change, position)

    def guards(self, effects) -> list[Guard]:
        """The guard on which containers are the same ones. effects: all that a call changes."""
        state = [effect.holder.reference for effect in effects if type(effect) is StateEffect]
        if not self.before or not (self.is_used or state):
            return []
        return [SameContainers(self.before, self.reached, state)]


class ArgumentEffect(StateEffect):
    """The names that a function binds and removes in a container among its arguments. `position`:
    the place of the container.
    """

    __slots__ = ("position",)

    def __init__(self, outputs, change, position: int):
        super().__init__(outputs, change)
        self.position = position
        # the container of the call that was traced, and what it held, may go
        self.holder = copy.copy(change.holder)
        self.holder.reference, self.holder.before = _nothing, {}

    def target(self, run):
        return run.containers[self.position]


class SameContainers(Guard):
    """Three facts about containers among the arguments: which places hold one object, which
    containers the function also reaches by itself, and that no other one is a container that the
    function changes by itself.
    """

    __slots__ = ("first", "reached", "state")

    def __init__(self, containers, reached: dict, state: list):
        self.first, self.state = _places(containers), state
        self.reached = {position: reference_to(value) for position, value in reached.items()}

    def check(self, leaves, tensors):
        containers = containers_of(leaves)
        if _places(containers) != self.first:
            return False
        if any(containers[n] is not known() for n, known in self.reached.items()):
            return False
        others = {id(value) for n, value in enumerate(containers) if n not in self.reached}
        return others.isdisjoint([id(known()) for known in self.state])

    def reason(self, leaves, tensors):
        return "a list or dict among the arguments is the same as another one, or is so no more"


def _places(containers) -> list[int]:
    """For each container where it is first."""
    numbers = list(map(id, containers))
    return list(map(numbers.index, numbers))


def _nothing():
    return None
