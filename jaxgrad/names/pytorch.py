"""The modules of PyTorch with all their names, private ones too; read when an import fails."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "coverage"


class Entry(NamedTuple):
    """A name in a module of PyTorch.

    kind: "class", "layer" (a class of modules), "function", "value", "alias" (of types), the name
    of a class of `typing`, or the built-in exception that an exception derives from; home: the
    module that defines it; name: its name there.
    """

    kind: str
    home: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.home}.{self.name}"


@functools.cache
def modules() -> dict[str, str]:
    """By the modules of PyTorch and their packages what the list says of the names in them."""
    text = gzip.decompress((FOLDER / "all_names.tsv.gz").read_bytes()).decode()
    rows = [line.partition("\t") for line in text.splitlines()[1:]]
    packages = dict.fromkeys((module.rpartition(".")[0] for module, _, _ in rows[1:]), "")
    return packages | {module: groups for module, _, groups in rows}


@functools.cache
def names_in(module: str) -> dict[str, Entry]:
    """The names in a module of PyTorch; none where there is no such module."""
    entries = {}
    for group in filter(None, modules().get(module, "").split("\t")):
        head, *names = group.split()
        kind, _, home = head.partition("@")
        for text in names:
            name, _, other = text.partition("=")
            entries[name] = Entry(kind, home or module, other or name)
    return entries


def all_names() -> dict[str, dict[str, Entry]]:
    """All names of PyTorch, by module."""
    return {module: names_in(module) for module in modules()}


def entry_of(path: str) -> Entry | None:
    """What a name of PyTorch is, None if it has no such name: `torch.fx.Node`."""
    module, _, name = path.rpartition(".")
    return names_in(module).get(name)


def paths_of(entry: Entry) -> list[str]:
    """The names of an object in the packages of its module, the shortest first, in its module and
    in PyTorch's library.
    """
    parts = entry.home.split(".")
    places = [".".join(parts[: length + 1]) for length in range(len(parts))] + ["torch._C"]
    return [f"{place}.{entry.name}" for place in places if names_in(place).get(entry.name) == entry]


def shown_path(entry: Entry) -> str:
    """The name by which users know an object: that of a package before that of its module."""
    return next(iter(paths_of(entry)), entry.path)


def instead_of(path: str) -> str:
    """What to use in place of a module or name that jaxgrad does not provide."""
    known = _instead()
    while path not in known:
        path = path.rpartition(".")[0]
    return known[path]


@functools.cache
def _instead() -> dict[str, str]:
    lines = (FOLDER / "instead.tsv").read_text().splitlines()[1:]
    return dict(line.split("\t") for line in lines)
