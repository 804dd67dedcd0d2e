"""Reads the help of an operator: the keys `doc:`, `arguments:` and `example:`.

They hold for all overloads of an operator. They stand in its first entry, or in the file of help
beside the table.
"""

from .grammar import expression
from .mistakes import listed, mean, shown
from .operators import misplaced, title_of
from .rule import HELP_KEYS
from .source import Collection, Scalar

MAX_DOC = 160
RETURNS = "returns"  # the name of the results in `arguments:`
ARROW = " -> "  # between the call of an example and its result


def check_descriptions(entries, names, report):
    """Report each `doc:`, `arguments:` and `example:` that is misplaced or wrong.

    `names`: the arguments of all overloads, or None if a schema cannot be read.
    """
    checks = (_wrong_doc, _wrong_arguments, _wrong_example)
    for key, wrong in zip(HELP_KEYS, checks, strict=True):
        for entry in entries:
            for place, cause, cure in misplaced(key, entry, entries):
                report(place, title_of(entry), cause, cure)
        value = entries[0].values.get(key)
        for place, cause, cure in () if value is None else wrong(value, names):
            report(place, title_of(entries[0]), cause, cure)


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
    mistakes = list(_wrong_text(value, "`doc:`", cure))
    yield from mistakes
    if not mistakes and not value.text.endswith("."):
        yield value.place(), "`doc:` does not end with a full stop", cure


def _items(value):
    """The pairs of keys and values of a map; none for another value."""
    is_map = isinstance(value, Collection) and value.kind == "map"
    return list(zip(value.items[::2], value.items[1::2], strict=True)) if is_map else []


def descriptions(value):
    """The texts of a map by name; other values are left out."""
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
