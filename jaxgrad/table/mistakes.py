"""Mistakes of a table and their messages, `path:line:column: entry: cause; cure`."""

import difflib
from functools import lru_cache
from typing import NamedTuple

ECHO = 60  # a message quotes at most this many characters of the input at once


class Problem(NamedTuple):
    """A mistake in one text; `offset` counts from the start of the text, not of the file."""

    offset: int
    cause: str
    cure: str


class Mistake(NamedTuple):
    """A mistake in a table; line and column count from 1."""

    path: str
    line: int
    column: int
    entry: str
    cause: str
    cure: str

    def __str__(self):
        place = f"{printable(self.path)}:{self.line}:{self.column}"
        return f"{place}: {self.entry}: {self.cause}; {self.cure}"


class TableError(ValueError):
    """Holds all mistakes of a table in the order of their lines."""

    def __init__(self, mistakes):
        super().__init__(mistakes)
        self.mistakes = tuple(mistakes)

    def __str__(self):
        return "\n".join(map(str, self.mistakes))


def printable(text):
    """`text` with escapes for characters that move the cursor or reverse the line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(text):
    """`text` quoted for a message: ASCII only, shortened to ECHO characters."""
    quoted = ascii(text[: ECHO + 1])
    return quoted if len(quoted) <= ECHO + 2 else f"{quoted[: ECHO - 3]}...{quoted[0]}"


def bare(text):
    """`shown` without the quotes."""
    return shown(text)[1:-1]


@lru_cache(maxsize=256)
def nearest(name, known):
    """The name in the frozenset `known` that is most similar to `name`, or None."""
    name, most, match = name[:ECHO], 0.6, None
    letters = set(name)
    for other in sorted(known):
        # two upper bounds first: a table may hold thousands of mistakes, and a ratio takes long
        enough = most * (len(name) + len(other)) / 2
        if min(len(name), len(other)) < enough or sum(map(letters.__contains__, other)) < enough:
            continue
        ratio = similarity(name, other)
        if ratio >= most:
            most, match = ratio, other
    return match


def similarity(name, other):
    """The ratio of difflib, which for a prefix follows from the lengths."""
    if name.startswith(other):
        return 2 * len(other) / (len(name) + len(other))
    return difflib.SequenceMatcher(a=other, b=name).ratio()


def mean(name, known, otherwise):
    """The cure for a misspelled name: a similar known name, or `otherwise`."""
    match = nearest(name, frozenset(known))
    return f"did you mean {match!r}?" if match else otherwise


def listed(names):
    """`names` separated by commas, at most 12 of them."""
    names = list(names)
    text = ", ".join(names[:12])
    return f"{text}, ..." if len(names) > 12 else text
