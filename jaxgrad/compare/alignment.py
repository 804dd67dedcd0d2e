"""Which record of one run is which of the other."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass

from .run import Record, Run

WINDOW = 400  # records that are looked through for one that both runs have


@dataclass
class Pair:
    """The same call in two runs; None where a run lacks it."""

    first: Record | None
    second: Record | None

    @property
    def either(self) -> Record:
        return self.first or self.second


def key(record: Record):
    """What two records have in common if they are of the same call."""
    shapes = [shape[1:] for shape in record.shapes]
    path = record.fields.get("path")
    if record.kind in ("call", "module", "compiled", "batch"):
        return record.kind, path or record.name, record.line, str(shapes)
    return record.kind, record.name


def align(first: Run, second: Run) -> list[Pair]:
    """The pairs of two runs, and the records that one of them lacks, in the order of the runs."""
    pairs = []
    parts = [by_step(first.records), by_step(second.records)]
    for step in sorted({*parts[0], *parts[1]}):
        pairs += align_step(parts[0].get(step, []), parts[1].get(step, []))
    return with_gradients(pairs, first, second)


def by_step(records) -> dict:
    parts = defaultdict(list)
    for record in records:
        parts[record.step].append(record)
    return parts


def align_step(first: list, second: list) -> list[Pair]:
    """The pairs of one training step: where the runs part, up to the nearest call of both."""
    keys = [[key(record) for record in records] for records in (first, second)]
    pairs, i, j = [], 0, 0
    while i < len(first) or j < len(second):
        if i < len(first) and j < len(second) and keys[0][i] == keys[1][j]:
            pairs.append(Pair(first[i], second[j]))
            i, j = i + 1, j + 1
            continue
        ahead, behind = nearest(keys[0][i : i + WINDOW], keys[1][j : j + WINDOW])
        pairs += loosely(first[i : i + ahead], second[j : j + behind])
        i, j = i + ahead, j + behind
    return pairs


def nearest(first: list, second: list):
    """How many keys to leave out of two lists, so that both go on with the same key."""
    places: dict = {}
    for position, item in enumerate(second):
        places.setdefault(item, position)
    known = [(i + places[item], i) for i, item in enumerate(first) if item in places]
    if not known:
        return len(first), len(second)
    total, ahead = min(known)
    return ahead, total - ahead


def loosely(first: list, second: list) -> list[Pair]:
    """Pairs of what has one line, by the same name or else the same shapes; then the others."""
    rest, pairs = list(second), []
    for record in first:
        partner = next(filter(None, (candidate(record, rest, by) for by in (name, shapes))), None)
        if partner is not None:
            rest.remove(partner)
        pairs.append(Pair(record, partner))
    pairs += [Pair(None, record) for record in rest]
    return sorted(pairs, key=lambda pair: position(pair, first, second))


def candidate(record, others, quality):
    for other in others:
        is_near = (record.kind, record.line) == (other.kind, other.line)
        if is_near and quality(record) == quality(other):
            return other
    return None


def name(record):
    return record.name


def shapes(record):
    return [shape[1:] for shape in record.shapes] or record.name


def position(pair, first, second):
    """How far a pair is from the beginning of a part that the runs do not have in common."""
    if pair.first is not None:
        return first.index(pair.first), 0
    return second.index(pair.second), 1


def with_gradients(pairs, first, second):
    """The pairs and those of the gradients of results, in the order of the first run."""
    partners = {p.first.number: p.second.number for p in pairs if p.first and p.second}
    gradients = [numbered(first.gradients), numbered(second.gradients)]
    matched = []
    for (of, position, times), record in gradients[0].items():
        other = gradients[1].get((partners.get(of), position, times))
        if other is not None:
            matched.append(Pair(record, other))
    ordered, last = [], 0
    for pair in pairs:  # a record that only the second run has stays behind its neighbour
        last = pair.first.number if pair.first else last
        ordered.append((last, pair))
    ordered += [(pair.first.number, pair) for pair in matched]
    return [pair for _, pair in sorted(ordered, key=lambda item: item[0])]


def numbered(gradients) -> dict:
    """Gradients by the record and position of the result that they belong to, and their turn."""
    counts: dict = defaultdict(itertools.count)
    keyed = {}
    for record in gradients:
        result = record.fields["of"], record.fields["position"]
        keyed[(*result, next(counts[result]))] = record
    return keyed
