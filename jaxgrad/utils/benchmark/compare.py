"""Tables of measurements side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from ...names.missing import missing_in
from .measurement import Measurement, select_unit, trim_sigfig

BEST, GOOD, VERY_BAD, BAD, END = "\033[92m", "\033[34m", "\033[91m", "\033[2m\033[91m", "\033[0m"
LONG_UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


class Compare:
    """Measurements in tables: one table for each label, a row for each sub_label and environment, a
    column for each description. Measurements of one place are merged.

    results: measurements of a `Timer`.

    >>> from jaxgrad.utils.benchmark import Compare, Measurement, TaskSpec
    >>> task = TaskSpec("x", "", label="sum", sub_label="small", description="eager")
    >>> other = TaskSpec("y", "", label="sum", sub_label="small", description="compiled")
    >>> print(Compare([Measurement(1, [2e-6], task), Measurement(1, [1e-6], other)]))
    [------------- sum --------------]
                 |  eager  |  compiled
    1 threads: -----------------------
          small  |   2.0   |    1.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: Iterable[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trims, self._colors, self._warns = False, None, False

    def extend_results(self, results: Iterable[Measurement]):
        """Add measurements. Raises ValueError for anything else."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)}")
        self._results += results

    def trim_significant_figures(self):
        """Show as many digits as the measurements are sure of."""
        self._trims = True

    def colorize(self, rowwise: bool = False):
        """Color the times by how they compare with the least: of their column, or of their row."""
        self._colors = "rows" if rowwise else "columns"

    def highlight_warnings(self):
        """Mark with (! %) the times of measurements that vary."""
        self._warns = True

    def print(self):
        """Print the tables."""
        print(self)

    def __str__(self):
        merged = Measurement.merge(self._results)
        labels = dict.fromkeys(result.label for result in merged)
        return "\n".join(
            self._table(label, [result for result in merged if result.label == label])
            for label in labels
        )

    def _table(self, label, results):
        unit, seconds = select_unit(min(result.median for result in results))
        columns = list(dict.fromkeys(result.description for result in results))
        cells = {(r.num_threads, r.as_row_name, r.env, r.description): r for r in results}
        rows = list(dict.fromkeys(place[:3] for place in cells))
        grid = [[cells.get((*row, column)) for column in columns] for row in rows]
        texts = [[self._text(cell, seconds) for cell in line] for line in grid]
        shown = self._colored(grid, texts, columns)
        names = [f"      {'(' + env + ')  ' if env else ''}{name}" for _, name, env in rows]
        left = max(map(len, names))
        header = "".join(f"  |  {column or ''}" for column in columns)
        width = left + len(header)
        lines = [f"[{_centred(label or '', width - 2)}]", " " * left + header]
        for threads, group in itertools.groupby(range(len(rows)), lambda i: rows[i][0]):
            lines.append(f"{threads} threads: ".ljust(width, "-"))
            lines += [names[i].ljust(left) + "".join(f"  |  {x}" for x in shown[i]) for i in group]
        lines += ["", f"Times are in {LONG_UNITS[unit]} ({unit})."]
        if self._warns and any(result.has_warnings for result in results):
            lines.append("(! XX%) Measurement has high variance: IQR / median * 100 is XX.")
        return "\n".join([*(line.rstrip() for line in lines), ""])

    def _text(self, result, seconds):
        if result is None:
            return ""
        time = result.median / seconds
        digits = 1
        if self._trims:
            time = trim_sigfig(time, result.significant_figures)
            digits = max(0, result.significant_figures - 1 - math.floor(math.log10(time or 1)))
        warning = f" (! {result.iqr / result.median:.0%})" if result.has_warnings else ""
        return f"{time:.{digits}f}{warning if self._warns else ''}"

    def _colored(self, grid, texts, columns):
        """The texts in the width of their columns, with colors."""
        widths = [
            max(len(columns[j] or ""), *(len(line[j]) for line in texts))
            for j in range(len(columns))
        ]
        lines = [[x.center(width) for x, width in zip(line, widths, strict=True)] for line in texts]
        if self._colors is None:
            return lines
        groups = grid if self._colors == "rows" else list(zip(*grid, strict=True))
        for i, line in enumerate(grid):
            for j, cell in enumerate(line):
                group = groups[i if self._colors == "rows" else j]
                if cell is not None:
                    least = min(other.median for other in group if other is not None)
                    lines[i][j] = _color(cell.median / least) + lines[i][j] + END
        return lines


def _color(ratio: float) -> str:
    if ratio < 1.05:
        return BEST
    return GOOD if ratio < 1.25 else BAD if ratio < 4 else VERY_BAD


def _centred(text: str, width: int) -> str:
    return f" {text} ".center(width, "-")


__getattr__ = missing_in(__name__)
