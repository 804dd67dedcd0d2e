"""Guards of one kind checked together, so that a warm call compares many objects in few steps."""

from __future__ import annotations

import itertools
import operator

from .guards import AttributeValue, Guard, ObjectRead, StateGuard
from .holder import (
    MEMBERS,
    CellHolder,
    ClassHolder,
    DictHolder,
    FunctionHolder,
    GlobalsHolder,
    InstanceHolder,
    MemberHolder,
    SequenceHolder,
)
from .objects import is_same_plain_value


def merged_checks(guards: list[Guard]) -> list:
    """The checks of guards, in their order; guards of one group are merged into the
    first of them.
    """
    groups: dict[object, list[Guard]] = {}
    for guard in guards:
        groups.setdefault(_group(guard), []).append(guard)
    return [_merged(group).check for group in groups.values()]


def _group(guard):
    """The key of guards that are merged; the guard itself for others."""
    if isinstance(guard, ObjectRead):
        return guard.read
    if isinstance(guard, AttributeValue):
        # `attrgetter` takes a dot for the attribute of an attribute
        return guard if "." in guard.name else guard.name
    if type(guard) is not StateGuard:
        return guard.group()
    if guard.kind is CellHolder:
        return guard if guard.absent else StateGuard
    return guard if _reader(guard) is None else StateGuard


def _reader(guard: StateGuard):
    """The function in C that gives the contents of an object by name or number; None if there is
    none.
    """
    if guard.kind in (ClassHolder, GlobalsHolder) and guard.keys is not None:
        return None  # Python adds names that do not count
    if guard.kind is ClassHolder or guard.mapping is InstanceHolder.mapping:
        return _attributes
    if guard.kind is FunctionHolder:
        return _defaults
    if issubclass(guard.kind, MemberHolder):
        return _MEMBERS[guard.kind]
    if not issubclass(guard.kind, DictHolder | SequenceHolder):
        return None
    target = guard.holder()
    # a class may read items in its own way, past which its guard looks
    return _itself if target is not None and guard.mapping(target) is target else None


def _merged(guards):
    first = guards[0]
    if _group(first) is StateGuard:
        return Bindings(guards)
    if not isinstance(first, ObjectRead | AttributeValue):
        return first.merged(guards)
    if len(guards) == 1:
        return first
    if isinstance(first, ObjectRead):
        return Reads(guards, first.read, operator.ne)
    return Reads(guards, operator.attrgetter(first.name), operator.is_not)


class MergedGuard:
    """Guards that are checked in one step, or one by one if anything differs."""

    def __init__(self, guards):
        self.guards = guards

    def is_unchanged(self) -> bool:
        """Whether every object is the one of before."""
        raise NotImplementedError(f"{type(self).__name__}.is_unchanged")

    def check(self, *call) -> bool:
        try:
            if self.is_unchanged():
                return True
        except (KeyError, IndexError, AttributeError, TypeError, ValueError):
            pass  # something is gone
        return all(guard.check(*call) for guard in self.guards)


class Reads(MergedGuard):
    """The values that a function reads of many objects. `is_other(value, known)` compares one."""

    def __init__(self, guards, read, is_other):
        super().__init__(guards)
        self.read, self.is_other = read, is_other
        self.rows = [(guard.owner, guard.value) for guard in guards]

    def is_unchanged(self):
        read, is_other = self.read, self.is_other
        for owner, value in self.rows:  # a loop takes less time than `all` of a generator
            if is_other(read(owner()), value):
                break
        else:
            return True
        return False


