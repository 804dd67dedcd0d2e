"""`autograd.graph.memory_report`: the bytes that a recorded graph keeps for its backward pass."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

import jax

from ...tape.node import AccumulateGrad
from .graph_reader import kept_by, nodes_of, place_of, roots_of, short, shown_bytes

# of a longer table so many rows are printed; all are there in `rows` and `lines`
MOST_ROWS = 40


class Row(NamedTuple):
    """What a node keeps. bytes: of the buffers that no earlier node keeps; shared: of the others;
    saved: what they are; place: the source line, None if it was not noted.
    """

    name: str
    place: str | None
    saved: tuple[str, ...]
    bytes: int
    shared: int


class MemoryReport:
    """The memory that a graph keeps; printing it gives a table, and notebooks show one.

    total: bytes, each buffer once; of_leaves: how many of them are leaves' own values, which are
    there anyway; rows: for each operator, in the order in which they ran; lines: for each source
    line its bytes; devices: the bytes on each; xla: what XLA says, see `memory_report`.
    """

    def __init__(self, rows, of_leaves, devices, xla):
        self.rows: list[Row] = rows
        self.of_leaves: int = of_leaves
        self.devices: dict[str, int] = devices
        self.xla: dict[str, int] = xla

    @property
    def total(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def lines(self) -> dict[str, int]:
        found = {}
        for row in self.rows:
            place = row.place or "unknown line"
            found[place] = found.get(place, 0) + row.bytes
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def table(self):
        """Its cells as text, by table: titles and rows."""
        operators = [
            (row.name, short(row.place or ""), row.bytes, row.shared, ", ".join(row.saved))
            for row in self.rows
            if row.saved
        ]
        lines = [(short(place), count) for place, count in self.lines.items() if count]
        yield ("operator", "line", "bytes", "shared", "saved"), operators
        if any(row.place for row in self.rows):
            yield ("line", "bytes"), lines

    def figures(self):
        """Its sums, each with what it is."""
        yield "saved for the backward pass", self.total
        yield "of these, values of leaves", self.of_leaves
        if len(self.devices) > 1:
            yield from ((f"of these, on {device}", n) for device, n in self.devices.items())
        yield from ((f"XLA: {what}", count) for what, count in self.xla.items())

    def __str__(self):
        parts = [_printed(titles, rows) for titles, rows in self.table() if rows]
        width = max(len(what) for what, _ in self.figures())
        parts += ["\n".join(f"{what:{width}}  {_both(n)}" for what, n in self.figures())]
        return "\n\n".join(parts)

    def __repr__(self):
        return f"<memory report: {_both(self.total)} saved by {len(self.rows)} operators>"

    def _repr_html_(self):
        parts = []
        for titles, rows in [*self.table(), (("", "bytes"), list(self.figures()))]:
            cells = "".join(f"<th>{escape(title)}</th>" for title in titles)
            parts.append(f"<table><tr>{cells}</tr>")
            for row in rows:
                cells = "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row)
                parts.append(f"<tr>{cells}</tr>")
            parts.append("</table>")
        return "\n".join(parts)


def _cell(value):
    return f"{value:,}" if isinstance(value, int) else value


def _both(count):
    return f"{count:,} bytes" if count < 1000 else f"{count:,} bytes ({shown_bytes(count)})"


def _printed(titles, rows):
    """A table as text, numbers to the right."""
    more = len(rows) - MOST_ROWS
    cells = [titles, *([_cell(cell) for cell in row] for row in rows[:MOST_ROWS])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [bool(rows) and isinstance(cell, int) for cell in (rows[0] if rows else titles)]
    lines = []
    for row in cells:
        aligned = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def memory_report(tensor) -> MemoryReport:
    """How many bytes the graph of a tensor keeps for the backward pass: by operator, and by source
    line where lines were recorded (`record_lines`).

    tensor: a tensor that requires grad, a GradientEdge, a node, or several of them. A buffer that
    several operators have saved is counted for the first of them, and for the others as shared.
    What was freed counts nothing. What saved-tensor hooks have made of a tensor is counted where it
    has arrays, on whatever device they are.

    Beside it stands what XLA says of the whole process: `live arrays`, the bytes of all JAX arrays
    that are alive, and on devices that count (GPUs; CPUs do not) `in use` and `peak`. These
    include parameters, inputs and results. While a function is being compiled there are no buffers
    yet: the report then tells from shapes what the graph keeps, XLA decides what it will allocate,
    and `memory_analysis()` of the compiled function tells that.

    Raises RuntimeError for a tensor that has no graph, TypeError for what is no tensor.

    >>> x = jaxgrad.ones(1000, requires_grad=True)
    >>> y = (x.exp() * 2).sum()
    >>> jaxgrad.autograd.graph.memory_report(y)
    <memory report: 4,000 bytes (4 kB) saved by 3 operators>
    """
    nodes = nodes_of(roots_of(tensor))
    leaves = [node.variable for node in nodes if type(node) is AccumulateGrad]
    operators = [node for node in reversed(nodes) if type(node) is not AccumulateGrad]
    rows, seen = [], {}
    for node in operators:
        saved = kept_by(node)
        kept = {each.key: each for each in saved}
        fresh = [each for key, each in kept.items() if key not in seen]
        shared = [each for key, each in kept.items() if key in seen]
        seen |= kept
        sizes = [sum(each.bytes for each in several) for several in (fresh, shared)]
        rows.append(Row(node.name(), place_of(node), tuple(map(str, saved)), *sizes))
    values = {id(leaf._raw) for leaf in leaves}
    of_leaves = sum(each.bytes for each in seen.values() if id(each.array) in values)
    return MemoryReport(rows, of_leaves, _by_device(seen.values()), _xla(seen.values()))


def _by_device(kept):
    found = {}
    for each in kept:
        if each.device is not None:
            found[each.device] = found.get(each.device, 0) + each.bytes
    return found


def _xla(kept) -> dict[str, int]:
    """What XLA says of the memory of the process; nothing while the graph is being traced."""
    if any(isinstance(each.array, jax.core.Tracer) for each in kept):
        return {}
    found = {"live arrays": sum(a.nbytes for a in jax.live_arrays() if not a.is_deleted())}
    for device in jax.local_devices():
        statistics = device.memory_stats() or {}
        for name, what in (("bytes_in_use", "in use"), ("peak_bytes_in_use", "peak")):
            if name in statistics:
                found[f"{what} on {device}"] = statistics[name]
    return found
