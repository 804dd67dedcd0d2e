"""Reads strict YAML: a list of entries, each a map from strings to strings or lists of strings.

The reader consumes the events of the YAML parser and builds no object from a tag. Scalars stay
strings and keep their line and column. Tags, anchors, aliases, merge keys, directives, several
documents, duplicate keys, and files that are too large or too deep are mistakes.
"""

import re

import yaml

from .mistakes import bare, shown
from .source import Collection, Entry, Scalar

MAX_EVENTS = 60_000
MAX_DEPTH = 20

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# control characters, and characters that change how the text around them is displayed
UNREADABLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e007f]"
)
FORM = "an entry is `- name: schema` and lines `input: formula` under it"


class EndOfReading(Exception):
    """Ends the reading of a file after a mistake that makes the rest meaningless."""


def read(source):
    """The entries of a table; mistakes are added to the source.

    Empty if the file cannot be read to its end, since formulas may call operators of later entries.
    """
    root = tree(source, FORM)
    return [] if root is None else entries(source, root)


def read_named(source, form):
    """The Entry in a text of the form `name: {key: value}`; mistakes are added to the source."""
    root = tree(source, form)
    if root is None:
        return None
    match root.items:
        case [Collection("map", items=[Scalar() as name, Collection("map", items=items)])]:
            keys, values, refused = keys_of(items)
            for key in refused:
                refuse_key(source, name.text, key)
            return Entry(name, keys, values)
    place = root.items[0].place() if root.items else (1, 1)
    source.mistake_at(place, "it is no map of keys and texts", form)
    return None


def tree(source, form):
    """The tree of a text, under a root; None if it cannot be read to its end.

    `form`: what to write in place of what is not YAML.
    """
    if source.mistakes or not characters_are_readable(source):
        return None
    root = Collection("root", 1, 1)
    try:
        Builder(source, root).build(yaml.parse(source.text, Loader=LOADER))
    except EndOfReading:
        return None
    except yaml.YAMLError as error:
        add_syntax_error(source, error, form)
        return None
    return root


def characters_are_readable(source):
    bad = list(UNREADABLE.finditer(source.text))
    for match in bad[:20]:
        line = source.text.count("\n", 0, match.start()) + 1
        place = line, match.start() - source.text.rfind("\n", 0, match.start())
        cure = "indent with blanks" if match[0] == "\t" else "remove it"
        source.mistake_at(place, f"the character {match[0]!a} is not allowed", cure)
    return not bad


def add_syntax_error(source, error, form):
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    why = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    source.mistake_at(place, f"not YAML: {bare(str(why))}", form)


class Builder:
    """Builds Scalars and Collections from the events of the parser."""

    def __init__(self, source, root):
        self.source, self.stack, self.documents = source, [root], 0

    def build(self, events):
        for count, event in enumerate(events):
            if count > MAX_EVENTS:
                self.end(event, f"it has more than {MAX_EVENTS:,} parts", "split it")
            handle = HANDLERS.get(type(event))
            if handle:
                handle(self, event)

    def end(self, event, cause, cure):
        self.mistake(event, cause, cure)
        raise EndOfReading

    def mistake(self, event, cause, cure):
        self.source.mistake_at(place_of(event), cause, cure)

    def start_document(self, event):
        self.documents += 1
        if event.version or event.tags or self.source.text.startswith("%"):
            self.mistake(event, "a YAML directive", "leave it out")
        if self.documents > 1:
            self.end(event, "a second document", "a table is one document: remove the `---`")

    def add_scalar(self, event):
        if event.tag is not None or event.anchor is not None:
            self.refuse_marks(event)
        start, end, text = event.start_mark, event.end_mark, event.value
        quotes = 1 if event.style in ("'", '"') else 0
        one_line = start.line == end.line
        plain = one_line and end.column - start.column == len(text) + 2 * quotes
        column = start.column + 1 + (quotes if plain else 0)
        self.stack[-1].items.append(Scalar(text, start.line + 1, column, plain, one_line))

    def refuse_marks(self, event):
        if event.tag is not None:
            self.mistake(event, f"the tag {shown(event.tag)}", "leave it out: all values are text")
        if event.anchor is not None:
            self.mistake(event, f"the anchor {shown(event.anchor)}", "write the value out")

    def add_alias(self, event):
        self.mistake(event, f"the alias {shown(event.anchor)}", "write the value out")
        self.stack[-1].items.append(Collection("nothing", *place_of(event)))

    def start_list(self, event):
        self.start("list", event)

    def start_map(self, event):
        self.start("map", event)

    def start(self, kind, event):
        if event.tag is not None or event.anchor is not None:
            self.refuse_marks(event)
        if len(self.stack) > MAX_DEPTH:
            self.end(event, f"it is nested more than {MAX_DEPTH} deep", FORM)
        collection = Collection(kind, *place_of(event))
        self.stack[-1].items.append(collection)
        self.stack.append(collection)

    def end_collection(self, event):
        self.stack.pop()


HANDLERS = {
    yaml.ScalarEvent: Builder.add_scalar,
    yaml.AliasEvent: Builder.add_alias,
    yaml.SequenceStartEvent: Builder.start_list,
    yaml.MappingStartEvent: Builder.start_map,
    yaml.SequenceEndEvent: Builder.end_collection,
    yaml.MappingEndEvent: Builder.end_collection,
    yaml.DocumentStartEvent: Builder.start_document,
}


def place_of(event):
    return event.start_mark.line + 1, event.start_mark.column + 1


def entries(source, root):
    """The Entries in the built tree; everything else is a mistake."""
    top = root.items[0] if root.items else None
    if not isinstance(top, Collection) or top.kind != "list" or not top.items:
        if not source.mistakes:
            source.mistake((1, 1), "file", "a table is a list of entries", FORM)
        return []
    candidates = (entry(source, node, number) for number, node in enumerate(top.items, 1))
    return [candidate for candidate in candidates if candidate]


def entry(source, node, number):
    if isinstance(node, Scalar) or node.kind != "map":
        if isinstance(node, Scalar) or node.kind == "list":
            source.mistake(node.place(), f"entry {number}", "it is not a map", FORM)
        return None
    keys, values, refused = keys_of(node.items)
    name = values.pop("name", None)
    if not isinstance(name, Scalar) or not name.text.strip():
        source.mistake(node.place(), f"entry {number}", "it has no name", FORM)
        return None
    del keys["name"]
    title = name.text.partition("(")[0].strip() or f"entry {number}"
    for key in refused:
        refuse_key(source, title, key)
    return Entry(name, keys, values)


def keys_of(items):
    """The keys and the values of a map by the texts of the keys, and the keys that are refused."""
    keys, values, refused = {}, {}, []
    for key, value in zip(items[::2], items[1::2], strict=False):
        text = getattr(key, "text", None)
        if text in keys or text in (None, "<<"):
            refused.append(key)
        else:
            keys[text], values[text] = key, value
    return keys, values, refused


def refuse_key(source, title, key):
    if not isinstance(key, Scalar):
        source.mistake(key.place(), title, "a key that is no text", FORM)
    elif key.text == "<<":
        source.mistake(key.place(), title, "a merge key", "write the keys out")
    else:
        cause = f"the key {shown(key.text)} stands twice"
        source.mistake(key.place(), title, cause, "remove one of the two")
