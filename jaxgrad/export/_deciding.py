"""Traces with sizes that vary, and what becomes of sizes on which the trace depends.

Where code needs to know a size, one that may be a number becomes one; two that must be equal become
one; and a size that may be 1 is taken to be 2 or more. Any other is an error that names the line.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import sys
from typing import Any, NamedTuple

import jax

from ..core.jax_internals import inconclusive, watched_tests
from ..late import LateModule
from ..state.ownership import is_internal, root
from ._errors import Decided, UserError
from ._extents import UNBOUNDED, Range
from ._narrowing import (
    fixed,
    joined,
    multiples,
    named,
    narrowed,
    raised,
    renamed,
    varies,
    with_remainders,
)
from ._violations import reads_numbers, refusal
from .dynamic_shapes import Shapes

jax_export = LateModule("jax.export")

MOST_TRACES = 24


def shaped(shapes: Shapes, with_products=False) -> dict[str, tuple]:
    """The extents of each tensor, with JAX's symbols in place of sizes that vary.

    with_products: tell JAX the least values of products of two symbols.
    """
    texts = {str(e) for extents in shapes.extents.values() for e in extents if varies(e)}
    if not texts:
        return shapes.extents
    constraints = _constraints(shapes.ranges)
    constraints += _constraints_of_products(shapes.ranges) if with_products else []
    scope = jax_export.SymbolicScope(constraints)
    # a copy of a symbol is of the same scope, as jax2onnx takes it; JAX's copy of a scope fails
    scope.__deepcopy__ = lambda memo: scope
    ordered = sorted(texts)
    symbols = jax_export.symbolic_shape(", ".join(ordered), scope=scope)
    by_text = dict(zip(ordered, symbols, strict=True))
    return {
        name: tuple([by_text[str(e)] if varies(e) else e for e in extents])
        for name, extents in shapes.extents.items()
    }


def _constraints(ranges: dict[str, Range]) -> list[str]:
    return [
        *[f"{symbol} >= {low}" for symbol, (low, _) in ranges.items() if low > 1],
        *[f"{symbol} <= {high}" for symbol, (_, high) in ranges.items() if high != UNBOUNDED],
    ]


def _constraints_of_products(ranges: dict[str, Range]) -> list[str]:
    """What JAX does not see by itself: `b*t - b` is at least 0 where t is at least 1."""
    return [
        f"{first}*{second} >= {ranges[one].lower}*{other}"
        for first, second in itertools.combinations_with_replacement(ranges, 2)
        for one, other in {(first, second), (second, first)}
    ]


def _is_of_product(error) -> bool:
    """Whether JAX could not decide a comparison with a product of symbols."""
    comparison = inconclusive(error)
    texts = [text for text in comparison or () if text is not None]
    return any(re.search(r"[A-Za-z_]\w*(\*|\^)", text) for text in texts)


def decided(shapes: Shapes, trace) -> tuple:
    """The result of `trace(extents)`, and the shapes for which it succeeded.

    Raises UserError where a size that is to vary decides what the code does.
    """
    with_products = False
    attempt = _attempt(trace, shapes, with_products)
    for _ in range(MOST_TRACES):
        shapes, error = attempt.shapes, attempt.error
        if error is None:
            return attempt.result, shapes
        if isinstance(error, UserError):
            raise error
        if not with_products and _is_of_product(error):
            with_products = True
            attempt = _attempt(trace, shapes, with_products)
            continue
        attempts = functools.partial(_attempt, trace, with_products=with_products)
        further = _further(attempt, attempts)
        if further is None:
            raise refusal(shapes, error, functools.partial(_succeeds, trace)) from error
        attempt = further if isinstance(further, Attempt) else attempts(further)
    raise UserError("the sizes that vary are not settled: give them names by Dim, or fix some")


class Attempt(NamedTuple):
    """A trace for some shapes: its result, or its error."""

    shapes: Shapes
    result: Any
    error: Exception | None


def _attempt(trace, shapes: Shapes, with_products: bool) -> Attempt:
    try:
        with _noting(shapes):
            return Attempt(shapes, trace(shaped(shapes, with_products)), None)
    except Exception as error:
        return Attempt(shapes, None, error)


def _succeeds(trace, shapes: Shapes) -> bool:
    """Whether a trace with other shapes comes to its end."""
    return _attempt(trace, shapes, with_products=True).error is None


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


def _further(attempt: Attempt, attempts) -> Shapes | Attempt | None:
    """Shapes in which the sizes that an error names are decided, or an attempt with such; None if
    none of them may be. attempts: makes the attempt for some shapes.
    """
    shapes, _, error = attempt
    message = with_remainders(str(error))
    symbols = named(shapes, message)
    is_open = isinstance(error, Decided) or inconclusive(error) is not None
    low = [s for s in symbols if s in shapes.raised and shapes.sizes[s] >= 2]
    if is_open and low:
        return raised(shapes, low)
    for comparison in (inconclusive(error), *_bounds(message)):
        narrower = narrowed(shapes, comparison)
        if narrower is not None:
            return narrower
    for symbol, factor in re.findall(r"\b(?:mod|floordiv)\((\w+), (\d+)\)", message):
        if symbol in shapes.optional and shapes.sizes[symbol] % int(factor) == 0:
            return multiples(shapes, symbol, int(factor))
    optional = [s for s in symbols if s in shapes.optional]
    pairs = [pair for pair in itertools.combinations(symbols, 2) if _may_be_one(shapes, pair)]
    if optional and len(symbols) > 1 and not is_open:
        resolving = _resolving(attempt, optional, pairs, attempts)
        if resolving is not None:
            return resolving
    if pairs:
        return joined(shapes, *_ends(shapes, pairs[0]))
    if not symbols and _is_shape_error(error):
        optional = [s for s in shapes.ranges if s in shapes.optional][-1:]
    if optional or symbols or reads_numbers(error):
        return fixed(shapes, optional[-1:]) if optional else None
    return _without_differences(shapes)


def _resolving(attempt, optional, pairs, attempts) -> Attempt | None:
    """An attempt with one symbol less that does not raise the same error; None if there is none.

    A size of the example may equal another one by chance, as the rows of a batch the channels.
    """
    shapes, _, error = attempt
    fewer = [(symbol, str(shapes.sizes[symbol]), fixed(shapes, [symbol])) for symbol in optional]
    fewer.reverse()
    for kept, gone in [_ends(shapes, pair) for pair in pairs]:
        fewer.append((gone, kept, joined(shapes, kept, gone)))
    for symbol, other, candidate in fewer:
        further = attempts(candidate)
        is_same = str(further.error) == renamed(shapes, str(error), symbol, other)
        if not is_same and not isinstance(further.error, UserError):
            return further
    return None


def _ends(shapes, pair) -> tuple[str, str]:
    """Of two symbols the one that stays, and the one that becomes it."""
    gone = next(symbol for symbol in reversed(pair) if symbol in shapes.optional)
    (kept,) = {*pair} - {gone}
    return kept, gone


def _without_differences(shapes: Shapes) -> Shapes | None:
    """Shapes for code that raises an error of its own, such as of sizes that must be equal: sizes
    that are equal in the example become one, or all that may be numbers do.
    """
    known = shapes
    for pair in itertools.combinations(shapes.ranges, 2):
        if {*pair} <= shapes.optional & known.ranges.keys() and _may_be_one(known, pair):
            known = joined(known, *pair)
    if known is not shapes:
        return known
    return fixed(shapes, [*shapes.optional]) if shapes.optional else None


def _bounds(message) -> list[tuple]:
    """Comparisons that tell what the extrema in a message are."""
    extrema = re.findall(r"\b(min|max)\((\w+), (\d+)\)", message)
    return [(symbol, {"min": "<=", "max": ">="}[name], number) for name, symbol, number in extrema]


def _is_shape_error(error) -> bool:
    return isinstance(error, TypeError | jax.errors.JAXTypeError) and "_DimExpr" in str(error)


def _may_be_one(shapes, pair) -> bool:
    first, second = (shapes.sizes[symbol] for symbol in pair)
    return first == second and not shapes.optional.isdisjoint(pair)
