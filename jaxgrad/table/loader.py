"""Loads tables: the structure of the file at once, the entries of an operator at its first use."""

import linecache
import os
from graphlib import CycleError, TopologicalSorter

from ..cached import cached_property
from ..late import LateModule
from . import operators as by_operator
from . import tags as by_tag
from .mistakes import Mistake, TableError, bare
from .outline import outline
from .source import MAX_BYTES, decode

checks = LateModule("jaxgrad.table.checks")
descriptions = LateModule("jaxgrad.table.descriptions")
help_file = LateModule("jaxgrad.table.help_file")
reader = LateModule("jaxgrad.table.reader")
rule_module = LateModule("jaxgrad.table.rule")

# a check ends after so many mistakes, so that a hostile file costs no more than a second
MOST_MISTAKES = 1000
FIRST = "correct the mistakes above first"


def load(path, functions=frozenset(), operators=frozenset(), late=False, kept=None, help_path=None):
    """Load the table in the file `path`.

    `functions`: the names of helpers and value functions that its formulas may call; `operators`:
    the names of operators of other tables that they may call. Raises OSError for an unreadable
    file, and TableError with all mistakes of the file if its structure is wrong. A mistake inside
    an entry is raised by `Table.rules` of its operator and by `Table.check`.

    `late`: find the entries by their lines where these are plain, and read the YAML of an entry
    when its operator is first used; a mistake in its structure counts as one inside the entry. For
    a table that `jaxgrad check` has passed. `kept(name, path)`: gives the rules of an operator that
    need not be read, or None.

    `help_path`: the path of the file with the help of the operators; None if their entries hold it.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    return _table(data, path, functions, operators, late, kept, help_path)


def loads(text, path="<table>", functions=frozenset(), operators=frozenset()):
    """Load a table from `text`, str or bytes; messages and tracebacks call it `path`."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    return _table(data, path, functions, operators)


def _table(data, path, functions, operators, late=False, kept=None, help_path=None):
    source = decode(data, path)
    entries = outline(source) if late else None
    if entries is None:
        entries = reader.read(source)
    table = Table(source, entries, functions, operators, kept, help_path)
    lines = source.text.splitlines(keepends=True)
    linecache.cache[path] = (len(source.text), None, lines, path)  # for tracebacks
    if table.mistakes:
        table.check()
    return table


