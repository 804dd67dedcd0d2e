"""The error of an export whose code depends on sizes that are to vary: it names the sizes, the line
of the code, and what to do.
"""

from __future__ import annotations

import itertools
import linecache
import math
import re
import traceback

import jax

from ..core.jax_internals import inconclusive
from ..state.ownership import is_internal
from ..tape.symbolic_number import GuardOnDataDependentSymNode
from ._errors import Decided, UserError
from ._narrowing import fixed, joined, multiples, named, varies, with_remainders

# the place of an error in layers, where no line of the user's code is between
LAYER = "forward() of the module that is exported"


def refusal(shapes, error, succeeds) -> Exception:
    """The error of an export: the same one, unless the code depends on sizes that vary.

    succeeds: whether a trace with other shapes comes to its end.
    """
    message = str(error)
    if "random numbers drawn" in message:
        return UserError(
            "random numbers drawn of a generator of your own in an export would be the same in "
            "each call: leave out generator=, or pass the numbers as an argument. At "
            f"{line_of(error)}"
        )
    if reads_numbers(error):
        needed = message.partition("]")[0]
        return GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression: {needed}], and a program is one for "
            "all numbers. Choose by torch.cond or torch.where; where a size depends on numbers, as "
            "of nonzero() and x[mask], use a mask or a fixed number of elements, as by topk(): XLA "
            f"has no such sizes. At {error.place}"
        )
    if not shapes.ranges:
        return error
    if _is_of_sizes(error):
        return _of_test(shapes, error)
    return _of_shapes(shapes, error, succeeds) or error


def reads_numbers(error) -> bool:
    """Whether code needs the numbers of a tensor that the program computes."""
    is_plain = type(error) is RuntimeError and hasattr(error, "place")
    return is_plain and "needs the numbers of a tensor" in str(error)


# of numbers that are computed with sizes only: a tensor raises RuntimeError
_OF_NUMBERS = (
    Decided,
    jax.errors.InconclusiveDimensionOperation,
    jax.errors.ConcretizationTypeError,
)
_STARTS = "Symbolic dimension", "associative scan over axis of non-constant size"


def _is_of_sizes(error) -> bool:
    if isinstance(error, GuardOnDataDependentSymNode):
        return error.of_sizes
    message = str(error)
    is_text = "_DimExpr" in message or message.startswith(_STARTS)
    return is_text or isinstance(error, _OF_NUMBERS)


def _violated(shapes, symbols, what, fixes) -> UserError:
    names = ", ".join([_label(shapes, symbol) for symbol in symbols])
    lines = "".join([f"\n  {fix}" for fix in fixes])
    return UserError(f"Constraints violated ({names})! {what}.\nSuggested fixes:{lines}")


def _label(shapes, symbol) -> str:
    """A symbol that has a name; otherwise where it is."""
    return _place(shapes, symbol) if re.fullmatch(r"s\d+", symbol) else symbol


def _place(shapes, symbol) -> str:
    return next(
        f"{name}.size()[{number}]"
        for name, extents in shapes.extents.items()
        for number, extent in enumerate(extents)
        if varies(extent) and extent.symbol == symbol
    )


def _constant(shapes, symbol) -> str:
    return f"{_label(shapes, symbol)} = {shapes.sizes[symbol]}  # leave it out of dynamic_shapes"


def _specialized(shapes, symbols) -> str:
    """What PyTorch says of sizes that code takes for numbers."""
    return " ".join(
        [
            f"You marked {_label(shapes, symbol)} as dynamic but your code specialized it to be a "
            f"constant ({shapes.sizes[symbol]})."
            for symbol in symbols
        ]
    )


# ---- code that asks for a number, or compares


