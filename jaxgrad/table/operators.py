"""Groups entries by operator, and reads their `alias:`."""

import re

from .mistakes import shown
from .source import Scalar

BASE = re.compile(r"\s*([A-Za-z_]\w*)\s*[.(]", re.ASCII)
BLANKS = re.compile(r"\s+")
ITEM = re.compile(r"[^,\s][^,]*[^,\s]|[^,\s]")
NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*_?")
NAMES = "write the other names of the operator, separated by commas"


def entries_of(source, entries):
    """The entries of each operator, by name without overload; duplicates are mistakes."""
    groups, places = {}, {}
    for entry in entries:
        text = entry.name.text
        title, base = title_of(entry), BASE.match(text)
        key = title if "->" in text else BLANKS.sub("", text)
        if base is None:
            cause = f"its name {shown(text)} is no schema"
            source.mistake(entry.name.place(), title or "?", cause, "name(Type argument) -> Type")
        elif key in places:
            cure = "remove one of the two, or give it another overload name"
            cause = f"a second entry for it; the first is in line {places[key]}"
            source.mistake(entry.name.place(), title, cause, cure)
        else:
            places[key] = entry.name.line
            groups.setdefault(base[1], []).append(entry)
    return groups


def title_of(entry):
    return entry.name.text.partition("(")[0].strip()


# alias


def aliases(source, operators):
    """The operator of each alias; `operators`: the entries of each operator."""
    owners = {}
    for operator, entries in operators.items():
        for entry in entries:
            if entry.value("alias") is not None:
                _add_aliases(source, operators, operator, entry, owners)
    return {alias: operator for alias, (operator, _) in owners.items()}


def _add_aliases(source, operators, operator, entry, owners):
    """Add `{alias: (operator, line)}` for the names in the entry's `alias:`."""
    title, value = title_of(entry), entry.value("alias")
    for place, cause, cure in misplaced("alias", entry, operators[operator]):
        source.mistake(place, title, cause, cure)
    items = list(ITEM.finditer(value.text)) if isinstance(value, Scalar) else []
    if not items:
        source.mistake(value.place(), title, "`alias:` holds no names", NAMES)
    for item in items:
        wrong = _wrong_alias(item[0], operator, operators, owners)
        if wrong:
            source.mistake(value.place(item.start()), title, *wrong)
        owners.setdefault(item[0], (operator, value.line))


def _wrong_alias(alias, operator, operators, owners):
    """Cause and cure if `alias` cannot be another name of `operator`, else None."""
    if not NAME.fullmatch(alias):
        return f"{shown(alias)} cannot be an operator's name", NAMES
    if alias == operator:
        return f"{alias!r} is an alias of itself", "remove it"
    if alias in operators:
        line = operators[alias][0].name.line
        return f"the alias {alias!r} has an entry of its own in line {line}", "remove one of them"
    if alias in owners:
        other, line = owners[alias]
        return f"a second alias {alias!r}; the first is of {other!r} in line {line}", "remove one"
    if alias.endswith("_") != operator.endswith("_"):
        cure = "only in-place operators have names that end with an underscore"
        return f"{alias!r} cannot be an alias of {operator!r}", cure
    return None


def misplaced(key, entry, entries):
    """Place, cause and cure if `key` stands in an entry that is not the first of its operator."""
    if entry is not entries[0] and key in entry.read().keys:
        cure = f"write it in the first, in line {entries[0].name.line}"
        yield entry.read().keys[key].place(), f"`{key}:` in a later entry of its operator", cure