class Table:
    """The rules of a table, by operator name without overload.

    `names`: the operators in the order of the file; `aliases`: the operator of each alias;
    `operators`: both kinds of names; `path`: the path of the file.

    >>> from jaxgrad.table import loads
    >>> text = "- name: twice(Tensor self) -> Tensor\\n  alias: doubled\\n  forward: self * 2\\n"
    >>> loads(text + "  self: grad * 2\\n").rules("doubled")[0].node
    'TwiceBackward0'
    """

    def __init__(self, source, entries, functions, operators, kept=None, help_path=None):
        self.path, self.mistakes = source.path, source.mistakes
        self.entries, self._rules = by_operator.entries_of(source, entries), {}
        self.aliases = by_operator.aliases(source, self.entries)
        self.names = tuple(self.entries)
        self.operators = frozenset((*self.names, *self.aliases))
        self._functions, self._operators = functions, operators
        self._kept, self._help_path = kept, help_path

    def __len__(self):
        return sum(map(len, self.entries.values()))

    def __contains__(self, name):
        return name in self.operators

    @cached_property
    def help(self):
        """The HelpFile of the operators; None if their entries hold the help."""
        return self._help_path and help_file.HelpFile(self._help_path)

    @cached_property
    def tags(self):
        """What `tags:` says of an operator, for those of which it says anything."""
        return by_tag.tags_of(self.entries)

    @cached_property
    def protocols(self):
        """The operator of each of Python's special methods: `add` of `__add__`, `add_` of
        `__iadd__`.
        """
        return by_tag.protocols_of(self.entries)

    # at the first formula: to find the names of functions may take long
    @cached_property
    def functions(self):
        """The names of the helpers and value functions that formulas may call."""
        return frozenset(self._functions)

    @cached_property
    def callable(self):
        """The names of all functions that formulas may call."""
        return self.functions.union(self._operators, self.operators)

    def doc(self, name):
        """The sentence that describes an operator or alias, or None.

        It reads no formula and checks nothing: `rules` and `check` report a malformed `doc:`.
        Raises KeyError for an unknown name.
        """
        return self._text(name, "doc")

    def example(self, name):
        """A call of an operator and what it returns; None where it has no example."""
        text = self._text(name, "example")
        return None if text is None else tuple(text.rsplit(descriptions.ARROW, 1))

    def arguments(self, name):
        """What is said about the arguments of an operator and, as `returns`, its results."""
        return descriptions.descriptions(self._value(name, "arguments"))

    def _text(self, name, key):
        return getattr(self._value(name, key), "text", None)

    def _value(self, name, key):
        name = self.aliases.get(name, name)
        first = self.entries[name][0]
        entry = first.read() if self.help is None else self.help.entry(name)
        return entry.values.get(key)

    def rules(self, name):
        """The Rule of each overload of an operator or alias.

        Raises KeyError for an unknown name, and TableError with all mistakes of its entries.
        """
        name = self.aliases.get(name, name)
        known_rules = self._rules.get(name)
        if known_rules is None:
            if name not in self.entries:
                raise KeyError(name)
            rules, mistakes = self._kept and self._kept(name, self.path), ()
            if not rules:
                rules, mistakes = self._read(name)
            if mistakes:
                raise TableError(sorted(mistakes))
            known_rules = self._rules.setdefault(name, rules)
        return known_rules

    def check(self):
        """Read every entry. Raises TableError with all mistakes, or the first 1,000 of them."""
        mistakes = list(self.mistakes)
        for name in self.names:
            if len(mistakes) >= MOST_MISTAKES:
                line, column = self.entries[name][0].name.place()
                cause = f"the check stops here, after {len(mistakes)} mistakes"
                mistakes.append(Mistake(self.path, line, column, bare(name), cause, FIRST))
                break
            rules, more = ((), ()) if name in self._rules else self._read(name)
            mistakes += more
            if rules and not more:
                self._rules[name] = rules
        mistakes = mistakes or self._circular()
        if mistakes:
            raise TableError(sorted(set(mistakes)))
        if self.help is not None:
            self.help.check(self)

    def _circular(self):
        """The mistakes of operators whose values call one another in a circle, in all overloads."""
        try:
            TopologicalSorter(
                {
                    name: frozenset.intersection(*map(self._calls, self._rules[name]))
                    for name in self.names
                }
            ).prepare()
        except CycleError as error:
            return [circular(self._rules[name][0]) for name in error.args[1]]
        return []

    def _calls(self, rule):
        """The operators of this table that the value of a rule calls."""
        called = self.operators & (rule.forward.calls if rule.forward else frozenset())
        return frozenset(self.aliases.get(name, name) for name in called)

    def _read(self, name):
        """The rules of an operator and all mistakes in its entries."""
        mistakes = []

        def report(place, entry, cause, cure):
            mistakes.append(Mistake(self.path, *place, bare(entry), cause, cure))

        try:
            entries = [entry.read() for entry in self.entries[name]]
        except TableError as error:
            return (), list(error.mistakes)
        rules, tags = [], self.tags.get(name, frozenset())
        for entry in entries:
            number = sum(rule.is_recorded for rule in rules)
            builder = rule_module.RuleBuilder(
                entry, number, self.path, self.functions, self.callable, report, tags
            )
            rule = builder.build()
            if rule:
                checks.check(rule, builder.mistake)
                rules.append(rule)
        names = [name for rule in rules for name in rule.schema.names]
        whole = len(rules) == len(entries)
        descriptions.check_descriptions(entries, names if whole else None, report)
        schemas = [rule.schema for rule in rules] if whole else []
        operator = by_tag.Operator(name, tags, schemas, self.protocols)
        by_tag.check_tags(entries, operator, report)
        _check_signatures(rules, report)
        return tuple(rules), mistakes


def circular(rule):
    """The Mistake of a rule whose value is computed by itself."""
    place = rule.places["name"] if rule.forward is None else rule.forward.place("")
    name = rule.schema.full_name
    cause = f"the value of {name} calls itself"
    return Mistake(rule.path, *place, bare(name), cause, "compute it by other functions")


def _check_signatures(rules, report):
    """Report overloads with the same arguments, which no call could tell apart."""
    lines = {}
    for rule in rules:
        first = lines.setdefault(rule.schema.signature, rule.line)
        if first != rule.line:
            cause = f"its arguments are those of the entry in line {first}"
            place = rule.places["name"]
            report(place, rule.schema.full_name, cause, "remove one of the two")
