"""The table of a summary, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .. import html
from .summary_rows import Layer

MISSING = "--"


class Settings(NamedTuple):
    """How a summary is shown, see `summary`."""

    depth: int
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    width: int
    has_parameters: bool


class Shown(NamedTuple):
    """A row of the table, and whether the rows inside of it are left out."""

    layer: Layer
    is_cut: bool
    total: int

    @property
    def params(self) -> int:
        return self.layer.num_params if self.is_cut else self.layer.own_params

    @property
    def trainable(self) -> int:
        return self.layer.trainable_params if self.is_cut else self.layer.own_trainable


def _num_params(row: Shown) -> str:
    if row.layer.is_recursive:
        return "(recursive)" if row.layer.has_parameters else MISSING
    if not row.params:
        return "(shared)" if row.layer.parameters else MISSING
    return f"{row.params:,}" if row.trainable else f"({row.params:,})"


def _percent(row: Shown) -> str:
    return f"{row.params / row.total:.2%}" if row.params else MISSING


def _kernel_size(row: Shown) -> str:
    size = row.layer.kernel_size
    if size is None:
        return MISSING
    return str(list(size) if isinstance(size, tuple) else size)


def _mult_adds(row: Shown) -> str:
    count = row.layer.mult_adds if row.is_cut else row.layer.own_mult_adds
    return f"{count:,}" if count else MISSING


def _trainable(row: Shown) -> str:
    every, trainable = row.layer.num_params, row.layer.trainable_params
    if not every:
        return MISSING
    return "Partial" if 0 < trainable < every else str(trainable == every)


def _time(row: Shown) -> str:
    return MISSING if row.layer.time is None else f"{row.layer.time * 1e3:.3f}"


def _size(size) -> str:
    return MISSING if size is None else str(size)


class Column(NamedTuple):
    """A column: its title, the value that it shows of a row, and whether it needs a
    forward pass.
    """

    title: str
    shown: Callable[[Shown], str]
    needs_input: bool = False
    is_number: bool = False


COLUMNS = {
    "input_size": Column("Input Shape", lambda row: _size(row.layer.input_size), True),
    "output_size": Column("Output Shape", lambda row: _size(row.layer.output_size), True),
    "num_params": Column("Param #", _num_params, is_number=True),
    "params_percent": Column("Param %", _percent, is_number=True),
    "kernel_size": Column("Kernel Shape", _kernel_size),
    "mult_adds": Column("Mult-Adds", _mult_adds, True, is_number=True),
    "trainable": Column("Trainable", _trainable),
    "time": Column("Time (ms)", _time, True, is_number=True),
}
ROW_SETTINGS = ("depth", "var_names", "ascii_only")


def shown_rows(layers: list[Layer], depth: int) -> Iterator[Shown]:
    """The rows to a depth."""
    total = sum(layer.own_params for layer in layers)
    for layer in layers:
        if layer.depth <= depth:
            yield Shown(layer, layer.is_leaf or layer.depth == depth, total)


def table(summary) -> tuple[list[str], list[list[str]]]:
    """The titles and the cells of a summary, without the indentation of the names."""
    settings = summary.settings
    columns = [COLUMNS[name] for name in settings.columns]
    rows = []
    for row in shown_rows(summary.layers, settings.depth):
        rows.append(
            [row.layer, _name(row.layer, settings), *(column.shown(row) for column in columns)]
        )
        for name, size in row.layer.parameters.items() if settings.has_parameters else ():
            cells = [size if key == "kernel_size" else "" for key in settings.columns]
            rows.append([(row.layer, name), name, *map(str, cells)])
    return [_title(settings), *(column.title for column in columns)], rows


def _title(settings) -> str:
    name = "type (var_name)" if "var_names" in settings.rows else "type"
    return f"Layer ({name}:depth-idx)" if "depth" in settings.rows else f"Layer ({name})"


def _name(layer: Layer, settings) -> str:
    text = layer.type_name
    if "var_names" in settings.rows and layer.name:
        text += f" ({layer.name})"
    if "depth" in settings.rows and layer.depth:
        text += f": {layer.depth}-{layer.index}"
    return text


def _depth(key) -> int:
    return key.depth if isinstance(key, Layer) else key[0].depth + 1


def text(summary) -> str:
    """The summary as text."""
    titles, rows = table(summary)
    is_ascii = "ascii_only" in summary.settings.rows
    rows = [[_branch(_depth(key), is_ascii) + name, *cells] for key, name, *cells in rows]
    columns = zip(titles, *rows, strict=True)
    widths = [max(summary.settings.width, *map(len, column)) for column in columns]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (titles, *rows)]
    double = "=" * (sum(widths) + 2 * len(widths) - 2)
    parts = [double, lines[0], double, *lines[1:], double]
    for figures in summary.figures():
        parts += [*(f"{what}: {number}" for what, number in figures), double]
    return "\n".join(parts)


def _branch(depth: int, is_ascii: bool) -> str:
    if not depth:
        return ""
    bar, end, first = ("|", "+ ", "+ ") if is_ascii else ("│", "└─", "├─")
    return first if depth == 1 else f"{bar}    " * (depth - 1) + end


def as_html(summary) -> str:
    """The summary as HTML."""
    titles, rows = table(summary)
    rows = [
        [html.STEP * _depth(key) + name.replace(" ", html.SPACE), *cells]
        for key, name, *cells in rows
    ]
    columns = enumerate(summary.settings.columns, 1)
    numbers = [at for at, name in columns if COLUMNS[name].is_number]
    figures = [
        " \N{MIDDLE DOT} ".join(f"{what}: {number}" for what, number in group)
        for group in summary.figures()
    ]
    return "\n".join([html.table(titles, rows, numbers), *map(html.line, figures)])
