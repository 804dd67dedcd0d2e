"""A stretch that the host runs, as one function of NumPy arrays.

A structure of calls that repeats becomes straight-line code (host/steps.py), which calls the
functions of the single programs in their order. A result that only this code reads is a local
variable of it.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby, islice
from typing import NamedTuple

from . import bounded_cache
from .host.cost import NEVER
from .host.steps import Step, function_of_steps
from .host_kernel import operands_of
from .host_values import HostValues, owned_apart


class Call(NamedTuple):
    """A call of a program. operands, results: the places of its values in the stretch."""

    program: object
    operands: list[int]
    results: list[int]

    def is_on_host(self) -> bool:
        """Whether the host makes it."""
        host = self.program.kernel.host
        return host is not None and host.serves()


class Routine:
    """The calls of a stretch in parts, one after another.

    places, references: as for `deferred.Whole`; unheld: the references to a result that nobody
    reads.
    """

    def __init__(self, programs, places, references, unheld: int):
        operands, results = iter(places[len(references) :]), iter(places)
        calls = [
            Call(program, _next(operands, program.inputs), _next(results, program.outputs))
            for program in programs
        ]
        self.parts = [
            Part([*group], references, unheld) for _, group in groupby(calls, Call.is_on_host)
        ]
        steps = sum(part.steps for part in self.parts)
        self.weight = bounded_cache.Weight(bounded_cache.ENTRY.number, 5e3 + 1e3 * steps)


class Part:
    """Calls that follow one another, all of them on the host, or none.

    calls: how many; steps: of its function; places, results: of the operands and of the results;
    counted: the hosts that count their calls, and how many of these calls are here; is_outdated:
    whether XLA has taken over a call that the host made before.
    """

    def __init__(self, calls: list[Call], references, unheld: int):
        self.calls, self.steps, self.function, self.is_outdated = len(calls), 0, None, False
        if len(calls) == 1 or not calls[0].is_on_host():
            return
        uses = Counter([place for call in calls for place in call.operands])
        forms = {}
        for call in calls:
            forms.update(zip(call.results, call.program.kernel.host.block.outputs, strict=True))
        # what another part reads has one more reference
        self.results = [place for place in forms if references[place] > uses[place] + unheld]
        self.dtypes = [forms[place].dtype for place in self.results]
        inputs, known, steps, wanted = _joined(calls, forms.keys(), self.results)
        self.places = [place for place, _ in inputs]
        self.dtypes_of_inputs = [dtype for _, dtype in inputs]
        self.steps, self.function = len(steps), _function(len(inputs), known, steps, wanted)
        times = Counter([call.program.kernel.host for call in calls])
        self.counted = [(host, count) for host, count in times.items() if host.turns[0] < NEVER]

    def computed(self, values) -> list[HostValues] | None:
        """The values of its results, from those of the stretch; None if the calls must run one by
        one.
        """
        if self.function is None:
            return None
        for host, times in self.counted:
            if not host.counts(times):
                self.is_outdated = True
                return None
        # another thread, whose results are not there yet, may wait for those of this one
        read = map(values.__getitem__, self.places)
        operands = operands_of(read, self.dtypes_of_inputs, waits=False)
        if operands is None:
            return None
        return [*map(HostValues, owned_apart(self.function(*operands), self.dtypes))]


def _next(places, expected) -> list[int]:
    return [*islice(places, len(expected))]


# A block of more steps stays a function of its own: to compile code takes 20 us for each step, and
# a call 0.2.
FEW = 2


def _steps_of(block) -> tuple[dict, list[Step], list[int]]:
    """`block.steps`, or one step that calls the function of all."""
    if len(block.steps[1]) <= FEW:
        return block.steps
    count = len(block.inputs)
    results = range(count, count + len(block.outputs))
    return {}, [Step(block.function, [*range(count)], results, block.outputs)], [*results]


def _joined(calls: list[Call], inner, wanted):
    """The inputs of the blocks of calls, what they know, their steps, and the numbers of wanted
    results. Inputs, which are not `inner` results, have the first numbers.
    """
    inputs: dict[tuple, int] = {}
    for call in calls:
        for place, dtype in zip(call.operands, call.program.kernel.host.dtypes, strict=True):
            if place not in inner:
                inputs.setdefault((place, dtype), len(inputs))
    numbers, known, joined, count = {}, {}, [], len(inputs)
    for call in calls:
        block = call.program.kernel.host.block
        read = [
            numbers[place] if place in inner else inputs[place, dtype]
            for place, dtype in zip(call.operands, call.program.kernel.host.dtypes, strict=True)
        ]
        place_of = dict(enumerate(read))
        constants, steps, outputs = _steps_of(block)
        for number, value in constants.items():
            place_of[number] = count
            known[count] = value
            count += 1
        for function, operands, results, forms in steps:
            new = range(count, count + len(results))
            place_of.update(zip(results, new, strict=True))
            joined.append(Step(function, [place_of[number] for number in operands], new, forms))
            count += len(results)
        numbers.update(zip(call.results, [place_of[number] for number in outputs], strict=True))
    return [*inputs], known, joined, [numbers[place] for place in wanted]


def _function(inputs: int, known, steps, wanted):
    """The function of those steps that a wanted value depends on."""
    used, needed = set(wanted), []
    for step in reversed(steps):
        if not used.isdisjoint(step.results):
            used.update(step.operands)
            needed.append(step)
    known = {place: value for place, value in known.items() if place in used}
    return function_of_steps(inputs, known, needed[::-1], wanted)
