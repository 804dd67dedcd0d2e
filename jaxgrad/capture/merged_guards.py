"""Guards of one kind checked together, so that a warm call compares many objects in few steps."""

from __future__ import annotations

import operator

from .guards import AttributeValue, Guard, ObjectRead
from .holders import InstanceHolder, StateGuard


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
    if type(guard) is StateGuard and guard.mapping is InstanceHolder.mapping:
        is_whole = guard.keys is not None or guard.absent
        return guard if is_whole or guard.holder() is None else type(guard)
    return guard


def _merged(guards):
    first = guards[0]
    if len(guards) == 1:
        return first
    if isinstance(first, StateGuard):
        return Bindings(guards)
    read = first.read if isinstance(first, ObjectRead) else operator.attrgetter(first.name)
    return Reads(guards, read)


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
        except (KeyError, AttributeError):
            pass  # something is gone
        return all(guard.check(leaves, tensors) for guard in self.guards)


class Reads(MergedGuard):
    """What a function reads of many objects."""

    def __init__(self, guards, read):
        super().__init__(guards)
        self.read, self.owners = read, [guard.owner for guard in guards]
        self.values = [guard.value for guard in guards]

    def is_unchanged(self):
        return list(map(self.read, map(operator.call, self.owners))) == self.values


class Bindings(MergedGuard):
    """What attributes of many instances are bound to."""

    def __init__(self, guards):
        super().__init__(guards)
        self.owners = [guard.holder for guard in guards]
        strong = [(k, *pair) for k, guard in enumerate(guards) for pair in guard.strong.items()]
        weak = [(k, *pair) for k, guard in enumerate(guards) for pair in guard.weak.items()]
        self.places = [each[0] for each in (*strong, *weak)]
        self.names = [each[1] for each in (*strong, *weak)]
        self.values, self.references = [each[2] for each in strong], [each[2] for each in weak]

    def is_unchanged(self):
        attributes = list(map(_attributes, map(operator.call, self.owners)))
        found = map(operator.getitem, map(attributes.__getitem__, self.places), self.names)
        # `all` takes from `found` as many as there are values, and then those of the references
        return all(map(operator.is_, self.values, found)) and all(
            map(operator.is_, map(operator.call, self.references), found)
        )


_attributes = operator.attrgetter("__dict__")
