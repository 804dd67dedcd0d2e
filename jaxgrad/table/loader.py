"""Tables: `load` reads a file's structure at once and its entries when they are asked for."""

import linecache
import os

from . import operators as by_operator
from . import reader
from .checks import check
from .mistakes import Mistake, TableError, bare
from .rule import RuleBuilder


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

    `names`: those names in the order of the file; `aliases`: the operator that each second name
    means; `operators`: the names of both kinds; `path`: where the table came from.
    """

    def __init__(self, source, entries, functions, operators):
        self.path, self.mistakes = source.path, source.mistakes
        self.entries, self.found = by_operator.entries_of(source, entries), {}
        self.aliases = by_operator.aliases(source, self.entries)
        self.names = tuple(self.entries)
        self.operators = frozenset((*self.names, *self.aliases))
        self.functions = frozenset(functions)
        self.callable = self.functions | frozenset(operators) | self.operators

    def __len__(self):
        return sum(map(len, self.entries.values()))

    def __contains__(self, name):
        return name in self.operators

    def doc(self, name):
        """The sentence that describes an operator, None where its entry has none.

        No entry is checked for it: `rules` and `check` report a `doc:` that is no sentence.
        """
        return self._text(name, "doc")

    def example(self, name):
        """A call of an operator and what it returns; None where its entry has no example."""
        text = self._text(name, "example")
        return None if text is None else tuple(text.rsplit(by_operator.ARROW, 1))

    def _text(self, name, key):
        first = self.entries[self.aliases.get(name, name)][0]
        return getattr(first.values.get(key), "text", None)

    def rules(self, name):
        """The Rule of each overload of the operator `name`; a TableError if one has a mistake."""
        name = self.aliases.get(name, name)
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
            number = sum(rule.is_recorded for rule in rules)
            builder = RuleBuilder(entry, number, self.path, self.functions, self.callable, report)
            rule = builder.build()
            if rule:
                check(rule, builder.mistake)
                rules.append(rule)
        by_operator.check_docs(self.entries[name], report)
        _check_signatures(rules, report)
        return tuple(rules), mistakes


def _check_signatures(rules, report):
    """Overloads must differ in their arguments, or no call could tell them apart."""
    lines = {}
    for rule in rules:
        first = lines.setdefault(rule.schema.signature, rule.line)
        if first != rule.line:
            cause = f"its arguments are those of the entry in line {first}"
            place = rule.places["name"]
            report(place, rule.schema.full_name, cause, "remove one of the two")
