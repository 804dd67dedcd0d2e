"""Rounding or fault: how far the runs in single precision are from those in double precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .alignment import align
from .difference import Comparison, Difference
from .run import Record, Run, distance

EQUALLY = 4.0  # how many times as far as the other one a run may be
FAULT, ROUNDING, FARTHER, UNKNOWN = "fault", "rounding", "farther", "unknown"


@dataclass
class Conditioning:
    """What the runs in double precision say.

    verdict: FAULT, where the libraries differ in double precision too; ROUNDING, where both runs in
    single precision are equally far from their runs in double precision; FARTHER, where one of them
    is farther; UNKNOWN, where the runs cannot be compared. difference: that in double precision.
    distances: of the two libraries, single from double precision, at the record that differs.
    gradients: the largest of the gradients of parameters. between: the largest difference of the
    two libraries in double precision. is_same_place: whether the first difference is at one place
    in both precisions.
    """

    verdict: str
    difference: Difference | None
    distances: list
    gradients: list
    between: float
    is_same_place: bool = False


def judge(single: Comparison, double: Comparison) -> Conditioning:
    """Compare two comparisons, in single and in double precision."""
    singles, doubles = (single.first, single.second), (double.first, double.second)
    gaps = [Gaps(*runs) for runs in zip(singles, doubles, strict=True)]
    gradients = [gap.largest("parameter gradient", single.noise) for gap in gaps]
    distances = distances_at(single.difference, gaps)
    verdict = FAULT if double.difference else verdict_of(single.difference, distances)
    places = [c.difference and c.difference.place for c in (single, double)]
    same = places[0] is not None and places[0] == places[1]
    return Conditioning(verdict, double.difference, distances, gradients, double.largest, same)


def verdict_of(difference, distances) -> str:
    if difference is None:
        return ROUNDING
    if None in distances:
        return UNKNOWN
    low, high = sorted(distances)
    return ROUNDING if high <= EQUALLY * low else FARTHER


def distances_at(difference, gaps) -> list:
    if difference is None or difference.pair.first is None or difference.pair.second is None:
        return [None, None]
    records = difference.pair.first, difference.pair.second
    return [gap.at(record) for gap, record in zip(gaps, records, strict=True)]


class Gaps:
    """The relative differences of a run in single precision from one in double precision."""

    def __init__(self, single: Run, double: Run):
        self.by_number = {}
        for pair in align(single, double):
            if pair.first is not None and pair.second is not None:
                self.by_number[pair.first.number] = pair.first, self.gap(single, double, pair)

    def gap(self, single, double, pair) -> float:
        return max(
            (
                relative(single.summaries.get(one), double.summaries.get(other))
                for one, other in zip(pair.first.outputs, pair.second.outputs, strict=False)
            ),
            default=0.0,
        )

    def at(self, record: Record) -> float | None:
        return self.by_number.get(record.number, (None, None))[1]

    def largest(self, kind: str, without) -> float | None:
        """The largest gap of records of a kind, but for those with certain names."""
        pairs = self.by_number.values()
        gaps = [gap for record, gap in pairs if record.kind == kind and record.name not in without]
        return max((gap for gap in gaps if math.isfinite(gap)), default=None)


def relative(first, second) -> float:
    if first is None or second is None:
        return 0.0
    norm = max(first["norm"], second["norm"])
    return distance(first, second) / norm if norm else 0.0
