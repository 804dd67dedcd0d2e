"""Reads the file of help beside a table: what `help` says about each operator, by its name.

An entry is found by the line with its name, and read as YAML when it is asked for. A program that
asks for no help does not open the file.
"""

import re
from pathlib import Path

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
NAME = re.compile(r"(\w+):", re.ASCII)
NOTHING = Entry(None, {}, {})


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
            places = self._places.get(name)
            entry = self._read(name, *places[0]) if places else NOTHING
            self._entries.setdefault(name, entry)
        return self._entries[name]

    @cached_property
    def _places(self):
        """The numbers of the first lines and the texts of the entries of each name."""
        with open(self.path, "rb") as file:
            source = decode(file.read(MAX_BYTES + 1), self.path)
        if source.mistakes:
            raise TableError(source.mistakes)
        head, *parts = BEGINNING.split(source.text)
        places, line = {}, 1 + head.count("\n")
        for part in parts:
            first = part.partition("\n")[0].rstrip()
            match = NAME.fullmatch(first)
            places.setdefault(match[1] if match else first, []).append((line, part))
            line += part.count("\n")
        return places

    def _read(self, name, line, text):
        # empty lines first, so that the places in it are those in the file
        source = Source("\n" * (line - 1) + text, self.path, name)
        entry = reader.read_named(source, FORM)
        if source.mistakes:
            raise TableError(source.mistakes)
        return entry

    def check(self, table):
        """Raise TableError with the mistakes in the help of a table that has no others."""
        mistakes = [*self._wrong_names(table)]
        for name, entries in table.entries.items():
            mistakes += _inside(entries, table.path, Path(self.path).name)
            if name in self._places:
                mistakes += self._wrong_texts(name, table.rules(name))
            else:
                cure = f"describe it in {Path(self.path).name}: {FORM}"
                place = entries[0].name.place()
                mistakes.append(Mistake(table.path, *place, bare(name), "it has no help", cure))
        if mistakes:
            raise TableError(sorted(mistakes))

    def _wrong_names(self, table):
        for name, ((first, _), *others) in self._places.items():
            if name not in table.entries:
                cure = mean(name, table.names, FORM)
                cause = f"{shown(name)} is no operator of {Path(table.path).name}"
                yield Mistake(self.path, first, 1, bare(name), cause, cure)
            for line, _ in others:
                cause = f"a second entry for it; the first is in line {first}"
                yield Mistake(self.path, line, 1, bare(name), cause, "remove one of the two")

    def _wrong_texts(self, name, rules):
        mistakes = []

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
