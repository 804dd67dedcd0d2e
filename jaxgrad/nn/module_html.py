"""Modules as HTML, which notebooks show: a table of the layers and their parameters."""

from __future__ import annotations

from collections import Counter

from .. import html
from .parameter import is_lazy

# how many rows a table has, unless the first layers alone are more
MOST_ROWS = 60


def of_module(module) -> str:
    """The layers of a module, to the depth at which they make a table that can be read."""
    layers = [(path, layer) for path, layer in module.named_modules(remove_duplicate=False)]
    depth = _depth_of(layers)
    seen: set[int] = set()
    counts = {path: _count(layer, seen) for path, layer in layers}
    rows = []
    for path, layer in layers:
        level = _level(path)
        if level > depth:
            continue
        inside = [p for p, _ in layers if level == depth and _is_inside(p, path)]
        count = sum(counts[p][0] for p in (path, *inside))
        name = html.STEP * level + (f"{path.rpartition('.')[2]}:{html.SPACE}" if path else "")
        shapes = ", ".join(f"{parameter} {shape}" for parameter, shape in _shapes(layer))
        rows.append([name + layer._get_name(), layer.extra_repr(), shapes, count or ""])
    more = len(layers) - len(rows)
    total, trainable = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    text = f"{total:,} parameters"
    text += f", {trainable:,} of them trainable" if trainable < total else ""
    text += f"; {more} more modules inside of these" if more else ""
    table = html.table(("layer", "settings", "parameters", "number"), rows, numbers=[3])
    return f"{table}\n{html.line(text)}"


def _level(path: str) -> int:
    return path.count(".") + 1 if path else 0


def _is_inside(path: str, other: str) -> bool:
    return path != other and (not other or path.startswith(f"{other}."))


def _depth_of(layers) -> int:
    """The depth to which layers are shown."""
    counts, depth = Counter(_level(path) for path, _ in layers), 1
    while counts[depth + 1] and sum(counts[n] for n in range(depth + 2)) <= MOST_ROWS:
        depth += 1
    return depth


def _count(module, seen) -> tuple[int, int]:
    """How many elements the module's own parameters have that are not seen yet, and how many of
    these are trained.
    """
    total = trainable = 0
    for parameter in module._parameters.values():
        if parameter is None or is_lazy(parameter) or id(parameter) in seen:
            continue
        seen.add(id(parameter))
        total += parameter.numel()
        trainable += parameter.numel() if parameter.requires_grad else 0
    return total, trainable


def _shapes(module):
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield name, "?" if is_lazy(parameter) else list(parameter.shape)
