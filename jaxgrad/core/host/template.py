"""Blocks for all shapes of one pattern: traced once with symbolic extents.

To trace an operator takes JAX 1 to 2 ms, and a program that meets new shapes all the time waits for
that at each of its operators. A template is the block of a program whose extents are symbols of
`jax.export`, as plain data (stored.py); to put numbers in their places takes microseconds, and
files keep it.

Where a comparison by size of symbols would decide what is computed, JAX refuses to trace. A test of
equality is false instead, unless it holds for all extents. So a template has conditions: the
differences that must not be 0.
"""

from __future__ import annotations

from typing import NamedTuple

from ...late import LateModule
from .extents import MOST_NODES, SYMBOLS, checked, value
from .stored import BlockReader, NotStoredError

export = LateModule("jax.export")


def symbols(count: int) -> tuple:
    """New symbols that stand for extents. None is 0 or 1, which have rules of their own."""
    if not count:
        return ()
    names = [f"d{i}" for i in range(count)]
    scope = export.SymbolicScope([f"{name} >= 2" for name in names])
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
    """The shapes of a pattern, with extents in the places of symbols. None is for symbols of JAX,
    which no other shapes have: what JAX keeps of another trace is of no use without its tests of
    equality.
    """
    if extents is None:
        extents = symbols(max([0, *[-extent for shape in shapes for extent in shape]]))
    return [
        tuple([extent if extent >= 0 else extents[-1 - extent] for extent in shape])
        for shape in shapes
    ]


class Record(NamedTuple):
    """What is kept of a template: plain data.

    traits: what a trace shows of a program; conditions: the trees of the differences that must not
    be 0; block: the data of the block.
    """

    traits: dict
    conditions: list
    block: list


class Template:
    """The program of a record, all of which is looked at here: `template(extents)` is a block.

    Raises NotStoredError, a ValueError.
    """

    def __init__(self, record):
        if type(record) is not list or len(record) != len(Record._fields):
            raise NotStoredError("no record")
        self.record = Record(*record)
        self.traits, conditions, block = self.record
        if type(self.traits) is not dict or type(conditions) is not list:
            raise NotStoredError("no record")
        if len(conditions) > MOST_NODES:
            raise NotStoredError("too many conditions")
        self.conditions = [*map(checked, conditions)]
        self.block_for = BlockReader(block)

    def __call__(self, extents):
        """The block for extents; None if a condition excludes them. Raises ValueError."""
        padded = (*extents, *(2,) * (SYMBOLS - len(extents)))
        if any(value(condition, padded) == 0 for condition in self.conditions):
            return None
        return self.block_for(extents)
