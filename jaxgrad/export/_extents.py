"""Extents of the inputs of a program: ints, or sizes that vary."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

UNBOUNDED = math.inf


class Range(NamedTuple):
    """The values of a size that varies, both ends included; it is shown as PyTorch shows it."""

    lower: int
    upper: float

    def has(self, size: int) -> bool:
        """Whether a size is in the range."""
        return self.lower <= size <= self.upper

    def __repr__(self):
        return f"VR[{self.lower}, {'int_oo' if self.upper == UNBOUNDED else self.upper}]"


class Extent(NamedTuple):
    """A size that varies: a factor times a symbol, and a summand."""

    symbol: str
    scale: int = 1
    offset: int = 0

    def __str__(self):
        product = self.symbol if self.scale == 1 else f"{self.scale}*{self.symbol}"
        sign = "+" if self.offset > 0 else "-"
        return f"{product} {sign} {abs(self.offset)}" if self.offset else product

    def of(self, size: int) -> int:
        """The extent for a size of the symbol."""
        return self.scale * size + self.offset

    def symbol_size(self, extent: int) -> int | None:
        """The size of the symbol for an extent; None if there is none."""
        size, rest = divmod(extent - self.offset, self.scale)
        return None if rest else size


_TEXT = re.compile(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


def extent_of_text(text: str | int) -> Extent | int:
    """The extent that a text names, as `str` gives it."""
    if isinstance(text, int):
        return text
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"no extent: {text!r}")
    scale, symbol, sign, offset = match.groups()
    return Extent(symbol, int(scale or 1), int(f"{sign or ''}{offset or 0}"))
