"""`autograd.graph.memory_report`: the bytes that a recorded graph keeps for its backward pass."""

from __future__ import annotations

from typing import NamedTuple

import jax

from ... import html
from ...tape.node import AccumulateGrad
from .graph_reader import kept_by, nodes_of, place_of, roots_of, short, shown_bytes

# the largest number of rows that are printed; `rows` and `lines` have all
MOST_ROWS = 40
NUMBERS = ("bytes", "shared")  # the titles of columns of numbers


class Row(NamedTuple):
    """The memory that a node keeps.

    name: the name of the node.
    place: its source line, None if it was not noted.
    saved: descriptions of the saved arrays.
    bytes: the size of the buffers that no earlier node keeps.
    shared: the size of the others.
    """

    name: str
    place: str | None
    saved: tuple[str, ...]
    bytes: int
    shared: int


class MemoryReport:
    """The memory that a graph keeps; prints as a table, which notebooks show as HTML.

    total: the bytes of all buffers.
    of_leaves: the part of `total` that is the values of leaves, which exist in any case.
    rows: a `Row` for each operator, in the order in which they ran.
    lines: the bytes of each source line.
    devices: the bytes on each device.
    xla: the counts of XLA, see `memory_report`.
    """

    def __init__(self, rows, of_leaves, devices, xla):
        self.rows: list[Row] = rows
        self.of_leaves: int = of_leaves
        self.devices: dict[str, int] = devices
        self.xla: dict[str, int] = xla

    @property
    def total(self) -> int:
        """The bytes of all buffers."""
        return sum(row.bytes for row in self.rows)

    @property
    def lines(self) -> dict[str, int]:
        """The bytes of each source line, the largest first."""
        sizes = {}
        for row in self.rows:
            place = row.place or "unknown line"
            sizes[place] = sizes.get(place, 0) + row.bytes
        return dict(sorted(sizes.items(), key=lambda item: -item[1]))

    def table(self):
        """Yield the tables of the report, each as titles and rows."""
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
        """Yield the sums of the report, each with its description."""
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
        tables = [*self.table(), (("", "bytes"), list(self.figures()))]
        return "\n".join(
            html.table(titles, rows, [at for at, title in enumerate(titles) if title in NUMBERS])
            for titles, rows in tables
        )


def _cell(value):
    return f"{value:,}" if isinstance(value, int) else value


def _both(count):
    return f"{count:,} bytes" if count < 1000 else f"{count:,} bytes ({shown_bytes(count)})"


def _printed(titles, rows):
    """A table as text, with numbers aligned to the right."""
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
    """Count the bytes that the graph of a tensor keeps for the backward pass.

    The report has a row for each operator, and one for each source line if `record_lines` was on. A
    buffer that several operators have saved counts for the first; for the others it counts as
    shared. Freed values do not count. If a saved-tensor hook replaced a tensor, the arrays in its
    result count, on any device.

    The report also has XLA's counts for the whole process: `live arrays`, the bytes of all JAX
    arrays that are alive, and on devices with counters (GPUs, not CPUs) `in use` and `peak`. They
    include parameters, inputs and results. During a trace there are no buffers: the report then
    uses shapes, and `memory_analysis()` of the compiled function says what XLA allocates.

    tensor: a tensor that requires grad, a GradientEdge, a node, or a sequence of them.

    Raises RuntimeError for a tensor without a graph, TypeError for an object that is not a tensor.

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
        kept = {residual.key: residual for residual in saved}
        fresh = [residual for key, residual in kept.items() if key not in seen]
        shared = [residual for key, residual in kept.items() if key in seen]
        seen |= kept
        sizes = [sum(residual.bytes for residual in several) for several in (fresh, shared)]
        rows.append(Row(node.name(), place_of(node), tuple(map(str, saved)), *sizes))
    values = {id(leaf._array) for leaf in leaves}
    of_leaves = sum(residual.bytes for residual in seen.values() if id(residual.array) in values)
    return MemoryReport(rows, of_leaves, _by_device(seen.values()), _xla(seen.values()))


def _by_device(kept):
    sizes = {}
    for residual in kept:
        if residual.device is not None:
            sizes[residual.device] = sizes.get(residual.device, 0) + residual.bytes
    return sizes


def _xla(kept) -> dict[str, int]:
    """XLA's counts of the memory of the process; empty during a trace."""
    if any(isinstance(residual.array, jax.core.Tracer) for residual in kept):
        return {}
    counts = {"live arrays": sum(a.nbytes for a in jax.live_arrays() if not a.is_deleted())}
    for device in jax.local_devices():
        statistics = device.memory_stats() or {}
        for name, what in (("bytes_in_use", "in use"), ("peak_bytes_in_use", "peak")):
            if name in statistics:
                counts[f"{what} on {device}"] = statistics[name]
    return counts
