"""Straight-line code for the steps of a block, which runs them in half the time of a loop."""

from __future__ import annotations

import functools


def function_of_steps(inputs: int, known: dict, steps, results):
    """The function that runs steps in order: from the arrays of the inputs, which have the numbers
    from 0 on, to a list of the values with the numbers in `results`.

    known: values by number; steps: for each a function, the numbers of its operands, and the range
    of those of its results.
    """
    shape = tuple([(*operands, -1, results.start, len(results)) for _, operands, results in steps])
    make = _maker(inputs, tuple(known), shape, tuple(results))
    return make([call for call, _, _ in steps], [*known.values()])


@functools.lru_cache(maxsize=4096)
def _maker(inputs, known, steps, results):
    """The function that makes it for steps of this structure, which many programs share."""
    calls = "".join(f"f{i}, " for i in range(len(steps)))
    values = "".join(f"v{place}, " for place in known)
    lines = ["def make(calls, known):"]
    lines += [f"    ({calls}) = calls"] if calls else []
    lines += [f"    ({values}) = known"] if values else []
    lines += [f"    def run({', '.join(f'v{i}' for i in range(inputs))}):"]
    last_uses = _last_uses(steps, results, known)
    for i, (*operands, _, first, count) in enumerate(steps):
        call = f"f{i}({', '.join(f'v{place}' for place in operands)})"
        targets = [f"v{place}" for place in range(first, first + count)]
        if count == 1:
            lines += [f"        {targets[0]} = {call}"]
            lines += [f"        if type({targets[0]}) is list: ({targets[0]},) = {targets[0]}"]
        else:
            lines += [f"        ({''.join(f'{name}, ' for name in targets)}) = {call}"]
        lines += [f"        v{place} = None" for place in last_uses[i]]
    lines += [f"        return [{', '.join(f'v{place}' for place in results)}]", "    return run"]
    scope = {"__builtins__": {"type": type, "list": list}}
    exec(compile("\n".join(lines), "<block>", "exec"), scope)
    return scope["make"]


def _last_uses(steps, results, known) -> list[list[int]]:
    """For each step the numbers of values that no later step reads, so that their memory is free.
    The values that are known are not the function's own.
    """
    used, ended = {*results, *known}, []
    for *operands, _, first, count in reversed(steps):
        last = {*operands, *range(first, first + count)} - used
        used |= last
        ended.append(sorted(last))
    return ended[::-1]
