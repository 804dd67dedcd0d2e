"""Reads the file of help beside a table: what `help` says about each operator, by its name.

An entry is found by the line with its name, and read as YAML when it is asked for. A program that
asks for no help does not open the file.

An entry may describe a family of operators: `max_unpool{2|3}d`. The text for its second operator
has the second of the alternatives in all braces.
"""

import re
from pathlib import Path
from typing import NamedTuple

from ..cached import cached_property
from . import reader
from .descriptions import check_descriptions
from .mistakes import Mistake, TableError, bare, listed, mean, shown
from .operators import title_of
from .rule import HELP_KEYS
from .source import MAX_BYTES, Entry, Source, decode

# the names of a table's file and of the file with its help, which stand in one folder
BESIDE = {"derivatives.yaml": "help.yaml"}
FORM = "write `name:`, and under it `doc: text` and the like"

# an entry begins with a line that is neither indented nor a comment
BEGINNING = re.compile(r"^(?=[^\s#])", re.MULTILINE)
TITLE = re.compile(r"([\w{|}]+):", re.ASCII)
# in a text, `{a|b}`; an alternative may stand on a line of its own
ALTERNATIVES = re.compile(r"\{([^{}]*\|[^{}]*)\}")
BREAK = re.compile(r"\n *")
NOTHING = Entry(None, {}, {})


class Family(NamedTuple):
    """The operators of an entry, the number of its first line, and its text."""

    names: tuple[str, ...]
    line: int
    text: str

    def text_of(self, name):
        """The text for one of the operators."""
        return self.text if len(self.names) == 1 else chosen(self.text, self.names.index(name))

    def wrong_alternatives(self):
        """Line, column and text of braces that do not have one alternative for each operator."""
        for match in ALTERNATIVES.finditer(self.text) if len(self.names) > 1 else ():
            if match[1].count("|") + 1 != len(self.names):
                above = self.text[: match.start()]
                column = match.start() - above.rfind("\n")
                yield (self.line + above.count("\n"), column), match[0]


def chosen(text, position):
    """A text with the alternative at this position in all braces; none where there are too few."""

    def alternative(match):
        return BREAK.sub("", "".join(match[1].split("|")[position : position + 1]))

    return ALTERNATIVES.sub(alternative, text)


def family(line, text):
    """The Family of an entry that begins at a line."""
    first = text.partition("\n")[0].rstrip()
    match = TITLE.fullmatch(first)
    title = match[1] if match else first
    braces = ALTERNATIVES.search(title)
    count = 1 if braces is None else braces[1].count("|") + 1
    names = [title] if count == 1 else [chosen(title, position) for position in range(count)]
    return Family(tuple(names), line, text)


def beside(path):
    """The path of the file with the help of a table; None if the entries of the table hold it."""
    path = Path(path)
    file = path.with_name(BESIDE.get(path.name, path.name))
    return str(file) if file != path and file.exists() else None


class HelpFile:
    """The help in the file `path`, by the names of operators."""

    def __init__(self, path):
        self.path, self._entries = path, {}

    def entry(self, name):
        """The Entry of an operator, empty if there is none.

        Raises OSError for an unreadable file, and TableError for one that is not UTF-8 and for an
        entry that is not YAML.
        """
        if name not in self._entries:
            families = self._families.get(name)
            entry = self._read(name, families[0]) if families else NOTHING
            self._entries.setdefault(name, entry)
        return self._entries[name]

    @cached_property
    def _families(self):
        """The families in which each operator stands: one, but for mistakes."""
        with open(self.path, "rb") as file:
            source = decode(file.read(MAX_BYTES + 1), self.path)
        if source.mistakes:
            raise TableError(source.mistakes)
        head, *parts = BEGINNING.split(source.text)
        families, line = {}, 1 + head.count("\n")
        for part in parts:
            part_family = family(line, part)
            for name in part_family.names:
                families.setdefault(name, []).append(part_family)
            line += part.count("\n")
        return families

    def _read(self, name, family):
        # empty lines first, so that the places in it are those in the file
        source = Source("\n" * (family.line - 1) + family.text_of(name), self.path, name)
        entry = reader.read_named(source, FORM)
        if source.mistakes:
            raise TableError(source.mistakes)
        return entry

    def check(self, table):
        """Raise TableError with the mistakes in the help of a table that has no others."""
        mistakes = [*self._wrong_families(table)]
        for name, entries in table.entries.items():
            mistakes += _inside(entries, table.path, Path(self.path).name)
            if name in self._families:
                mistakes += self._wrong_texts(name, table)
            else:
                cure = f"describe it in {Path(self.path).name}: {FORM}"
                place = entries[0].name.place()
                mistakes.append(Mistake(table.path, *place, bare(name), "it has no help", cure))
        if mistakes:
            raise TableError(sorted(mistakes))

    def _wrong_families(self, table):
        for name, (first, *others) in self._families.items():
            if name not in table.entries:
                cure = mean(name, table.names, FORM)
                cause = f"{shown(name)} is no operator of {Path(table.path).name}"
                yield Mistake(self.path, first.line, 1, bare(name), cause, cure)
            for place, text in first.wrong_alternatives() if name == first.names[0] else ():
                cause = f"{shown(text)} has not {len(first.names)} alternatives"
                cure = f"write one for each of {listed(first.names)}"
                yield Mistake(self.path, *place, bare(name), cause, cure)
            for other in others:
                cause = f"a second entry for it; the first is in line {first.line}"
                yield Mistake(self.path, other.line, 1, bare(name), cause, "remove one of the two")

    def _wrong_texts(self, name, table):
        mistakes, names = [], self._families[name][0].names

        def report(place, entry, cause, cure):
            mistakes.append(Mistake(self.path, *place, bare(entry), cause, cure))

        try:
            entry = self.entry(name)
        except TableError as error:
            return error.mistakes
        for key, scalar in entry.keys.items():
            if key not in HELP_KEYS:
                cure = mean(key, HELP_KEYS, f"the keys are {listed(HELP_KEYS)}")
                report(scalar.place(), name, f"{shown(key)} is no key of help", cure)
        if "doc" not in entry.keys:
            report(entry.name.place(), name, "it has no `doc:`", "write what it computes")
        # an entry may describe arguments that only some of its operators have
        rules = [rule for other in names if other in table.entries for rule in table.rules(other)]
        arguments = [argument for rule in rules for argument in rule.schema.names]
        check_descriptions([entry], arguments, report)
        return mistakes


def _inside(entries, path, file):
    """The mistakes of entries of a table that hold help, which stands in a file of its own."""
    for entry in [entry.read() for entry in entries]:
        for key in HELP_KEYS:
            if key in entry.keys:
                place, cure = entry.keys[key].place(), f"write it in {file}"
                yield Mistake(path, *place, bare(title_of(entry)), f"`{key}:` is help", cure)
