"""The first place where two runs differ beyond rounding."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from .alignment import Pair, align
from .run import Record, Run, distance

# by dtype: the relative difference that is rounding, if no other is asked for, and the unit of
# rounding
TOLERANCES = {"float64": 1e-8, "float32": 1e-4, "float16": 3e-2, "bfloat16": 1e-1}
TOLERANCES |= {"complex128": 1e-8, "complex64": 1e-4}
EPSILONS = {"float64": 2.2e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.8e-3}
UPDATE = 4.0  # an optimizer changes an element by at most so many times the learning rate
ROUNDINGS = 32  # of the largest input, which a result that almost cancels may be off by


@dataclass
class Difference:
    """A pair of records that differ.

    pair: what differs. inputs, outputs: the relative differences of the tensors. sources: the calls
    that only one run has and that made the tensor, the last one first. users: for a gradient, the
    calls whose derivative it is.
    """

    pair: Pair
    inputs: list
    outputs: list
    sources: list = field(default_factory=list)
    users: list = field(default_factory=list)

    @property
    def place(self):
        """The file, line and function that are to be looked at."""
        if self.sources:
            return self.sources[0].either.place
        if self.users:
            return self.users[0].place
        return self.pair.either.place


class Comparison:
    """The comparison of two runs.

    first, second: the runs. tolerance: the relative difference that is rounding, of float32; that
    of other dtypes follows. `difference` is the first Difference, or None. `noise` has the names of
    parameters whose gradients are rounding, in some elements or in all. `largest` is the largest
    relative difference of results.
    """

    def __init__(self, first: Run, second: Run, tolerance: float | None = None):
        self.first, self.second = first, second
        self.factor = 1.0 if tolerance is None else tolerance / TOLERANCES["float32"]
        self.pairs = align(first, second)
        self.makers = [makers(first.records), makers(second.records)]
        alone = [pair for pair in self.pairs if not (pair.first and pair.second)]
        self.unmatched = [{id(p.first) for p in alone}, {id(p.second) for p in alone}]
        self.scales = gradient_scales(self.pairs, first)
        self.noisy: set = set()  # hashes of the first run
        self.noise: set = set()  # names of parameters
        self.small: dict = {}  # how many elements of their gradients are rounding
        self.largest, self.compared = 0.0, 0
        self.coarsest = 0.0  # the tolerance of the least precise dtype of any result so far
        self.difference = self.find()

    # ---- tolerances

    def relative(self, first: str | None, second: str | None) -> float:
        """The relative difference of two tensors by their hashes."""
        if first == second or first is None or second is None:
            return 0.0
        summaries = self.first.summaries.get(first), self.second.summaries.get(second)
        if None in summaries:
            return 0.0
        gap = distance(*summaries)
        norm = max(summary["norm"] for summary in summaries)
        return gap / norm if norm else (math.inf if gap else 0.0)

    def tolerance(self, digest) -> float:
        summary = self.first.summaries.get(digest)
        dtype = summary["dtype"] if summary else "float32"
        return TOLERANCES.get(dtype, 0.0) * self.factor

    def is_equal(self, first, second, scale=0.0, least=0.0) -> bool:
        """Whether two tensors are equal up to rounding.

        scale: the norm of the numbers behind them; a few units in its last place are rounding.
        least: a relative difference that is rounding whatever the dtype.
        """
        relative = self.relative(first, second)
        if relative <= max(self.tolerance(first), least):
            return True
        summary = self.first.summaries[first]
        allowed = ROUNDINGS * EPSILONS.get(summary["dtype"], 0.0) * scale
        return relative * max(summary["norm"], 1e-300) <= allowed

    def norm(self, digest) -> float:
        summary = self.first.summaries.get(digest)
        return summary["norm"] if summary else 0.0

    # ---- the search

    def find(self) -> Difference | None:
        for pair in self.pairs:
            if not (pair.first and pair.second):
                if pair.either.kind == "initial parameter":
                    return Difference(pair, [], [math.inf])
                continue
            self.compared += 1
            difference = self.difference_of(pair)
            if difference is not None:
                return difference
        return None

    def difference_of(self, pair: Pair) -> Difference | None:
        record, other = pair.first, pair.second
        if record.kind == "options":
            return None if same_options(record, other) else Difference(pair, [], [math.inf])
        inputs = zipped(record.inputs, other.inputs)
        outputs = zipped(record.outputs, other.outputs)
        scale = self.scale_of(record)
        gaps = [self.relative(*both) for both in outputs]
        least = self.inherited(inputs, outputs)
        different = [both for both in outputs if not self.is_equal(*both, scale, least)]
        if not different:
            small = zip(gaps, outputs, strict=True)
            small = [gap for gap, both in small if gap <= max(self.tolerance(both[0]), least)]
            self.largest = max([self.largest, *small])
            self.note_noise(pair, outputs, least)
            return None
        if self.is_excused(pair, inputs):
            self.noisy.update(both[0] for both in different)
            return None
        return self.explained(pair, inputs, gaps)

    def inherited(self, inputs, outputs) -> float:
        """The relative difference that results of floating point have from roundings before them:
        that of the least precise dtype, unless the inputs are equal in that of the results.
        """
        tolerances = [self.tolerance(first) for first, _ in outputs]
        self.coarsest = max([self.coarsest, *tolerances])
        if not all(tolerances):
            return 0.0
        limit = min(tolerances, default=0.0)
        is_own = inputs and all(self.relative(*both) <= limit for both in inputs)
        return 0.0 if is_own else self.coarsest

    def scale_of(self, record: Record) -> float:
        if record.kind in ("gradient", "parameter gradient"):
            return self.scales.get(record.step, 0.0)
        return max([self.norm(digest) for digest in record.inputs], default=0.0)

    def note_noise(self, pair, outputs, least):
        """Note a parameter whose gradient differs by all of it, and is rounding beside others."""
        if pair.first.kind != "parameter gradient":
            return
        self.small[pair.first.name] = pair.first.fields.get("small", 0)
        if any(self.relative(*both) > max(self.tolerance(both[0]), least) for both in outputs):
            self.noise.add(pair.first.name)

    def is_excused(self, pair, inputs) -> bool:
        """Whether a difference follows from gradients that are rounding and nothing else."""
        if pair.first.kind == "updated parameter":
            if self.gap(pair) <= self.largest_update(pair.first):
                self.noise.add(pair.first.name)
            return pair.first.name in self.noise
        # a state that is loaded may have such a parameter
        tensors = [*inputs, *zipped(pair.first.outputs, pair.second.outputs)]
        return any(both[0] in self.noisy for both in tensors)

    def gap(self, pair) -> float:
        (first,), (second,) = pair.first.outputs, pair.second.outputs
        return distance(self.first.summaries.get(first), self.second.summaries.get(second))

    def largest_update(self, record: Record) -> float:
        """The norm of what an optimizer that divides gradients by their sizes makes of elements
        that are rounding.
        """
        small = self.small.get(record.name, 0)
        return UPDATE * record.fields.get("rate", 0.0) * math.sqrt(small)

    def explained(self, pair, inputs, gaps) -> Difference:
        difference = Difference(pair, [self.relative(*both) for both in inputs], gaps)
        if len(pair.first.inputs) != len(pair.second.inputs):
            difference.inputs.append(math.inf)
        if pair.first.kind == "gradient":
            difference.users = self.users_of(pair.first)
            return difference
        unequal = [both for both in inputs if not self.is_equal(*both)]
        # a module may give what one of its calls has given
        results = zip(pair.first.outputs, pair.second.outputs, strict=False)
        tensors = unequal or [both for both in results if both[0] != both[1]]
        sources = (self.sources_of(pair, both) for both in tensors)
        difference.sources = next(filter(None, sources), [])
        return difference

    def sources_of(self, pair, both) -> list[Pair]:
        """The calls that a tensor comes from and that the other run does not have, the last one
        first.
        """
        sources = []
        for side, digest in enumerate(both):
            record = (pair.first, pair.second)[side]
            calls = [c for c in self.makers[side].get(digest, []) if c.number < record.number]
            if calls and id(calls[-1]) in self.unmatched[side]:
                source = Pair(None, calls[-1]) if side else Pair(calls[-1], None)
                sources.append((record.number - calls[-1].number, side, source))
        return [source for *_, source in sorted(sources)]

    def users_of(self, gradient: Record) -> list:
        """The calls that take the result whose gradient it is."""
        (record,) = (r for r in self.first.records if r.number == gradient.fields["of"])
        digest = record.outputs[gradient.fields["position"]]
        return [
            user
            for user in self.first.records
            if record.number < user.number < gradient.number
            and digest in user.inputs
            and user.kind != "loss"
        ]


def zipped(first: list, second: list) -> list:
    return list(zip(first, second, strict=False))


def makers(records) -> dict:
    """The records by the hashes of their results."""
    table = defaultdict(list)
    for record in records:
        if record.kind in ("call", "module", "compiled", "batch"):
            for digest in record.outputs:
                table[digest].append(record)
    return table


def same_options(first: Record, second: Record) -> bool:
    """Whether the options of an optimizer that both libraries have are equal."""
    options = first.fields["settings"], second.fields["settings"]
    return all(
        same_value(options[0][name], options[1][name]) for name in {*options[0]} & {*options[1]}
    )


def same_value(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        return math.isclose(float(first), float(second), rel_tol=1e-6)
    except ValueError:
        return False


def gradient_scales(pairs, run: Run) -> dict:
    """The largest norm of the gradients of parameters, by training step."""
    scales: dict = defaultdict(float)
    for pair in pairs:
        record = pair.first
        if record is not None and record.kind == "parameter gradient":
            for digest in filter(None, record.outputs):
                norm = run.summaries[digest]["norm"]
                scales[record.step] = max(scales[record.step], norm)
    return scales
