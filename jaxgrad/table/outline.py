"""Finds the entries of a table by its lines alone, which takes a fiftieth of the time of YAML.

In a table in the usual form, names, aliases, tags and protocols stand on lines of their own. The
outline reads only these lines, and the rest of an entry is read as YAML at its first use.
"""

import re

from ..cached import cached_property
from ..late import LateModule
from .mistakes import TableError
from .source import Scalar, Source

reader = LateModule("jaxgrad.table.reader")

OPENING = "- name: "
KEYS = "alias", "tags", "protocol"
PLAIN = bytes([ord("\n"), *range(ord(" "), ord("~") + 1)])
# a line that is none of: empty, a comment, a name, a key, more of the value above
ODD = re.compile(r"\n(?!\n|#|- name: |  [A-Za-z_]|   |\Z)")
# plain text that ends with its line
NAME = re.compile(r"([A-Za-z_][\w.]*\([^#:\n]*[^#:\s])(?=\n(?!   )|\Z)")
# the second group is empty where the value is not plain text that ends with its line
LINE = re.compile(rf"\n  ({'|'.join(KEYS)})(?:: (\w+(?:, ?\w+)*)(?=\n(?!   )|\Z))?")


class LateEntry:
    """An entry whose name and `values`, those under KEYS, are known from its lines; `read` reads it
    as YAML.
    """

    def __init__(self, path, text, name, values):
        self.path, self.text, self.name, self.values = path, text, name, values

    def value(self, key):
        """The value under one of KEYS, or None."""
        return self.values.get(key)

    def read(self):
        """The Entry. Raises TableError if it has mistakes, or is not what its lines show."""
        return self._entry

    @cached_property
    def _entry(self):
        # empty lines first, so that the places in it are those in the file
        source = Source("\n" * (self.name.line - 1) + self.text, self.path)
        entries = reader.read(source)
        whole = [(entry.name, *map(entry.value, KEYS)) for entry in entries]
        if whole != [(self.name, *map(self.value, KEYS))]:
            title = self.name.text.partition("(")[0]
            cause = "its name and alias are not what their lines show"
            source.mistake(self.name.place(), title, cause, reader.FORM)
        if source.mistakes:
            raise TableError(source.mistakes)
        return entries[0]


def outline(source):
    """The LateEntries of a table; None if its lines do not show for sure what YAML would read."""
    text = f"\n{source.text}"
    head, *bodies = text.split(f"\n{OPENING}")
    if not bodies or "\n " in head or ODD.search(text) or not is_plain(text):
        return None
    entries, line = [], head.count("\n") + 1
    for body in bodies:
        name, lines = NAME.match(body), [*LINE.finditer(body)]
        values = {match[1]: _value(match, line) for match in lines if match[2]}
        if name is None or len(values) < len(lines):
            return None
        name = Scalar(name[1], line, len(OPENING) + 1, True, True)
        entries.append(LateEntry(source.path, f"{OPENING}{body}\n", name, values))
        line += body.count("\n") + 1
    return entries


def _value(match, line):
    """The value in a match of LINE. line: that of the name of the entry."""
    below = match.string.count("\n", 0, match.start(2))
    column = match.start(2) - match.start()
    return Scalar(match[2], line + below, column, True, True)


def is_plain(text):
    """Whether it has only letters, digits and signs of ASCII, blanks and line ends."""
    # a twentieth of the time of a regular expression
    return text.isascii() and not text.encode().translate(None, PLAIN)
