"""Groups entries by operator, and reads the keys `doc:`, `arguments:`, `example:` and `alias:`.

They hold for all overloads of an operator and stand in its first entry.
"""

import re

from .grammar import expression
from .mistakes import listed, mean, shown
from .reader import Collection, Scalar

MAX_DOC = 160
RETURNS = "returns"  # the name of the results in `arguments:`
ARROW = " -> "  # between the call of an example and its result
BASE = re.compile(r"\s*([A-Za-z_]\w*)\s*[.(]", re.ASCII)
BLANKS = re.compile(r"\s+")
ITEM = re.compile(r"[^,\s][^,]*[^,\s]|[^,\s]")
NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*_?")
NAMES = "write the other names of the operator, separated by commas"


def entries_of(source, entries):
    """The entries of each operator, by name without overload; duplicates are mistakes."""
    found, places = {}, {}
    for entry in entries:
        text = entry.name.text
        title, base = _title(entry), BASE.match(text)
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
            found.setdefault(base[1], []).append(entry)
    return found


def _title(entry):
    return entry.name.text.partition("(")[0].strip()


# alias


def aliases(source, operators):
    """The operator of each alias; `operators`: the entries of each operator."""
    found = {}
    for operator, entries in operators.items():
        for entry in entries:
            if "alias" in entry.keys:
                _add_aliases(source, operators, operator, entry, found)
    return {alias: operator for alias, (operator, _) in found.items()}


def _add_aliases(source, operators, operator, entry, found):
    """Add `{alias: (operator, line)}` for the names in the entry's `alias:`."""
    title, value = _title(entry), entry.values["alias"]
    for place, cause, cure in _misplaced("alias", entry, operators[operator]):
        source.mistake(place, title, cause, cure)
    items = list(ITEM.finditer(value.text)) if isinstance(value, Scalar) else []
    if not items:
        source.mistake(value.place(), title, "`alias:` holds no names", NAMES)
    for item in items:
        wrong = _wrong_alias(item[0], operator, operators, found)
        if wrong:
            source.mistake(value.place(item.start()), title, *wrong)
        found.setdefault(item[0], (operator, value.line))


def _wrong_alias(alias, operator, operators, found):
    """Cause and cure if `alias` cannot be another name of `operator`, else None."""
    if not NAME.fullmatch(alias):
        return f"{shown(alias)} cannot be an operator's name", NAMES
    if alias == operator:
        return f"{alias!r} is an alias of itself", "remove it"
    if alias in operators:
        line = operators[alias][0].name.line
        return f"the alias {alias!r} has an entry of its own in line {line}", "remove one of them"
    if alias in found:
        other, line = found[alias]
        return f"a second alias {alias!r}; the first is of {other!r} in line {line}", "remove one"
    if alias.endswith("_") != operator.endswith("_"):
        cure = "only in-place operators have names that end with an underscore"
        return f"{alias!r} cannot be an alias of {operator!r}", cure
    return None


def _misplaced(key, entry, entries):
    """Place, cause and cure if `key` stands in an entry that is not the first of its operator."""
    if entry is not entries[0] and key in entry.keys:
        cure = f"write it in the first, in line {entries[0].name.line}"
        yield entry.keys[key].place(), f"`{key}:` in a later entry of its operator", cure


# doc, arguments and example


def check_docs(entries, names, report):
    """Report each `doc:`, `arguments:` and `example:` that is misplaced or wrong.

    `names`: the arguments of all overloads, or None if a schema cannot be read.
    """
    keys = {"doc": _wrong_doc, "arguments": _wrong_arguments, "example": _wrong_example}
    for key, wrong in keys.items():
        for entry in entries:
            for place, cause, cure in _misplaced(key, entry, entries):
                report(place, _title(entry), cause, cure)
        value = entries[0].values.get(key)
        for place, cause, cure in () if value is None else wrong(value, names):
            report(place, _title(entries[0]), cause, cure)


def _wrong_text(value, what, cure):
    """Place, cause and cure if a value is no short text on one line."""
    if not isinstance(value, Scalar) or not value.one_line:
        yield value.place(), f"{what} is no text on one line", cure
    elif not value.text.strip():
        yield value.place(), f"{what} is empty", cure
    elif len(value.text) > MAX_DOC:
        yield value.place(), f"{what} has {len(value.text)} characters", f"write at most {MAX_DOC}"


def _wrong_doc(value, names):
    """Place, cause and cure of each mistake in a sentence."""
    cure = "write a sentence that says what the operator computes"
    found = list(_wrong_text(value, "`doc:`", cure))
    yield from found
    if not found and not value.text.endswith("."):
        yield value.place(), "`doc:` does not end with a full stop", cure


def _items(value):
    """The pairs of keys and values of a map; none for another value."""
    is_map = isinstance(value, Collection) and value.kind == "map"
    return list(zip(value.items[::2], value.items[1::2], strict=True)) if is_map else []


def descriptions(value):
    """The texts of a map by name, without those that are none."""
    texts = ((name, text) for name, text in _items(value) if isinstance(text, Scalar))
    return {name.text: text.text for name, text in texts if isinstance(name, Scalar)}


def _wrong_arguments(value, names):
    """Place, cause and cure of each mistake in a map of descriptions."""
    if not _items(value):
        cure = 'write `arguments: {self: "(n, m)", returns: "(m, n)"}`'
        yield value.place(), "`arguments:` is no map of descriptions", cure
    seen = set()
    for key, text in _items(value):
        name = getattr(key, "text", "")
        if name in seen:
            yield key.place(), f"{shown(name)} is described twice", "remove one of the two"
        elif names is not None and name not in (*names, RETURNS):
            otherwise = f"the arguments are {listed(dict.fromkeys(names))}; {RETURNS} is the result"
            cure = mean(name, (*names, RETURNS), otherwise)
            yield key.place(), f"`arguments:` describes {shown(name)}, which is no argument", cure
        seen.add(name)
        yield from _wrong_text(text, f"the description of {shown(name)}", "say its shape and dtype")


def _wrong_example(value, names):
    """Place, cause and cure if a value is no call and its result."""
    cure = "write `torch.sin(torch.tensor([0.])) -> tensor([0.])`"
    if not isinstance(value, Scalar) or not value.one_line:
        yield value.place(), "`example:` is no text on one line", cure
        return
    call, arrow, result = value.text.rpartition(ARROW)
    if not arrow or not result.strip():
        yield value.place(), "`example:` has no result", cure
        return
    try:
        expression(call)
    except SyntaxError:
        yield value.place(), f"`example:` calls {shown(call)}, which is no expression", cure
