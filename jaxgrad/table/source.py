"""The text of a table, and what a reader finds in it: entries of scalars and collections."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ..cached import cached_property
from .mistakes import Mistake, bare

MAX_BYTES = 2_000_000
NAME = re.compile(r"\s*-\s+(?:name|\"name\"|'name')\s*:\s*[\"']?([^(\"']*)")


class Scalar(NamedTuple):
    """A string of the file, with the line and column of its first character, from 1.

    `plain`: whether an offset into the text is an offset in the line of the file; folded lines and
    escapes are not plain.
    """

    text: str
    line: int
    column: int
    plain: bool
    one_line: bool

    def place(self, offset=0):
        return self.line, self.column + (offset if self.plain else 0)


@dataclass(frozen=True, slots=True)
class Collection:
    """A list; a map, with keys and values in turn in `items`; or `nothing`, a refused alias."""

    kind: str
    line: int
    column: int
    items: list = field(default_factory=list)

    def place(self, offset=0):
        return self.line, self.column


class Entry(NamedTuple):
    """An entry: its name, and the scalars and the values of its other keys, by key text."""

    name: Scalar
    keys: dict
    values: dict

    def value(self, key):
        """The value under a key, or None."""
        return self.values.get(key)

    def read(self):
        """The entry itself; the rest of a `LateEntry` is still to be read."""
        return self


class Source:
    """The text of a table, and the mistakes found in it so far.

    `entry`: the name of the only entry in it, if it is known.
    """

    def __init__(self, text, path, entry=None):
        self.text, self.path, self.entry, self.mistakes = text, path, entry, []

    @cached_property
    def lines(self):
        return self.text.split("\n")

    def mistake(self, place, entry, cause, cure):
        self.mistakes.append(Mistake(self.path, *place, bare(entry), cause, cure))

    def mistake_at(self, place, cause, cure):
        """Add a mistake in the entry at this line."""
        self.mistake(place, self.entry_at(place[0]), cause, cure)

    def entry_at(self, line):
        if self.entry is not None:
            return self.entry
        for text in reversed(self.lines[max(line - 200, 0) : line]):
            match = NAME.match(text)
            if match:
                return match[1].strip() or "?"
        return "file"


def decode(data, path):
    """Decode a table; the Source has no text if the bytes are too many or not UTF-8."""
    source = Source("", path)
    if len(data) > MAX_BYTES:
        cure = "split it"
        source.mistake((1, 1), "file", f"it is larger than {MAX_BYTES:,} bytes", cure)
        return source
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        source.mistake((line, 1), "file", "it is not UTF-8", "save it as UTF-8")
        return source
    return Source(text.replace("\r\n", "\n"), path)
