"""Traces with sizes that vary, and what becomes of sizes on which the trace depends.

Where code needs to know a size, one that may be a number becomes one; two that must be equal become
one; and a size that may be 1 is taken to be 2 or more. Any other is an error that names the line.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import re
import sys
import traceback

import jax

from ..core.jax_internals import inconclusive, watched_tests
from ..late import LateModule
from ..state.ownership import is_internal, root
from ._errors import UserError
from ._extents import UNBOUNDED, Extent, Range
from .dynamic_shapes import Shapes

jax_export = LateModule("jax.export")

MOST_TRACES = 24
LIBRARY = "a line of a library"


class Decided(Exception):
    """Code compares sizes, and goes one way for all of them."""

    def __init__(self, pair):
        super().__init__(f"{pair[0]} == {pair[1]}")
        self.pair = pair


def shaped(shapes: Shapes) -> dict[str, tuple]:
    """The extents of each tensor, with JAX's symbols in place of sizes that vary."""
    texts = {str(e) for extents in shapes.extents.values() for e in extents if _varies(e)}
    if not texts:
        return shapes.extents
    scope = jax_export.SymbolicScope(_constraints(shapes.ranges))
    ordered = sorted(texts)
    symbols = jax_export.symbolic_shape(", ".join(ordered), scope=scope)
    by_text = dict(zip(ordered, symbols, strict=True))
    return {
        name: tuple([by_text[str(e)] if _varies(e) else e for e in extents])
        for name, extents in shapes.extents.items()
    }


def _varies(extent) -> bool:
    return isinstance(extent, Extent)


def _constraints(ranges: dict[str, Range]) -> list[str]:
    return [
        *[f"{symbol} >= {low}" for symbol, (low, _) in ranges.items() if low > 1],
        *[f"{symbol} <= {high}" for symbol, (_, high) in ranges.items() if high != UNBOUNDED],
    ]


def decided(shapes: Shapes, trace) -> tuple:
    """The result of `trace(extents)`, and the shapes for which it succeeded.

    Raises UserError where a size that is to vary decides what the code does.
    """
    for _ in range(MOST_TRACES):
        try:
            with _noting(shapes):
                return trace(shaped(shapes)), shapes
        except UserError:
            raise
        except Exception as error:
            further = _further(shapes, error)
            if further is None:
                raise _refusal(shapes, error) from error
            shapes = further
    raise UserError("the sizes that vary are not settled: give them names by Dim, or fix some")


# ---- what a trace takes to be decided


@contextlib.contextmanager
def _noting(shapes):
    """Raise `Decided` in the user's code where it compares sizes that vary."""
    if not shapes.ranges:
        yield
        return

    def note(frame, pair):
        while frame is not None and root(frame) in sys.stdlib_module_names:
            frame = frame.f_back  # such as the lookup in a dict of weak references
        if not is_internal(frame) and "jax" not in frame.f_code.co_filename and _may_be_equal(pair):
            raise Decided(pair)

    with watched_tests(note):
        yield


def _may_be_equal(pair) -> bool:
    first, second = pair
    try:
        return not (first > second or first < second)
    except jax.errors.InconclusiveDimensionOperation:
        return True


# ---- what becomes of sizes


def _further(shapes: Shapes, error) -> Shapes | None:
    """Shapes in which the sizes that an error names are decided; None if none of them may be."""
    message = str(error)
    named = _named(shapes, message)
    is_open = isinstance(error, Decided) or inconclusive(error) is not None
    low = [s for s in named if s in shapes.raised and shapes.sizes[s] >= 2]
    if is_open and low:
        return _raised(shapes, low)
    for comparison in (inconclusive(error), *_bounds(message)):
        narrower = _narrowed(shapes, comparison)
        if narrower is not None:
            return narrower
    for symbol, factor in re.findall(r"\bmod\((\w+), (\d+)\)", message):
        if symbol in shapes.optional and shapes.sizes[symbol] % int(factor) == 0:
            return _multiples(shapes, symbol, int(factor))
    optional = [s for s in named if s in shapes.optional]
    pairs = [pair for pair in itertools.combinations(named, 2) if _may_be_one(shapes, pair)]
    if pairs:
        return _joined(shapes, pairs[0])
    if not named and _is_shape_error(error):
        optional = [s for s in shapes.ranges if s in shapes.optional][-1:]
    return _fixed(shapes, optional[-1:]) if optional else None


def _bounds(message) -> list[tuple]:
    """Comparisons that tell what the extrema in a message are."""
    extrema = re.findall(r"\b(min|max)\((\w+), (\d+)\)", message)
    return [(symbol, {"min": "<=", "max": ">="}[name], number) for name, symbol, number in extrema]


def _named(shapes, message) -> list[str]:
    """The symbols in a message, also those of shapes as "s0xs1"."""
    ends = dict.fromkeys(shapes.ranges, (r"\b", r"\b"))
    ends |= dict.fromkeys(shapes.optional, ("", r"(?!\d)"))
    return [s for s in shapes.ranges if re.search(s.join(ends[s]), message)]


