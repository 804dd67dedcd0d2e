"""The measurements of a `Timer`."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from ...names.missing import missing_in

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which to show a time in seconds, and its seconds.

    >>> jaxgrad.utils.benchmark.select_unit(2e-5)
    ('us', 1e-06)
    """
    fitting = [unit for unit, seconds in UNITS.items() if seconds <= t]
    unit = fitting[-1] if fitting else "ns"
    return unit, UNITS[unit]


class TaskSpec(NamedTuple):
    """The measured statement.

    >>> jaxgrad.utils.benchmark.TaskSpec("x @ x", setup="x = jaxgrad.ones(2, 2)").title
    'x @ x'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        texts = (self.label or self.stmt, self.sub_label)
        return ": ".join(text for text in texts if text)


class Measurement:
    """Times of a statement. number_per_run: how often a block ran it; raw_times: the seconds of
    each block; task_spec: what it was.

    >>> task = jaxgrad.utils.benchmark.TaskSpec("x @ x", setup="x = jaxgrad.ones(2, 2)")
    >>> jaxgrad.utils.benchmark.Measurement(1000, [0.5, 1.0, 2.0], task).median
    0.001
    """

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata=None
    ):
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.task_spec, self.metadata = task_spec, metadata

    @property
    def times(self) -> list[float]:
        """The seconds of a run, on average in each block."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times, in seconds."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times, in seconds."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The range of the middle half of the times, in seconds."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    def __getattr__(self, name):
        if name in TaskSpec._fields or name == "title":
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    def __repr__(self):
        unit, seconds = select_unit(self.median)
        lines = [f"{self.title}", *([self.description] if self.description else [])]
        if len(self.times) == 1:
            lines += [f"  {self.median / seconds:.2f} {unit}", "  1 measurement"]
        else:
            lines += [f"  Median: {self.median / seconds:.2f} {unit}"]
            lines += [f"  IQR:    {self.iqr / seconds:.2f} {unit}"]
            lines += [f"  {len(self.times)} measurements"]
        return "\n".join([*lines, f"  {self.number_per_run} runs per measurement"])


__getattr__ = missing_in(__name__)
