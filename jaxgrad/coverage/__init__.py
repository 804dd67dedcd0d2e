"""PyTorch's names that jaxgrad has and lacks: `jaxgrad ops --missing`, docs/api/coverage.md."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import NamedTuple

import jaxgrad

from .. import ops
from ..names import pytorch as pytorch_names
from ..names.not_provided import is_placeholder, meaning
from ..table import parse_schema

HERE = Path(__file__).parent


class Name(NamedTuple):
    """A public name of PyTorch 2.13, `torch.linalg.svd`.

    space: the module or class it belongs to; reason: why jaxgrad does not have it, "" if it is to
    have it; one that is planned begins with "to come".
    """

    space: str
    name: str
    reason: str

    @property
    def path(self) -> str:
        return f"{self.space}.{self.name}"

    @property
    def is_planned(self) -> bool:
        """Whether jaxgrad is to have it."""
        return not self.reason or self.reason.startswith("to come")

    @property
    def is_there(self) -> bool:
        """Whether jaxgrad has it."""
        value = find(self.path)
        return value is not None and not is_placeholder(value)


def torch_names() -> list[Name]:
    """The public names of PyTorch 2.13, in its order."""
    lines = (HERE / "torch_names.tsv").read_text().splitlines()[1:]
    return [_name(*line.partition("\t")[::2]) for line in lines]


def _name(path: str, reason: str) -> Name:
    space, _, name = path.rpartition(".")
    return Name(space, name, reason)


def find(path: str):
    """The value in jaxgrad of a name of PyTorch's, such as `torch.linalg.svd`; None if it is
    missing.
    """
    value, place = jaxgrad, "jaxgrad"
    for part in path.split(".")[1:]:
        place = f"{place}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(place)
            except ImportError:
                return None
    return value


def placeholders() -> dict[str, list[str]]:
    """The names without an underscore that are placeholders, by the module that defines them. Those
    of PyTorch's own tests are left out.
    """
    spaces = {}
    for module, names in pytorch_names.all_names().items():
        if not any(part[0] == "_" for part in module.split(".")):
            entries = (entry for name, entry in names.items() if entry.path == f"{module}.{name}")
            spaces[module] = [
                entry.name
                for entry in entries
                if entry.name[0] != "_" and is_placeholder(meaning(entry))
            ]
    return {module: names for module, names in spaces.items() if names}


def early_schemas() -> list[str]:
    """The schemas of the operators in the first table of derivatives of PyTorch, of 2018."""
    return (HERE / "early_schemas.txt").read_text().splitlines()


def missing_early_schemas() -> list[str]:
    """The schemas whose operator `jaxgrad.ops` does not have under its early name."""
    return [text for text in early_schemas() if not ops.has(parse_schema(text).name)]


def report() -> str:
    """The missing names as text: those to come, by module, then those of early PyTorch."""
    missing: dict[str, list[str]] = {}
    for name in torch_names():
        if name.is_planned and not name.is_there:
            missing.setdefault(name.space, []).append(name.name)
    lines = [f"{space}: {' '.join(names)}" for space, names in missing.items()]
    old = dict.fromkeys(parse_schema(text).name for text in missing_early_schemas())
    lines += [f"jaxgrad.ops, names of early PyTorch: {' '.join(old)}"] if old else []
    return "\n".join(lines) or "all names that are planned are there"
