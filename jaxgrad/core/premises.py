"""Premises on symbolic extents, under which a template is traced.

JAX raises if code compares symbols by size and the result is not known for all extents. A test of
equality is false unless it holds for all extents. So a template is traced for the extents of a
call. If these extents decide a comparison differently, or JAX cannot decide it, the result becomes
a constraint on new symbols, and the program is traced again. The constraints are the conditions of
the template.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

from ..late import LateModule
from .jax_internals import inconclusive

extents_module = LateModule("jaxgrad.core.host.extents")
template = LateModule("jaxgrad.core.host.template")

_NAME = re.compile(r"\bd\d+\b")


class Premises:
    """Symbols, and the assumptions about them.

    constraints: the comparisons that JAX knows, each as two texts, the last one first, since it
    speaks of the symbols that the others leave; unequal: the pairs of extents that traces took to
    be unequal. JAX keeps parts of traces that have the same symbols, so the pairs are those of all
    programs that are traced with them.
    """

    def __init__(self, count: int, constraints=()):
        self.count, self.constraints = count, [*constraints]
        self.unequal: list[tuple] = []
        self.programs: dict = {}  # that were traced with the symbols, by their patterns
        self.symbols = template.symbols(count, [" ".join(parts) for parts in _ordered(constraints)])

    def conditions(self) -> list:
        """The conditions of a template that was traced with the symbols."""
        tree = extents_module.tree_of_text
        known = [[sign, tree(first), tree(second)] for first, sign, second in self.constraints]
        return known + conditions_of(self.unequal)

    def hold(self, extents) -> bool:
        """Whether all that was taken to hold does so of extents."""
        padded = _padded(extents)
        return all(extents_module.holds(condition, padded) for condition in self.conditions())

    def further(self, extents, error, steady) -> Premises | None:
        """These premises with the decisions of some extents that differ from the trace, which may
        have raised an error; None if there are none. Raises ValueError if JAX accepts no constraint
        for a decision.

        steady: the places of extents that have been the same in all calls. If a trace needs a
        number, these become numbers first.
        """
        decided = self.equal(extents) or _decided(error, extents)
        if decided and decided[0][0].startswith("mod") and not _REMAINDER.fullmatch(decided[0][0]):
            return None  # see `equation`
        if not decided and error is not None:
            decided = self.numbers(str(error), extents, steady)
        return Premises(self.count, [*decided, *self.constraints]) if decided else None

    def numbers(self, message, extents, steady) -> list[tuple]:
        """The constraints that symbols are numbers: those that the message of an error names, or
        otherwise those that have been the same in all calls.
        """
        free = {symbol for extent in self.symbols for symbol in _NAME.findall(str(extent))}
        named = free.intersection(_NAME.findall(message))
        usual = free.intersection([f"d{place}" for place in steady])
        chosen = (named & usual) or named or usual
        return [(name, "==", str(extents[int(name[1:])])) for name in sorted(chosen)]

    def equal(self, extents) -> list[tuple]:
        """The constraint of the first pair that was taken to be unequal, and is not so of these
        extents.
        """
        padded, tree = _padded(extents), extents_module.tree_of
        for first, second in self.unequal:
            if extents_module.value(["-", tree(first), tree(second)], padded) == 0:
                divided = _remainders(f"{first} {second}", padded)
                return divided[:1] or [self.equation(first, second, extents)]
        return []

    def equation(self, first, second, extents) -> tuple[str, str, str]:
        """That two extents are equal: with one symbol alone on a side, the last one that can be,
        which most likely follows from the others; or that a remainder is 0; or of products, that a
        symbol of one is a multiple of one of the other. Raises ValueError for what is none of
        these: JAX puts the one side in the place of the other, and would not come to an end where
        what it puts in has the other again.
        """
        one, other = _without_common(str(first), str(second))
        for alone, rest in ((one, other), (other, one)):
            if _NAME.fullmatch(alone) and alone not in _NAME.findall(rest):
                return alone, "==", rest
        difference = first - second
        for name in sorted(_NAME.findall(str(difference)), key=lambda name: -int(name[1:])):
            symbol = self.symbols[int(name[1:])]
            for rest in (symbol - difference, symbol + difference):
                if name not in _NAME.findall(str(rest)):
                    return name, "==", str(rest)
        if _REMAINDER.fullmatch(one) and other == "0":
            return one, "==", other
        if _PRODUCT.fullmatch(one) and _PRODUCT.fullmatch(other):
            pairs = [*itertools.product(_NAME.findall(one), _NAME.findall(other))]
            for large, small in [*pairs, *[pair[::-1] for pair in pairs]]:
                times, rest = divmod(*[extents[int(name[1:])] for name in (large, small)])
                if times > 1 and not rest:
                    return large, "==", f"{times}*{small}"
        raise ValueError(f"no constraint: {one} == {other}")


_PRODUCT = re.compile(r"\w+(\*\w+)*")
# of what has no remainders itself, by a number
_REMAINDER = re.compile(r"mod\([^(),]+, (- )?\d+\)")


def _without_common(first, second) -> tuple[str, str]:
    """Two texts, without the symbols that are factors of both if they are products."""
    if not (_PRODUCT.fullmatch(first) and _PRODUCT.fullmatch(second)):
        return first, second
    one, other = (Counter(text.split("*")) for text in (first, second))
    common = Counter({name: n for name, n in (one & other).items() if name.startswith("d")})
    return tuple("*".join((factors - common).elements()) or "1" for factors in (one, other))


_QUOTIENT = re.compile(r"floordiv\(([^()]+), (\d+)\)")


def _remainders(text, extents) -> list[tuple[str, str, str]]:
    """The conditions that divisions in a text have no remainder, as for these extents."""
    remainders = [f"mod({number}, {divisor})" for number, divisor in _QUOTIENT.findall(text)]
    tree = extents_module.tree_of_text
    whole = [part for part in remainders if extents_module.value(tree(part), extents) == 0]
    return [(part, "==", "0") for part in whole]


def _ordered(constraints) -> list:
    """Constraints with those first that say what a symbol is."""
    return sorted(constraints, key=lambda parts: parts[1] != "==")


def _padded(extents) -> tuple:
    return (*extents, *(2,) * (extents_module.SYMBOLS - len(extents)))


def _decided(error, extents) -> list[tuple]:
    """The constraints by which extents decide what JAX could not."""
    comparison = inconclusive(error)
    if comparison is None:
        return []
    first, sign, second = comparison
    if second is None:
        return [(name, "==", str(extents[int(name[1:])])) for name in set(_NAME.findall(first))]
    if sign == "==":
        return [(first, sign, second)]
    if sign in ("<", "<="):  # as the opposite of >= or >
        first, second = second, first
        sign = {"<": ">", "<=": ">="}[sign]
    second = second if sign == ">=" else f"{second} + 1"
    numbers = [
        extents_module.value(extents_module.tree_of_text(text), _padded(extents))
        for text in (first, second)
    ]
    return [(first, ">=", second) if numbers[0] >= numbers[1] else (second, ">=", f"{first} + 1")]


def conditions_of(pairs) -> list:
    """The conditions that pairs of extents are unequal, which were taken to be so."""
    conditions = []
    for first, second in pairs:
        condition = ["!=", extents_module.tree_of(first), extents_module.tree_of(second)]
        # extents of other symbols have equal trees
        is_new = condition[1] != condition[2] and condition not in conditions
        if is_new and not _is_known(condition):
            conditions.append(condition)
    return conditions


def _is_known(condition) -> bool:
    """Whether extents always differ: different symbols stand for different extents of two or
    more.
    """
    _, first, second = condition
    are_symbols = type(first) is type(second) is str and first != second
    return are_symbols or (type(second) is int and _least(first) > second)


def _least(tree) -> float:
    """A number that an extent is never below."""
    if type(tree) is int:
        return tree
    if type(tree) is str:
        return 2
    operation, first, second = tree[0], *map(_least, tree[1:])
    if operation == "**" and first >= 0:
        return first**second
    if operation == "max":
        return max(first, second)
    if operation in ("+", "*") and min(first, second) >= 0:
        return first + second if operation == "+" else first * second
    return -math.inf


# 1, -1, 2, -2, and so on: a divisor is rarely greater
_STEPS = [sign * step for step in range(1, 17) for sign in (1, -1)]


def other_extents_of(template, extents):
    """Extents that a template serves, of which as many as can be differ from these, by little; None
    if it serves no others.

    The greatest comes first, so that its place is free for the next one, as a pattern stands for
    extents that differ.
    """
    other_extents = [*extents]
    for place in sorted(range(len(extents)), key=extents.__getitem__, reverse=True):
        for step in _STEPS:
            moved = _moved(template.conditions, other_extents, place, step)
            if len({*moved}) == len(moved) and min(moved) >= 2 and template.serves(moved):
                other_extents = moved
                break
    return tuple(other_extents) if other_extents != [*extents] else None


def _moved(conditions, extents, place, step) -> list:
    """Extents of which one is greater, with those that conditions say what they are."""
    moved = [*extents]
    moved[place] += step
    for sign, first, second in conditions:
        if sign == "==" and type(first) is str:
            moved[int(first[1:])] = extents_module.value(second, _padded(moved))
    return moved
