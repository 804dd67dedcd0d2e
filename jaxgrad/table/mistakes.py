"""What can be wrong with a table, and how it is said: path:line:column: entry: cause; cure."""

import difflib
from functools import lru_cache
from typing import NamedTuple

ECHO = 60  # never more characters of the input than this in one place of a message


class Problem(NamedTuple):
    """A mistake in one text, before it is known where that text stands."""

    offset: int
    cause: str
    cure: str


class Mistake(NamedTuple):
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
    """All mistakes of a table, in the order of its lines."""

    def __init__(self, mistakes):
        super().__init__(mistakes)
        self.mistakes = tuple(mistakes)

    def __str__(self):
        return "\n".join(map(str, self.mistakes))


def printable(text):
    """`text` with everything escaped that could move a cursor or reverse a line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shown(text):
    """`text` as a message may quote it: in quotes, ASCII only, cut when it is long."""
    quoted = ascii(text[: ECHO + 1])
    return quoted if len(quoted) <= ECHO + 2 else f"{quoted[: ECHO - 3]}...{quoted[0]}"


def bare(text):
    """`shown` without its quotes: for the names of entries."""
    return shown(text)[1:-1]


@lru_cache(maxsize=256)
def nearest(name, known):
    """The name of the frozenset `known` that is most like `name`, or None."""
    found = difflib.get_close_matches(name[:ECHO], sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def mean(name, known, otherwise):
    """The cure for a misspelling."""
    found = nearest(name, frozenset(known))
    return f"did you mean {found!r}?" if found else otherwise


def listed(names):
    """`names` as a list in words, cut when it is long."""
    names = list(names)
    text = ", ".join(names[:12])
    return f"{text}, ..." if len(names) > 12 else text
