"""`python -m jaxgrad scan`: the names of torch that Python files use and jaxgrad does not have.

Files are parsed, and neither imported nor run.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jaxgrad

from ..core.missing_names import why_missing
from ..core.not_provided import NotProvided


class Finding(NamedTuple):
    """A name of torch in a file that jaxgrad lacks. why: with the way out."""

    file: str
    line: int
    name: str
    why: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.name}: {self.why}"


def files_in(paths: list[str]) -> list[Path]:
    """The Python files of these files and folders."""
    found = [sorted(path.rglob("*.py")) if path.is_dir() else [path] for path in map(Path, paths)]
    return [file for files in found for file in files]


def scan(file: Path) -> list[Finding]:
    """The names of torch in a file that jaxgrad lacks, by line. Raises OSError and SyntaxError."""
    tree = ast.parse(file.read_bytes(), str(file))
    found = {}
    for line, name in names_used(tree):
        missing = first_missing(name)
        if missing is not None:
            found.setdefault((line, missing[0]), Finding(str(file), line, *missing))
    return [found[place] for place in sorted(found)]


# ---- what a file uses


def names_used(tree) -> Iterator[tuple[int, str]]:
    """Each use of a name of torch, with its line: `torch.nn.functional.relu`, whatever the names
    are under which the file imports it.
    """
    aliases, stored = {}, {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias, name in imported(node):
                yield node.lineno, name
                aliases[alias] = name
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            stored.add(node.id)
    # what the file binds to something else may be anything
    aliases = {alias: name for alias, name in aliases.items() if alias not in stored}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            name = dotted(node, aliases)
            if name is not None:
                yield node.lineno, name


def imported(node) -> Iterator[tuple[str, str]]:
    """The names of torch that an import binds, each with what it is bound to."""
    if isinstance(node, ast.Import):
        for alias in filter(_is_of_torch, node.names):
            yield alias.asname or "torch", alias.name if alias.asname else "torch"
            yield alias.name, alias.name
    elif node.level == 0 and (node.module or "").partition(".")[0] == "torch":
        for alias in node.names:
            name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            yield alias.asname or alias.name, name


def _is_of_torch(alias) -> bool:
    return alias.name.partition(".")[0] == "torch"


def dotted(node, aliases) -> str | None:
    """The name of torch that attributes lead to; None for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(parts)])


# ---- what jaxgrad has


def first_missing(name: str) -> tuple[str, str] | None:
    """The first part of a name of torch that jaxgrad lacks, and why; None if it has all of it."""
    found, place = jaxgrad, "torch"
    for part in name.split(".")[1:]:
        inner = child(found, part)
        if inner is None:
            return f"{place}.{part}", why(found, part)
        found, place = inner[0], f"{place}.{part}"
        if inspect.isclass(found) and issubclass(found, NotProvided):
            return place, found.why
        if not isinstance(found, types.ModuleType | type) and found is not jaxgrad.jit:
            return None  # the attributes of functions and values are Python's
    return None


def child(found, part) -> tuple | None:
    """A member of a module or a class, in a tuple; None where there is none."""
    try:
        return (getattr(found, part),)
    except AttributeError:
        pass
    if part.startswith("__") or not isinstance(found, types.ModuleType):
        return (None,) if part.startswith("__") else None
    try:
        return (importlib.import_module(f"{found.__name__}.{part}"),)
    except ImportError as error:
        # jaxgrad has a module that needs a package which is not here
        return (None,) if "is not installed: pip install" in str(error) else None


def why(found, part) -> str:
    if isinstance(found, types.ModuleType):
        return why_missing(found.__name__, part)
    return f"not provided by jaxgrad: {found.__name__} has no attribute {part!r}"
