"""Cards of the operators: what the table says about each, for `jaxgrad ops` and docs/api."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

from ..table import Formula, Word
from . import MODULES, library
from .documentation import shown


class Card(NamedTuple):
    """The card of an operator: its facts from the table.

    name: as users write it after `torch.`; sentence: what it computes; rows: pairs of a title and
    a text, in which names and formulas stand between backquotes.
    """

    name: str
    sentence: str
    rows: list[tuple[str, str]]


def public_path(name: str) -> str:
    """The name of an operator as users write it: `linalg.svd` for `linalg_svd`."""
    prefix = next((prefix for prefix in MODULES if name.startswith(prefix)), None)
    if prefix is not None:
        return f"{prefix[:-1]}.{name.removeprefix(prefix)}"
    return f"ops.{name}" if name.startswith("_") else name


def names() -> list[str]:
    """The operators of the shipped table, section by section in the order of the file."""
    return list(library.table.entries)


@functools.cache
def sections() -> dict[str, str]:
    """The section of the table, `reduction`, in which each operator stands."""
    lines = Path(library.table.path).read_text().splitlines()
    section_of, section = {}, ""
    starts = {entries[0].name.line: name for name, entries in library.table.entries.items()}
    for number, line in enumerate(lines, 1):
        if line.startswith("# ---- "):
            section = line.removeprefix("# ---- ").strip()
        if number in starts:
            section_of[starts[number]] = section
    return section_of


def card(name: str) -> Card:
    """The card of an operator of the shipped table. Raises AttributeError for an unknown name."""
    name = library.canonical(name)
    name = library.functional(name) or name
    if name not in library.table.entries:
        raise AttributeError(f"{library.table.path} has no operator {name!r}")
    rows = [*_names(name)]
    for rule in library.table.rules(name):
        rows.append(("signature", f"`{rule.schema.text}`"))
        rows += _derivatives(rule)
    return Card(public_path(name), library.table.doc(name) or "", rows)


def _names(name):
    others = [alias for alias, of in library.table.aliases.items() if of == name]
    if name in library.methods and not name.startswith(("_", *MODULES)):
        others.append(f"Tensor.{name}")
    if library.functional(f"{name}_") is not None:
        others.append(f"Tensor.{name}_")
    if others:
        yield "also", ", ".join(f"`{other}`" for other in others)


def _derivatives(rule):
    """The rows of one overload."""
    if rule.is_view:
        yield "memory", "a view, which shares the storage of its first argument"
    if not rule.is_recorded:
        yield "derivatives", "none: the result is not differentiable"
        return
    yield "node", f"`{rule.node}`"
    for names, formula in rule.gradients:
        yield f"gradient of {', '.join(names)}", quoted(formula)
    for output in rule.differentiable_outputs:
        tangent = rule.tangents.get(output)
        text = "the transpose of the gradient" if tangent is None else quoted(tangent)
        yield f"tangent of {output}", text
    saved = _saved(rule)
    yield "saved", ", ".join(f"`{name}`" for name in saved) or "nothing"
    yield "modes", _modes(rule)


def quoted(formula) -> str:
    """A formula between backquotes, or what its word means."""
    return f"`{formula.text}`" if isinstance(formula, Formula) else shown(formula)


def _saved(rule) -> list[str]:
    """The values that gradient formulas read and the forward pass therefore saves."""
    read = set().union(*(f.values for _, f in rule.gradients if isinstance(f, Formula)))
    if any(f == Word("auto") for _, f in rule.gradients):
        read.update(rule.tensor_arguments)
    known = [*rule.tensor_arguments, *rule.outputs, "result"]
    return [name for name in dict.fromkeys(known) if name in read]


def _modes(rule) -> str:
    refused = [
        name
        for names, formula in rule.gradients
        for name in names
        if isinstance(formula, Word) and formula.kind == "not_implemented"
    ]
    text = "reverse and forward, of any order, under vmap and jit"
    return f"{text}; the derivative by {', '.join(refused)} raises" if refused else text
