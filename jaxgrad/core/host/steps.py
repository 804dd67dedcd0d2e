"""Runs the steps of a block: by a loop at first, later by straight-line code in half the time. To
compile this code takes 20 us for each step, which some sixty calls save.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy

from .equation import Form

# after so many calls of a function its code is compiled
LOOPS = 64


class Step(NamedTuple):
    """A call of a function: the numbers of its operands, the range of those of its results, and the
    forms of these.
    """

    function: Callable
    operands: list[int]
    results: range
    forms: tuple[Form, ...]

    @property
    def is_ufunc(self) -> bool:
        """Whether it makes one new array, or writes into the array `out`."""
        return isinstance(self.function, numpy.ufunc) and self.function.nout == 1


def function_of_steps(inputs: int, known: dict, steps: list[Step], results):
    """The function that runs steps in order: from the arrays of the inputs, which have the numbers
    from 0 on, to a list of the values with the numbers in `results`.

    known: values by number.
    """
    calls, run = 0, _looped(known, steps, results)

    def function(*operands):
        nonlocal calls, run
        calls += 1
        if calls == LOOPS:
            run = _compiled(inputs, known, steps, results)
        return run(*operands)

    return function


def _looped(known: dict, steps: list[Step], results):
    """The function as a loop. It keeps no value longer than the steps need it."""
    last_uses = _last_uses([(step.operands, step.results) for step in steps], results, known)
    plan = [(*step[:3], ended) for step, ended in zip(steps, last_uses, strict=True)]

    def run(*operands):
        values = known | dict(enumerate(operands))
        for call, places, targets, ended in plan:
            arrays = call(*[values[place] for place in places])
            arrays = arrays if type(arrays) is list or len(targets) > 1 else (arrays,)
            values.update(zip(targets, arrays, strict=True))
            for place in ended:
                del values[place]
        return [values[place] for place in results]

    return run


def _compiled(inputs: int, known: dict, steps: list[Step], results):
    """The function as straight-line code."""
    places = _overwritten(steps, results)
    shape = tuple(
        [
            (tuple(step.operands), place, step.is_ufunc, step.results.start, len(step.results))
            for step, place in zip(steps, places, strict=True)
        ]
    )
    make = _maker(inputs, tuple(known), shape, tuple(results))
    return make([step.function for step in steps], [*known.values()])


def _overwritten(steps: list[Step], results) -> list[int | None]:
    """For each step the number of an operand whose array takes the result: an array of the result's
    form that NumPy has made here and that nothing else reads from then on. Arrays that functions
    other than ufuncs read do not count, since their results may be views.
    """
    last = {place: i for i, step in enumerate(steps) for place in step.operands}
    shared = {*results}
    for step in steps:
        shared.update(() if step.is_ufunc else step.operands)
    forms, places = {}, []
    for i, step in enumerate(steps):
        (form, *_), is_ufunc = step.forms, step.is_ufunc
        ending = (p for p in step.operands if last[p] == i and forms.get(p) == form)
        places.append(next(ending, None) if is_ufunc else None)
        if is_ufunc and form.shape and step.results[0] not in shared:
            forms[step.results[0]] = form
    return places


@functools.lru_cache(maxsize=1024)
def _maker(inputs, known, steps, results):
    """The function that makes it for steps of this structure, which many programs share."""
    calls = "".join(f"f{i}, " for i in range(len(steps)))
    values = "".join(f"v{place}, " for place in known)
    lines = ["def make(calls, known):"]
    lines += [f"    ({calls}) = calls"] if calls else []
    lines += [f"    ({values}) = known"] if values else []
    lines += [f"    def run({', '.join(f'v{i}' for i in range(inputs))}):"]
    last_uses = _last_uses([(s[0], range(s[3], s[3] + s[4])) for s in steps], results, known)
    for i, (operands, place, is_ufunc, first, count) in enumerate(steps):
        read = [f"v{operand}" for operand in operands]
        read += [] if place is None else [f"out=v{place}"]
        call = f"f{i}({', '.join(read)})"
        targets = [f"v{place}" for place in range(first, first + count)]
        if count == 1:
            lines += [f"        {targets[0]} = {call}"]
            is_list = f"        if type({targets[0]}) is list: ({targets[0]},) = {targets[0]}"
            lines += [] if is_ufunc else [is_list]
        else:
            lines += [f"        ({''.join(f'{name}, ' for name in targets)}) = {call}"]
        ended = [f"v{place} = " for place in last_uses[i]]
        lines += [f"        {''.join(ended)}None"] if ended else []
    lines += [f"        return [{', '.join(f'v{place}' for place in results)}]", "    return run"]
    scope = {"__builtins__": {"type": type, "list": list}}
    exec(compile("\n".join(lines), "<block>", "exec"), scope)
    return scope["make"]


def _last_uses(steps, results, known) -> list[list[int]]:
    """For each step, of which the numbers of the operands and of the results are needed, those of
    values that no later step reads, so that their memory is free. The values that are known are not
    the function's own.
    """
    used, ended = {*results, *known}, []
    for operands, targets in reversed(steps):
        last = {*operands, *targets} - used
        used |= last
        ended.append(sorted(last))
    return ended[::-1]
