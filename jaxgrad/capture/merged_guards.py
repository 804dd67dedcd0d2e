"""Guards of one kind checked together, so that a warm call compares many objects in few steps."""

from __future__ import annotations

import itertools
import operator

from .guards import AttributeValue, Guard, ObjectRead, is_same_plain_value
from .holders import CellHolder, DictHolder, InstanceHolder, StateGuard


def merged_checks(guards: list[Guard]) -> list:
    """The checks of guards, in their order; those that can be are merged into the first of them."""
    groups: dict[object, list[Guard]] = {}
    for guard in guards:
        groups.setdefault(_group(guard), []).append(guard)
    return [_merged(group).check for group in groups.values()]


def _group(guard):
    """What guards that are merged have in common; for others the guard itself."""
    if isinstance(guard, ObjectRead):
        return guard.read
    if isinstance(guard, AttributeValue):
        return guard.name
    if type(guard) is not StateGuard or guard.keys is not None:
        return guard
    if guard.kind is CellHolder:
        return guard if guard.absent else StateGuard
    is_dict = guard.mapping is InstanceHolder.mapping or issubclass(guard.kind, DictHolder)
    return StateGuard if is_dict else guard


def _merged(guards):
    first = guards[0]
    if _group(first) is StateGuard:
        return Bindings(guards)
    if len(guards) == 1:
        return first
    if isinstance(first, ObjectRead):
        return Reads(guards, first.read, operator.eq)
    return Reads(guards, operator.attrgetter(first.name), _same)


class MergedGuard:
    """Guards that are checked in one step; where anything is different, one by one."""

    def __init__(self, guards):
        self.guards = guards

    def is_unchanged(self) -> bool:
        """Whether every object is the one of before."""
        raise NotImplementedError(f"{type(self).__name__}.is_unchanged")

    def check(self, leaves, tensors) -> bool:
        try:
            if self.is_unchanged():
                return True
        except (KeyError, AttributeError, ValueError):
            pass  # something is gone
        return all(guard.check(leaves, tensors) for guard in self.guards)


class Reads(MergedGuard):
    """What a function reads of many objects. `same(values, found)` compares it."""

    def __init__(self, guards, read, same):
        super().__init__(guards)
        self.read, self.same, self.owners = read, same, [guard.owner for guard in guards]
        self.values = [guard.value for guard in guards]

    def is_unchanged(self):
        return self.same(self.values, list(map(self.read, map(_call, self.owners))))


class Bindings(MergedGuard):
    """What closure variables, attributes of instances and items of dicts are bound to."""

    def __init__(self, guards):
        super().__init__(guards)
        cells = [each for each in guards if each.kind is CellHolder]
        instances = [each for each in guards if each.mapping is InstanceHolder.mapping]
        dicts = [each for each in guards if issubclass(each.kind, DictHolder)]
        self.instances, self.dicts = _holders(instances), _holders(dicts)
        known = _rows([*instances, *dicts], "strong"), _rows([*instances, *dicts], "weak")
        self.places, self.names, self.values = _columns([*known[0], *known[1]])
        self.references, self.values = self.values[len(known[0]) :], self.values[: len(known[0])]
        absent = [(k, n) for k, each in enumerate([*instances, *dicts]) for n in each.absent]
        self.absent = [row[0] for row in absent], [row[1] for row in absent]
        inner = _rows(cells, "strong"), _rows(cells, "weak")
        targets = [each.holder() for each in cells]
        self.cells = [targets[row[0]] for row in (*inner[0], *inner[1])]
        self.contents = [row[2] for row in inner[0]]
        self.content_references = [row[2] for row in inner[1]]

    def is_unchanged(self):
        return self.compare(_same) or self.compare(_equal)

    def compare(self, same) -> bool:
        # all in C: `same` takes from what was found as many as there are values, `_alive` the rest
        if self.cells:
            found = map(_contents_of_cell, self.cells)
            if not (same(self.contents, found) and _alive(self.content_references, found)):
                return False
        dicts = [*map(_call, self.dicts)]
        if self.instances:
            dicts[:0] = map(_attributes, map(_call, self.instances))
        found = map(_item, map(dicts.__getitem__, self.places), self.names)
        if not (same(self.values, found) and _alive(self.references, found)):
            return False
        places, names = self.absent
        return not (names and any(map(_contains, map(dicts.__getitem__, places), names)))


def _holders(guards) -> list:
    return [each.holder for each in guards]


def _rows(guards, kind) -> list[tuple]:
    """The number of a guard, a name and what it is bound to."""
    return [(k, *pair) for k, each in enumerate(guards) for pair in getattr(each, kind).items()]


def _columns(rows) -> list[list]:
    return [[row[column] for row in rows] for column in range(3)]


def _same(values, found) -> bool:
    return not values or all(map(_is, values, found))


def _equal(values, found) -> bool:
    found = list(itertools.islice(found, len(values)))
    if not all(map(is_same_plain_value, found, values)):
        return False
    values[:] = found  # the next call may find the same objects
    return True


def _alive(references, found) -> bool:
    return not references or all(map(_is, map(_call, references), found))


_is, _call, _item, _contains = operator.is_, operator.call, operator.getitem, operator.contains
_attributes = operator.attrgetter("__dict__")
_contents_of_cell = operator.attrgetter("cell_contents")
