"""`python -m jaxgrad scan`: the names of torch that Python files and notebooks use, and jaxgrad
does not have or has with another meaning.

Files are parsed, and neither imported nor run. So methods of objects are not seen: nothing says
that the `x` of `x.storage()` is a tensor.
"""

from __future__ import annotations

import ast
import bisect
import inspect
import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jaxgrad

from ..core.overloads import ALIASES
from ..names.missing import suggestion
from ..names.not_provided import NotProvidedModule, is_placeholder, meaning, own_module, own_name
from ..names.pytorch import entry_of, modules
from ..version import __version__ as PYTORCH
from .names_used import Use, names_used


class Finding(NamedTuple):
    """A name of torch in a file that jaxgrad lacks, or has with another meaning.

    file: of a notebook, with the number of the cell; kind: "placeholder" for a name of PyTorch that
    can be imported and raises when it is used, "unknown" for one that PyTorch does not have,
    "missing" for an argument or a member of a class, "differs"; why: with the way out.
    """

    file: str
    line: int
    name: str
    kind: str
    why: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.name}: {self.why}"


def files_in(paths: list[str]) -> list[Path]:
    """The Python files and notebooks of these files and folders, without hidden folders and those
    of installed packages.
    """
    groups = [sorted(_inside(path)) if path.is_dir() else [path] for path in map(Path, paths)]
    return [file for files in groups for file in files]


def _inside(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        above = path.relative_to(folder).parts[:-1]
        is_left_out = any(part[0] == "." or part in _LEFT_OUT for part in above)
        if path.suffix in (".py", ".ipynb") and not is_left_out:
            yield path


_LEFT_OUT = {"site-packages", "node_modules", "__pycache__"}


def scan(file: Path) -> list[Finding]:
    """The names of torch in a file that jaxgrad lacks or has with another meaning, by line. Raises
    OSError, SyntaxError and ValueError for a file that cannot be read.
    """
    source, cells = notebook(file) if file.suffix == ".ipynb" else (file.read_bytes(), ())
    try:
        uses = names_used(ast.parse(source, str(file)))
    except RecursionError:
        raise ValueError("its expressions are nested too deeply") from None
    findings = {(use.line, problem): None for use in uses for problem in problems(use)}
    return [Finding(*_place(file, cells, line), *problem) for line, problem in sorted(findings)]


def notebook(file: Path) -> tuple[str, list[int]]:
    """The code of a notebook, and the number of lines before each cell."""
    cells, lines, starts = json.loads(file.read_bytes())["cells"], [], []
    for cell in cells:
        starts.append(len(lines))
        if cell["cell_type"] == "code":
            code = "".join(cell["source"]).splitlines()
            is_other_language = bool(code) and code[0].startswith("%%")
            lines += [_MAGIC.sub(r"\1pass", line) for line in ([] if is_other_language else code)]
    return "\n".join(lines), starts


# commands to the shell and to the notebook
_MAGIC = re.compile(r"^(\s*)[%!].*")


def _place(file, cells, line) -> tuple[str, int]:
    """The file, of a notebook with the number of the cell, and the line."""
    if not cells:
        return str(file), line
    number = bisect.bisect_left(cells, line)
    return f"{file}#{number}", line - cells[number - 1]


# ---- what jaxgrad has

# what is there and does something else: what to do
DIFFERS = {
    "torch.jit.script": "the code goes on to run as Python: torch.compile compiles it",
    "torch.jit.trace": "the code goes on to run as Python: torch.compile compiles it",
}


def problems(use: Use) -> Iterator[tuple[str, str, str]]:
    """The problems of a use: names that jaxgrad lacks or has with another meaning, each with its
    kind and the reason.
    """
    names = use.names
    if use.is_of_star:  # the import reports a missing module
        names = tuple(name for name in names if not first_missing(name.rpartition(".")[0]))
    missing = [first_missing(name) for name in names]
    if all(missing):
        for name, kind, reason in missing[:1]:
            if not f"{use.optional}.".startswith(f"{name}."):
                yield name, kind, reason
        return
    name = names[missing.index(None)]
    if name in DIFFERS:
        yield name, "differs", f"differs: {DIFFERS[name]}"
    for keyword in unknown_keywords(counterpart(name), [keyword for keyword, _ in use.keywords]):
        yield name, "missing", f"it has no argument {keyword!r}"


def counterpart(name: str):
    """The value of a name of torch in jaxgrad."""
    value, place = jaxgrad, "torch"
    for part in name.split(".")[1:]:
        place = f"{place}.{part}"
        (value,) = child(value, part, place) or (None,)
    return value


def unknown_keywords(function, keywords) -> list[str]:
    """The keywords that a function or class written in Python does not have. Operators take names
    of arguments that their signatures do not show.
    """
    is_shown = inspect.isfunction(function) or inspect.isclass(function)
    if not keywords or not is_shown or hasattr(function, "operator"):
        return []
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return []
    return [keyword for keyword in keywords if not {keyword, ALIASES.get(keyword)} & {*known}]


def first_missing(name: str) -> tuple[str, str, str] | None:
    """The first part of a name of torch that jaxgrad lacks, the kind and why; None if it has all of
    it.
    """
    value, place = jaxgrad, "torch"
    for part in name.split(".")[1:]:
        path = f"{place}.{part}"
        inner = child(value, part, path)
        if inner is None:
            return path, *kind_and_why(value, part)
        value, place = inner[0], path
        if isinstance(value, NotProvidedModule):
            continue
        if is_placeholder(value):
            return place, "placeholder", value.why
        if not (is_module(value) or isinstance(value, type)):
            return None  # the attributes of functions and values are Python's
    return None


def child(value, part: str, path: str) -> tuple | None:
    """A member of a module or a class, in a tuple; None where there is none. path: its name in
    PyTorch.
    """
    if not isinstance(value, NotProvidedModule):
        try:
            return (getattr(value, part),)
        except AttributeError:
            pass
    if part.startswith("__") or not is_module(value):
        return (None,) if part.startswith("__") else None
    try:
        module = own_module(value, part)
    except ImportError:  # jaxgrad has a module that needs a package which is not here
        return (None,)
    if module is None and (entry := entry_of(path)) is not None:
        return (meaning(entry),)
    if module is None and path in modules():
        return (NotProvidedModule(own_name(path)),)
    return None if module is None else (module,)


def is_module(value) -> bool:
    return isinstance(value, types.ModuleType) or value is jaxgrad.jit


def kind_and_why(value, part: str) -> tuple[str, str]:
    """The kind of a member that a module or class does not have, and why it is missing."""
    if not is_module(value):
        name = value.__name__
        return "missing", f"not provided by jaxgrad: {name} has no attribute {part!r}"
    return "unknown", f"PyTorch {PYTORCH} has no such name{suggestion(value.__name__, part)}"
