"""The time of each operator within a compiled program, as XLA's profiler measures it.

The operations of a program are in a scope of their operator or node (`linear/dot_general`,
`AddmmBackward0/dot_general`), and XLA keeps the scope of each instruction that it runs.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

CALLS = 10
MODULE = re.compile(r"HloModule ([^\s,]+)")
INSTRUCTION = re.compile(
    r'^\s*(?:ROOT )?%?(?P<name>[\w.\-]+) = (?:.*op_name="(?P<scope>[^"]*)")?', re.MULTILINE
)
# parts of a scope that are no operator: calls within JAX, loops and branches
STRUCTURE = re.compile(
    r"\w+\(.*\)|while|body|cond|branch_\d+_fun|closed_call|checkpoint|rematted.*"
)
NO_OPERATOR = "no operator"  # copies and constants that XLA adds


class OperatorTime(NamedTuple):
    """An operator or node of a program. `microseconds`: of one call; `instructions`: of XLA."""

    name: str
    microseconds: float
    instructions: int


class OperatorTimes(list):
    """`OperatorTime`s, the longest first; its text is a table."""

    def __str__(self):
        total = sum(row.microseconds for row in self)
        width = max([len("operator"), *(len(row.name) for row in self)])
        lines = [f"{'operator':{width}}  {'us per call':>11}  {'share':>6}  {'instructions':>12}"]
        lines += [
            f"{row.name:{width}}  {row.microseconds:11.1f}  "
            f"{row.microseconds / total if total else 0:6.1%}  {row.instructions:12}"
            for row in self
        ]
        return "\n".join([*lines, f"{'all':{width}}  {total:11.1f}"])


def operator_of(scope: str | None) -> str:
    """The operator or node of a scope: `linear` of `jit(step)/jit(equations)/linear/dot`."""
    parts = (scope or "").split("/")[:-1]
    return next((part for part in parts if part and not STRUCTURE.fullmatch(part)), NO_OPERATOR)


def operators_of(hlo: str) -> dict[str, str]:
    """The operator of each instruction in the text of a compiled program."""
    return {match["name"]: operator_of(match["scope"]) for match in INSTRUCTION.finditer(hlo)}


def exclusive_times(events) -> list[tuple[str, float]]:
    """The names of events of one thread with their times in ns, without those of events inside."""
    times: list[list] = []
    opened: list[tuple[float, list]] = []
    for event in sorted(events, key=lambda event: (event.start_ns, -event.duration_ns)):
        while opened and opened[-1][0] <= event.start_ns:
            opened.pop()
        if opened:
            opened[-1][1][1] -= event.duration_ns
        times.append([dict(event.stats)["hlo_op"], event.duration_ns])
        opened.append((event.start_ns + event.duration_ns, times[-1]))
    return [tuple(pair) for pair in times]


def instruction_events(folder: str, module: str):
    """The events of a module's instructions in a trace of `jax.profiler`, by thread."""
    for path in Path(folder).rglob("*.xplane.pb"):
        for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
            for line in plane.lines:
                pairs = [(event, dict(event.stats)) for event in line.events]
                yield [
                    event
                    for event, stats in pairs
                    if stats.get("hlo_module") == module and "hlo_op" in stats
                ]


def run(compiled, inputs):
    """Run a program on copies of its inputs, which it may delete."""
    copies = [jnp.copy(value) if isinstance(value, jax.Array) else value for value in inputs]
    jax.block_until_ready(compiled(*copies))


def profile(program, inputs) -> OperatorTimes:
    """Run a program, and time its operators; no state changes."""
    with jax.enable_x64(True):
        compiled = program.program.lower(*inputs).compile()
        text = compiled.as_text()
        threads = traced(compiled, inputs, MODULE.match(text)[1])
    operators, times, instructions = operators_of(text), defaultdict(float), defaultdict(set)
    for events in threads:
        for name, nanoseconds in exclusive_times(events):
            operator = operators.get(name, NO_OPERATOR)
            times[operator] += nanoseconds / 1e3 / CALLS
            instructions[operator].add(name)
    rows = [OperatorTime(name, time, len(instructions[name])) for name, time in times.items()]
    return OperatorTimes(sorted(rows, key=lambda row: -row.microseconds))


def traced(compiled, inputs, module: str) -> list:
    """The events of each thread in the calls of a program, after a first one."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    run(compiled, inputs)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for _ in range(CALLS):
                run(compiled, inputs)
        return list(instruction_events(folder, module))