def _of_test(shapes, error) -> UserError:
    """The error for code that compares sizes, or needs one as an int."""
    message = with_remainders(str(error))
    symbols = named(shapes, message) or [*shapes.ranges]
    comparison = inconclusive(error)
    what = message if isinstance(error, Decided) else None
    if comparison is not None and comparison[2] is not None:
        what = with_remainders(" ".join(comparison))
    asks = f"the code asks whether {what}" if what else "the code needs an int there"
    line = line_of(error)
    hint = " (len() gives an int: x.shape[0] is a size that may vary)" if "len(" in line else ""
    names = ", ".join([_label(shapes, symbol) for symbol in symbols])
    test = _test_of(what or "")
    is_one = test and test[1] == "==" and shapes.sizes.get(test[0]) == test[2]
    starts = f"Not all values of {names} in the specified range give one program"
    if is_one or not what:
        starts = f"{_specialized(shapes, symbols)} {starts}"
    bounds = [] if is_one or not test or test[0] not in shapes.ranges else [_bound(shapes, *test)]
    fixes = [
        *bounds,
        *_multiple(shapes, what or ""),
        *[_constant(shapes, symbol) for symbol in symbols],
        "or choose by torch.cond, torch.where or a mask",
    ]
    return _violated(shapes, symbols, f"{starts}: {asks}{hint}, at {line}", fixes)


def _test_of(text) -> tuple[str, str, int] | None:
    """A test of a symbol: `n - 1 < 2` is that whether n < 3."""
    match = re.fullmatch(r"(\w+)(?: ([+-]) (\d+))? (<=|>=|<|>|==) (\d+)", text)
    if match is None:
        return None
    symbol, side, offset, sign, number = match.groups()
    return symbol, sign, int(number) - int(f"{side or ''}{offset or 0}")


def _bound(shapes, symbol, sign, number) -> str:
    """The range on whose one side a test goes one way."""
    size = shapes.sizes[symbol]
    if sign == "==":
        end = f"min={number + 1}" if size > number else f"max={number - 1}"
    else:
        above = number + (sign in ("<=", ">"))
        end = f"min={above}" if size >= above else f"max={above - 1}"
    return f"{symbol} = Dim({symbol!r}, {end})"


def _remainders(shapes, message):
    """The symbols and the divisors of remainders in a message that are 0 for the example."""
    for factor, symbol, divisor in re.findall(r"\bmod\((?:(\d+)\*)?(\w+), (\d+)\)", message):
        number = int(divisor) // math.gcd(int(divisor), int(factor or 1))
        if shapes.sizes.get(symbol, 1) % number == 0:
            yield symbol, number


def _multiple(shapes, message) -> list[str]:
    return [
        f"_{symbol} = Dim('_{symbol}'); {symbol} = {number}*_{symbol}"
        for symbol, number in _remainders(shapes, message)
    ]


# ---- operators that do not fit


def _of_shapes(shapes, error, succeeds) -> UserError | None:
    """The error for operators that fit the example, and not all sizes; None if the reason is
    another one.
    """
    message = with_remainders(str(error))
    # shapes of matrices are written "4xn"
    within = r"(?:\b|(?<=x)){}(?:\b|(?=x))"
    symbols = [symbol for symbol in shapes.ranges if re.search(within.format(symbol), message)]
    because = f": {message}, at {line_of(error)}"
    for first, second in itertools.combinations(symbols, 2):
        is_same = shapes.sizes[first] == shapes.sizes[second]
        if is_same and succeeds(joined(shapes, first, second)):
            one, other = (
                f"{_label(shapes, symbol)} = {_place(shapes, symbol)}" for symbol in (second, first)
            )
            what = f"The values of {one} and {other} must always be equal{because}"
            fix = f"{_label(shapes, second)} = {_label(shapes, first)}"
            return _violated(shapes, [second], what, [fix])
    for symbol, number in _remainders(shapes, message):
        if succeeds(multiples(shapes, symbol, number)):
            what = f"Not all values of {symbol} in the specified range fit{because}"
            return _violated(shapes, [symbol], what, _multiple(shapes, message))
    for group in ([symbol] for symbol in symbols), [symbols]:
        for some in filter(None, group):
            if succeeds(fixed(shapes, some)):
                what = f"{_specialized(shapes, some).removesuffix('.')}{because}"
                return _violated(shapes, some, what, [_constant(shapes, s) for s in some])
    return None


def line_of(error) -> str:
    """The line of the user's code at which an error arose; `LAYER` if there is none."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    users = [pair for pair in frames if not is_internal(pair[0])]
    if not users:
        return LAYER
    frame, line = users[-1]
    code = linecache.getline(frame.f_code.co_filename, line).strip()
    return f"{frame.f_code.co_filename}:{line}" + (f", `{code}`" if code else "")
