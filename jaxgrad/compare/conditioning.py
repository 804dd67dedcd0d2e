"""Rounding or fault: how far the runs in single precision are from those in double precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .alignment import align
from .difference import Comparison, Difference
from .run import Record, Run, distance

EQUALLY = 4.0  # how many times as far as the other one a run may be
JUMPS = 4  # in so many parts of a sketch elements may lie on the other side of a jump
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
    in both precisions. has_jumps: whether the runs are equally far but for a few elements, which
    lie at a jump, such as that of the derivative of relu, so that a rounding decides their side.
    """

    verdict: str
    difference: Difference | None
    distances: list
    gradients: list
    between: float
    is_same_place: bool = False
    has_jumps: bool = False


def judge(single: Comparison, double: Comparison) -> Conditioning:
    """Compare two comparisons, in single and in double precision."""
    singles, doubles = (single.first, single.second), (double.first, double.second)
    gaps = [Gaps(*runs) for runs in zip(singles, doubles, strict=True)]
    gradients = [gap.largest("parameter gradient", single.noise) for gap in gaps]
    distances = distances_at(single.difference, gaps)
    verdict = FAULT if double.difference else verdict_of(single.difference, distances)
    jumps = jumps_of(single) if verdict == FARTHER else []
    has_jumps = bool(jumps) and is_rounding(distances_at(single.difference, gaps, jumps))
    verdict = ROUNDING if has_jumps else verdict
    places = [c.difference and c.difference.place for c in (single, double)]
    same = places[0] is not None and places[0] == places[1]
    between = double.difference, distances, gradients, double.largest
    return Conditioning(verdict, *between, same, has_jumps)


def verdict_of(difference, distances) -> str:
    if difference is None:
        return ROUNDING
    if None in distances:
        return UNKNOWN
    return ROUNDING if is_rounding(distances) else FARTHER


def is_rounding(distances) -> bool:
    low, high = sorted(distances)
    return high <= EQUALLY * low


def jumps_of(comparison: Comparison) -> list:
    """The parts of sketches in which the first difference lies; empty if these are many."""
    pair = comparison.difference.pair
    (first, *_), (second, *_) = pair.first.outputs, pair.second.outputs
    summaries = comparison.first.summaries.get(first), comparison.second.summaries.get(second)
    if None in summaries or not math.isfinite(distance(*summaries)):
        return []
    if math.prod(summaries[0]["shape"]) <= len(summaries[0]["sketch"]):
        return []  # few elements: each has a part of its own
    squares = np.subtract(*(summary["sketch"] for summary in summaries)) ** 2
    largest = np.argsort(squares)[-JUMPS:]
    return largest.tolist() if squares[largest].sum() >= 0.9 * squares.sum() else []


def distances_at(difference, gaps, without=()) -> list:
    """The distances at a difference, without some parts of the sketches."""
    if difference is None or difference.pair.first is None or difference.pair.second is None:
        return [None, None]
    records = difference.pair.first, difference.pair.second
    return [gap.at(record, without) for gap, record in zip(gaps, records, strict=True)]


class Gaps:
    """The relative differences of a run in single precision from one in double precision."""

    def __init__(self, single: Run, double: Run):
        self.single, self.double = single.summaries, double.summaries
        self.pairs = {
            pair.first.number: pair
            for pair in align(single, double)
            if pair.first is not None and pair.second is not None
        }

    def gap(self, pair, without=()) -> float:
        outputs = zip(pair.first.outputs, pair.second.outputs, strict=False)
        both = ((self.single.get(one), self.double.get(other)) for one, other in outputs)
        return max((relative(*summaries, without) for summaries in both), default=0.0)

    def at(self, record: Record, without=()) -> float | None:
        pair = self.pairs.get(record.number)
        return None if pair is None else self.gap(pair, without)

    def largest(self, kind: str, without) -> float | None:
        """The largest gap of records of a kind, but for those with certain names."""
        pairs = [pair for pair in self.pairs.values() if pair.first.kind == kind]
        gaps = [self.gap(pair) for pair in pairs if pair.first.name not in without]
        return max((gap for gap in gaps if math.isfinite(gap)), default=None)


def relative(first, second, without=()) -> float:
    """The distance of two tensors by their norm; without: parts of sketches that do not count."""
    if first is None or second is None:
        return 0.0
    norm = max(first["norm"], second["norm"])
    if without:
        first, second = (rest(summary, without) for summary in (first, second))
    return distance(first, second) / norm if norm else 0.0


def rest(summary: dict, without) -> dict:
    return {**summary, "sketch": np.delete(summary["sketch"], without).tolist()}