def _is_shape_error(error) -> bool:
    return isinstance(error, TypeError | jax.errors.JAXTypeError) and "_DimExpr" in str(error)


def _may_be_one(shapes, pair) -> bool:
    first, second = (shapes.sizes[symbol] for symbol in pair)
    return first == second and not shapes.optional.isdisjoint(pair)


def _raised(shapes, symbols) -> Shapes:
    """Shapes in which symbols begin at 2."""
    ranges = {
        symbol: Range(max(bounds.lower, 2), bounds.upper) if symbol in symbols else bounds
        for symbol, bounds in shapes.ranges.items()
    }
    return Shapes(shapes.extents, ranges, shapes.sizes, shapes.optional, shapes.raised - {*symbols})


def _narrowed(shapes, comparison) -> Shapes | None:
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


def _joined(shapes, pair) -> Shapes:
    """Shapes in which two symbols are one."""
    gone = next(symbol for symbol in reversed(pair) if symbol in shapes.optional)
    (kept,) = {*pair} - {gone}
    first, second = (shapes.ranges[symbol] for symbol in (kept, gone))
    bounds = Range(max(first.lower, second.lower), min(first.upper, second.upper))
    return _replaced(shapes, {gone: lambda e: e._replace(symbol=kept)}, {kept: bounds})


def _fixed(shapes, symbols) -> Shapes:
    """Shapes in which symbols are the numbers of the example."""
    return _replaced(shapes, {s: lambda e: e.of(shapes.sizes[e.symbol]) for s in symbols}, {})


def _multiples(shapes, symbol, factor) -> Shapes:
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
        is_one = _varies(extent) and extent.symbol in by_symbol
        return by_symbol[extent.symbol](extent) if is_one else extent

    extents = {name: tuple(map(replaced, known)) for name, known in shapes.extents.items()}
    ranges = {s: bounds.get(s, known) for s, known in shapes.ranges.items() if s not in by_symbol}
    sizes = {symbol: shapes.sizes[symbol] for symbol in ranges}
    return Shapes(extents, ranges, sizes, shapes.optional & ranges.keys(), shapes.raised)


# ---- errors


def _refusal(shapes, error) -> Exception:
    """The error of an export: the same one, unless the code depends on sizes that vary."""
    message = str(error)
    if "random numbers drawn" in message:
        return UserError(
            "random numbers drawn of a generator of your own in an export would be the same in "
            "each call: leave out generator=, or pass the numbers as an argument. At "
            f"{line_of(error)}"
        )
    named = _named(shapes, message)
    # of numbers that are computed with sizes only: a tensor raises RuntimeError
    kinds = Decided | jax.errors.InconclusiveDimensionOperation | jax.errors.ConcretizationTypeError
    is_size = isinstance(error, kinds) and bool(shapes.ranges)
    starts = "Symbolic dimension", "associative scan over axis of non-constant size"
    if not (is_size or "_DimExpr" in message or message.startswith(starts)):
        return error
    comparison = inconclusive(error)
    what = message if isinstance(error, Decided) else None
    if comparison is not None and comparison[2] is not None:
        what = " ".join(comparison)
    asks = f"the code asks whether {what}" if what else "the code needs an int there"
    line = line_of(error)
    hint = " (len() gives an int: x.shape[0] is a size that may vary)" if "len(" in line else ""
    names = ", ".join(named or shapes.ranges)
    advice = _advice(shapes, named or [*shapes.ranges], what)
    return UserError(
        f"Constraints violated ({names})! Not all values of {names} in the specified range give "
        f"one program: {asks}{hint}, at {line}.\nSuggested fixes:\n{advice}"
    )


def _advice(shapes, symbols, what) -> str:
    lines = [f"  {s} = {shapes.sizes[s]}  # leave it out of dynamic_shapes" for s in symbols]
    match = re.fullmatch(r"(\w+) (<=|>=|<|>|==) (\d+)", what or "")
    if match and match[1] in shapes.ranges:
        lines[:0] = [f"  {match[1]} = Dim({match[1]!r}, {_end(match, shapes.sizes[match[1]])})"]
    return "\n".join([*lines, "  or choose by torch.cond, torch.where or a mask"])


def _end(match, size) -> str:
    """The bound of a range on whose one side a test goes one way."""
    number, sign = int(match[3]), match[2]
    if sign == "==":
        return f"min={number + 1}" if size > number else f"max={number - 1}"
    above = number + (sign in ("<=", ">"))
    return f"min={above}" if size >= above else f"max={above - 1}"


def line_of(error) -> str:
    """The line of the user's code at which an error arose."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    users = [pair for pair in frames if not is_internal(pair[0])]
    if not users:
        return LIBRARY
    frame, line = users[-1]
    code = linecache.getline(frame.f_code.co_filename, line).strip()
    return f"{frame.f_code.co_filename}:{line}" + (f", `{code}`" if code else "")
