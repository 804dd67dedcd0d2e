"""The shapes of an export in which fewer sizes vary, or fewer numbers of them."""

from __future__ import annotations

import re

from ._extents import UNBOUNDED, Extent, Range
from .dynamic_shapes import Shapes


def varies(extent) -> bool:
    """Whether the extent of an argument varies."""
    return isinstance(extent, Extent)


def with_remainders(text: str) -> str:
    """A text with `mod(n, 2)` for the sums that sizes have in its place."""
    return re.sub(r"- (\d+)\*floordiv\(([^()]+), \1\) \+ \2(?!\w)", r"mod(\2, \1)", text)


def named(shapes, message) -> list[str]:
    """The symbols in a message, also those of shapes as "s0xs1"."""
    return [s for s in shapes.ranges if re.search(_pattern(shapes, s), message)]


def renamed(shapes, message, symbol, other: str) -> str:
    """A message with another text in the place of a symbol."""
    return re.sub(_pattern(shapes, symbol), other, message)


def _pattern(shapes, symbol) -> str:
    """What finds a symbol in a message; one without a name of the user may follow a letter."""
    return f"{symbol}(?!\\d)" if symbol in shapes.optional else rf"\b{symbol}\b"


def raised(shapes, symbols) -> Shapes:
    """Shapes in which symbols begin at 2."""
    ranges = {
        symbol: Range(max(bounds.lower, 2), bounds.upper) if symbol in symbols else bounds
        for symbol, bounds in shapes.ranges.items()
    }
    return Shapes(shapes.extents, ranges, shapes.sizes, shapes.optional, shapes.raised - {*symbols})


def narrowed(shapes, comparison) -> Shapes | None:
    """Shapes in which the symbol of a comparison with a number, if it may become a number, is on
    the side of the example.
    """
    if comparison is None or comparison[2] is None:
        return None
    symbol, sign, number = comparison
    is_number = number.isdigit() and sign in ("<", "<=", ">", ">=")
    if symbol not in shapes.optional or not is_number:
        return None
    known, number = shapes.ranges[symbol], int(number) + (sign in ("<=", ">"))
    is_above = shapes.sizes[symbol] >= number
    low, high = (max(known.lower, number), known.upper) if is_above else (known.lower, number - 1)
    if low >= high:
        return None
    ranges = {**shapes.ranges, symbol: Range(low, high)}
    return Shapes(shapes.extents, ranges, shapes.sizes, shapes.optional, shapes.raised)


def joined(shapes, kept, gone) -> Shapes:
    """Shapes in which two symbols are one."""
    first, second = (shapes.ranges[symbol] for symbol in (kept, gone))
    bounds = Range(max(first.lower, second.lower), min(first.upper, second.upper))
    return _replaced(shapes, {gone: lambda e: e._replace(symbol=kept)}, {kept: bounds})


def fixed(shapes, symbols) -> Shapes:
    """Shapes in which symbols are the numbers of the example."""
    return _replaced(shapes, {s: lambda e: e.of(shapes.sizes[e.symbol]) for s in symbols}, {})


def multiples(shapes, symbol, factor) -> Shapes:
    """Shapes in which a symbol stands for a multiple of what it stood for."""
    low, high = shapes.ranges[symbol]
    bounds = Range(-(-low // factor), high if high == UNBOUNDED else high // factor)
    several = {symbol: lambda extent: extent._replace(scale=extent.scale * factor)}
    extents = _replaced(shapes, several, {}).extents
    sizes = {**shapes.sizes, symbol: shapes.sizes[symbol] // factor}
    ranges = {**shapes.ranges, symbol: bounds}
    return Shapes(extents, ranges, sizes, shapes.optional, shapes.raised)


def _replaced(shapes, by_symbol, bounds) -> Shapes:
    def replaced(extent):
        is_one = varies(extent) and extent.symbol in by_symbol
        return by_symbol[extent.symbol](extent) if is_one else extent

    extents = {name: tuple(map(replaced, known)) for name, known in shapes.extents.items()}
    ranges = {s: bounds.get(s, known) for s, known in shapes.ranges.items() if s not in by_symbol}
    sizes = {symbol: shapes.sizes[symbol] for symbol in ranges}
    return Shapes(extents, ranges, sizes, shapes.optional & ranges.keys(), shapes.raised)
