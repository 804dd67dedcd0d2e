"""Names that a module of jaxgrad does not have."""

from __future__ import annotations

import difflib
import functools
import sys
from pathlib import Path

NAMES = Path(__file__).parents[1] / "coverage" / "torch_names.tsv"


class MissingName(AttributeError):
    """A module of jaxgrad has no such name. The text says why, and has the nearest name.

    It is composed when it is read: programs ask by `hasattr` too.
    """

    def __init__(self, module: str, name: str):
        super().__init__(module, name)
        self.module, self.missing = module, name

    def __str__(self):
        text = f"module {self.module!r} has no attribute {self.missing!r}"
        return f"{text}: {why_missing(self.module, self.missing)}"


class Elsewhere:
    """How a name of a module is looked for in others: `find(module, name)` gives it or None."""

    __slots__ = ("find",)

    def __init__(self):
        self.find = lambda module, name: None


elsewhere = Elsewhere()


def search_by(find) -> None:
    """Let `find(module, name)` look for names that a module does not have."""
    elsewhere.find = find


def missing_in(module: str):
    """The `__getattr__` of a module of this name: it finds what jaxgrad has elsewhere under a name
    that PyTorch has in this module too.

    The module has the path of an empty package: so Python asks finders for a name that is absent in
    `from module import name`.
    """

    def __getattr__(name):
        if name == "__path__":
            return []
        # PyTorch's modules have the names that they import, as torch.storage has TypedStorage
        value = None if name.startswith("__") else elsewhere.find(module, name)
        if value is None:
            raise MissingName(module, name)
        return value

    return __getattr__


def offered(module: str, *others: str) -> list[str]:
    """What `from module import *` imports of a module of jaxgrad whose names are found late:
    PyTorch's public names, and others.
    """
    place = f"torch{module.removeprefix('jaxgrad')}"
    names = dir(sys.modules[module])
    return [name for name in names if f"{place}.{name}" in reasons() or name in others]


def why_missing(module: str, name: str) -> str:
    """Why a module of jaxgrad does not have a name, and the nearest one that it has.

    >>> from jaxgrad.names.missing import why_missing
    >>> why_missing("jaxgrad.nn", "Liner")
    "not provided by jaxgrad; did you mean 'Linear'?"
    """
    reason = reasons().get(f"torch{module.removeprefix('jaxgrad')}.{name}")
    if reason is None:
        return f"not provided by jaxgrad{suggestion(module, name)}"
    if not reason or reason.startswith("to come"):
        return "planned, but not there yet"
    return f"not provided by jaxgrad ({reason})"


# where a function or class is looked for that programs expect in another module
_PLACES = (
    *("torch", "torch.nn.functional", "torch.nn", "torch.optim", "torch.optim.lr_scheduler"),
    *("torch.linalg", "torch.fft"),
)


def suggestion(module: str, name: str) -> str:
    """The place of this name, or the nearest name that a module has, as the end of a sentence."""
    place = next((place for place in _PLACES if reasons().get(f"{place}.{name}") == ""), None)
    if place is not None:
        return f"; it is {place}.{name}"
    # jaxgrad.jit is no module
    known = {name.lower(): name for name in sorted(dir(sys.modules.get(module)), reverse=True)}
    near = difflib.get_close_matches(name.lower(), known, 1, 0.8)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


@functools.cache
def reasons() -> dict[str, str]:
    """By PyTorch's public names why jaxgrad leaves a name out; "" for names that it has or is to
    have.
    """
    lines = NAMES.read_text().splitlines()[1:]
    return dict(line.partition("\t")[::2] for line in lines)
