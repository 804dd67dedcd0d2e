"""The measurements of a `Timer`."""

from __future__ import annotations

import math
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


def unit_to_english(u: str) -> str:
    """The name of a unit of time.

    >>> jaxgrad.utils.benchmark.unit_to_english("us")
    'microsecond'
    """
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to n significant digits.

    >>> jaxgrad.utils.benchmark.trim_sigfig(123456.0, 3)
    123000.0
    """
    if not x:
        return x
    place = n - math.ceil(math.log10(abs(x)))
    return float(round(x, place))


def ordered_unique(elements) -> list:
    """The elements without repetitions, in order.

    >>> jaxgrad.utils.benchmark.ordered_unique([3, 1, 3])
    [3, 1]
    """
    return list(dict.fromkeys(elements))


# how much the times of a measurement may vary: the range of their middle half over the median
CONFIDENCE = 0.1


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

    @property
    def as_row_name(self) -> str:
        """The sub_label, or the statement."""
        return self.sub_label or self.stmt or "[Unknown]"

    def meets_confidence(self, threshold: float = CONFIDENCE) -> bool:
        """Whether the middle half of the times lies within a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary by more than a tenth."""
        return not self.meets_confidence()

    @property
    def significant_figures(self) -> int:
        """How many digits of the median are sure: 95% of its normal distribution, by the middle
        half of the times, lies above an error of so many digits. A clock is right to 25 ns.
        """
        count = len(self.times)
        middle = sorted(self.times)[count // 4 : math.ceil(3 * count / 4)]
        error = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        return max(1, math.floor(-math.log10(max(error, 25e-9) / self.median)))

    @staticmethod
    def merge(measurements) -> list[Measurement]:
        """Join the measurements of one task, number of runs apart."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).append(measurement)
        return [
            Measurement(1, [time for part in parts for time in part.times], task)
            for task, parts in groups.items()
        ]

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
