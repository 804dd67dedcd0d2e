"""Tables: `load` reads a file's structure at once and its entries when they are asked for."""

import linecache
import os
import re

from . import reader
from .checks import check
from .mistakes import Mistake, TableError, bare
from .rule import RuleBuilder

BASE = re.compile(r"\s*([A-Za-z_]\w*)\s*[.(]", re.ASCII)
BLANKS = re.compile(r"\s+")


def load(path, functions=frozenset(), operators=frozenset()):
    """The Table in the file `path`.

    `functions`: the names of the helpers and value functions that its formulas may call;
    `operators`: those of the operators that are known already. Raises a TableError with all
    mistakes of the file if its structure is wrong; a mistake inside an entry is raised when the
    entry is asked for, or by `check()`. An unreadable file raises an OSError.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read(reader.MAX_BYTES + 1)
    return _table(data, path, functions, operators)


def loads(text, path="<table>", functions=frozenset(), operators=frozenset()):
    """The Table in `text`, str or bytes; `path` names it in messages and tracebacks."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    return _table(data, path, functions, operators)


def _table(data, path, functions, operators):
    source = reader.decode(data, path)
    table = Table(source, reader.read(source), functions, operators)
    lines = source.text.splitlines(keepends=True)
    linecache.cache[path] = (len(source.text), None, lines, path)  # for tracebacks
    if table.mistakes:
        table.check()
    return table


class Table:
    """The rules of a table, by the base names of their operators.

    `names` are those names in the order of the file; `path` is where it came from.
    """

    def __init__(self, source, entries, functions, operators):
        self.path, self.mistakes = source.path, source.mistakes
        self.entries, self.found = _by_name(source, entries), {}
        self.names = tuple(self.entries)
        self.callable = frozenset(functions) | frozenset(operators) | frozenset(self.names)
        self.functions = frozenset(functions)

    def __len__(self):
        return sum(map(len, self.entries.values()))

    def __contains__(self, name):
        return name in self.entries

    def rules(self, name):
        """The Rule of each overload of the operator `name`; a TableError if one has a mistake."""
        found = self.found.get(name)
        if found is None:
            rules, mistakes = self._read(name)
            if mistakes:
                raise TableError(sorted(mistakes))
            found = self.found.setdefault(name, rules)
        return found

    def check(self):
        """Reads every entry; a TableError has all mistakes of the table."""
        mistakes = list(self.mistakes)
        for name in self.names:
            rules, more = ((), ()) if name in self.found else self._read(name)
            mistakes += more
            if rules and not more:
                self.found[name] = rules
        if mistakes:
            raise TableError(sorted(set(mistakes)))

    def _read(self, name):
        """The rules of an operator, and all mistakes in its entries."""
        mistakes = []

        def report(place, entry, cause, cure):
            mistakes.append(Mistake(self.path, *place, bare(entry), cause, cure))

        rules = []
        for entry in self.entries[name]:
            builder = RuleBuilder(entry, self.path, self.functions, self.callable, report)
            rule = builder.build()
            if rule:
                check(rule, builder.mistake)
                rules.append(rule)
        _check_signatures(rules, report)
        return tuple(rules), mistakes


def _by_name(source, entries):
    """The entries of each operator, by base name; duplicates and nameless ones become mistakes."""
    found, places = {}, {}
    for entry in entries:
        text = entry.name.text
        title, base = text.partition("(")[0].strip(), BASE.match(text)
        key = title if "->" in text else BLANKS.sub("", text)
        if base is None:
            cause = f"its name {reader.shown(text)} is no schema"
            source.mistake(entry.name.place(), title or "?", cause, "name(Type argument) -> Type")
        elif key in places:
            cure = "remove one of the two, or give it another overload name"
            cause = f"a second entry for it; the first is in line {places[key]}"
            source.mistake(entry.name.place(), title, cause, cure)
        else:
            places[key] = entry.name.line
            found.setdefault(base[1], []).append(entry)
    return found


def _check_signatures(rules, report):
    """Overloads must differ in their arguments, or no call could tell them apart."""
    lines = {}
    for rule in rules:
        first = lines.setdefault(rule.schema.signature, rule.line)
        if first != rule.line:
            cause = f"its arguments are those of the entry in line {first}"
            place = rule.places["name"]
            report(place, rule.schema.full_name, cause, "remove one of the two")