class Bindings(MergedGuard):
    """The values of closure variables, attributes, defaults, items and elements."""

    def __init__(self, guards):
        super().__init__(guards)
        cells = [guard for guard in guards if guard.kind is CellHolder]
        by_reader = {}
        for guard in guards:
            if guard.kind is not CellHolder:
                by_reader.setdefault(_reader(guard), []).append(guard)
        self.holders = [
            (read, [guard.holder for guard in group]) for read, group in by_reader.items()
        ]
        others = [*itertools.chain(*by_reader.values())]
        # lists whose elements all are referred to weakly, such as those of parameters
        listed = [k for k, guard in enumerate(others) if _is_weak_list(guard)]
        self.listed, self.elements = listed, [r for k in listed for r in others[k].references]
        known = [_rows(others, kind, besides=listed) for kind in ("strong", "weak")]
        self.places, self.names, self.values = _columns([*known[0], *known[1]])
        self.references, self.values = self.values[len(known[0]) :], self.values[: len(known[0])]
        self.absent = [(k, tuple(guard.absent)) for k, guard in enumerate(others) if guard.absent]
        # the numbers of those that are compared as a whole, and of these with names
        self.whole = [k for k, guard in enumerate(others) if guard.keys is not None]
        self.sizes = [len(others[k].keys) for k in self.whole]
        self.named = [k for k in self.whole if not others[k].is_sequence]
        self.keys = [key for k in self.named for key in others[k].keys]
        inner = _rows(cells, "strong"), _rows(cells, "weak")
        targets = [guard.holder() for guard in cells]
        self.cells = [targets[row[0]] for row in inner[0]]
        self.contents = [row[2] for row in inner[0]]
        self.weak_cells = [(targets[row[0]], row[2]) for row in inner[1]]

    def is_unchanged(self):
        return self.compare(_same) or self.compare(_equal)

    def compare(self, same) -> bool:
        for cell, reference in self.weak_cells:
            if cell.cell_contents is not reference():
                return False
        if self.cells and not same(self.contents, map(_contents_of_cell, self.cells)):
            return False
        if not self.holders:
            return True
        # all in C: `same` takes as many of the values as it knows, the rest are referred to weakly
        contents = []
        for read, holders in self.holders:
            targets = map(_call, holders)
            contents += targets if read is _itself else map(read, targets)
        of = contents.__getitem__
        if self.whole:
            if [*map(len, map(of, self.whole))] != self.sizes:
                return False
            if not all(map(_is, _chained(map(of, self.named)), self.keys)):
                return False
            if not all(map(_is, _chained(map(of, self.listed)), map(_call, self.elements))):
                return False
        if self.places:
            values = map(_item, map(of, self.places), self.names)
            if self.values and not same(self.values, values):
                return False
            if self.references and not all(map(_is, map(_call, self.references), values)):
                return False
        for place, names in self.absent:
            if any(map(contents[place].__contains__, names)):
                return False
        return True


def _is_weak_list(guard) -> bool:
    return guard.is_sequence and guard.keys is not None and len(guard.weak) == len(guard.keys)


def _rows(guards, kind, besides=()) -> list[tuple]:
    """The number of a guard, a name and its value."""
    return [
        (k, _NUMBERS.get(name, name) if guard.kind is FunctionHolder else name, value)
        for k, guard in enumerate(guards)
        if k not in besides
        for name, value in getattr(guard, kind).items()
    ]


def _columns(rows) -> list[list]:
    return [[row[column] for row in rows] for column in range(3)]


def _same(known, values) -> bool:
    return all(map(_is, known, values))


def _equal(known, values) -> bool:
    values = list(itertools.islice(values, len(known)))
    if not all(map(is_same_plain_value, values, known)):
        return False
    known[:] = values  # the next call may meet the same objects
    return True


_chained = itertools.chain.from_iterable
_is, _call, _item = operator.is_, operator.call, operator.getitem
_attributes = operator.attrgetter("__dict__")
_defaults = operator.attrgetter("__defaults__", "__kwdefaults__")
_MEMBERS = {kind: operator.attrgetter(group) for group, kind in MEMBERS.items()}
_NUMBERS = {"__defaults__": 0, "__kwdefaults__": 1}


def _itself(target):
    return target


_contents_of_cell = operator.attrgetter("cell_contents")
