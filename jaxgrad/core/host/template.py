"""Blocks for all shapes of one pattern: traced once with symbolic extents.

JAX takes 1 to 2 ms to trace an operator. A program that meets new shapes all the time would wait as
long at each of its operators. A template is the block of a program whose extents are symbols of
`jax.export`. It is plain data (stored.py), which files keep, and to put numbers in place of the
symbols takes microseconds.

A trace may compare symbols, and the block may depend on the result. So a template has conditions,
which compare extents, and serves only extents for which all conditions hold (premises.py).
"""

from __future__ import annotations

from typing import NamedTuple

from ...late import LateModule
from .extents import MOST_NODES, SYMBOLS, checked_condition, holds
from .stored import BlockReader, NotStoredError

export = LateModule("jax.export")


def symbols(count: int, constraints=()) -> tuple:
    """New symbols that stand for extents, of which the constraints of JAX hold. None is 0 or 1,
    which have rules of their own. Where a constraint says what one is, that is in its place.

    No other shapes have these symbols: what JAX keeps of another trace is of no use without its
    comparisons.
    """
    if not count:
        return ()
    names = [f"d{i}" for i in range(count)]
    scope = export.SymbolicScope([*[f"{name} >= 2" for name in names], *constraints])
    return export.symbolic_shape(",".join(names), scope=scope)


def pattern_of(shapes) -> tuple[tuple, tuple[int, ...]] | None:
    """Shapes with the number of a symbol, less than 0, in place of each extent of two or more, and
    these extents in order; None if there are too many. Equal extents have one symbol.
    """
    places: dict[int, int] = {}
    pattern = tuple(
        [
            tuple([n if n < 2 else places.setdefault(n, -1 - len(places)) for n in shape])
            for shape in shapes
        ]
    )
    return None if len(places) > SYMBOLS else (pattern, tuple(places))


def with_extents(shapes, extents) -> list[tuple]:
    """The shapes of a pattern, with extents, which may be symbols, in the places of numbers."""
    return [
        tuple([extent if extent >= 0 else extents[-1 - extent] for extent in shape])
        for shape in shapes
    ]


class Record(NamedTuple):
    """The plain data of a template.

    traits: what a trace shows of a program; conditions: of extents (extents.py); block: the data of
    the block.
    """

    traits: dict
    conditions: list
    block: list


class Template:
    """The program of a record: `template(extents)` is a block. The conditions are checked here, and
    the block before it is first made.

    read_again: reads the record again. Most templates of a file serve one call, so the data of the
    block is not kept, nor is its reader before the second call: thousands of lists would slow down
    Python's garbage collector. Raises NotStoredError, a ValueError.
    """

    def __init__(self, record, read_again=None):
        if type(record) is not list or len(record) != len(Record._fields):
            raise NotStoredError("no record")
        self.traits, conditions, self._data = Record(*record)
        self._read_again, self._reader, self._has_served = read_again, None, False
        if type(self.traits) is not dict or type(conditions) is not list:
            raise NotStoredError("no record")
        if len(conditions) > MOST_NODES:
            raise NotStoredError("too many conditions")
        self.conditions = [*map(checked_condition, conditions)]

    @property
    def record(self) -> Record:
        """What is kept of it."""
        data = self._data
        data = self._read_again()[-1] if data is None else data
        return Record(self.traits, self.conditions, data)

    def reader(self) -> BlockReader:
        """The function that makes a block for extents."""
        reader = self._reader or BlockReader(self.record.block)
        if self._has_served or self._read_again is None:
            self._reader = reader
        self._has_served = True
        if self._read_again is not None:
            self._data = None
        return reader

    def serves(self, extents) -> bool:
        """Whether all conditions hold of extents. Raises ValueError."""
        padded = (*extents, *(2,) * (SYMBOLS - len(extents)))
        return all(holds(condition, padded) for condition in self.conditions)

    def __call__(self, extents):
        """The block for extents; None if a condition excludes them. Raises ValueError."""
        return self.reader()(extents) if self.serves(extents) else None
