"""The report of a comparison, as text."""

from __future__ import annotations

import itertools
import math
import os
import statistics

from .conditioning import FARTHER, FAULT, ROUNDING
from .difference import Difference
from .run import Run

TITLES = {"torch": "PyTorch", "jaxgrad": "jaxgrad"}
MOST_USERS = 3
NEARLY = 1e-3  # inputs that differ by less are worth a look at the call


def place_of(place, is_long=True) -> str:
    if place is None:
        return "an unknown line"
    file, line, *function = place
    shown = os.path.relpath(file)
    shown = file if shown.startswith("..") else shown
    where = f", in {function[0]}" if function and is_long and function[0] != "<module>" else ""
    return f"{shown}:{line}{where}"


def percent(number: float) -> str:
    if math.isinf(number):
        return "another shape, dtype or place of infinities"
    return f"{number:.1e}"


def lines_of(difference: Difference, first: Run, second: Run) -> list[str]:
    """What is said about a difference."""
    title = [
        f"first difference: {place_of(difference.place)}",
        f"    {source_line(difference.place)}",
    ]
    return [*filter(str.strip, title), *details(difference, first, second)]


def source_line(place) -> str:
    """The text of a line of the user's code."""
    try:
        with open(place[0]) as file:
            return file.read().splitlines()[place[1] - 1].strip()
    except (OSError, IndexError, TypeError):
        return ""


def details(difference, first, second) -> list[str]:
    pair = difference.pair
    if pair.first is None or pair.second is None:
        library = TITLES[(first if pair.first else second).library]
        return [f"  {pair.either.kind} {pair.either.name}: only {library} has it"]
    lines = [f"  step {pair.first.step}, {described(difference)}"]
    if pair.first.kind == "options":
        return lines + option_lines(pair)
    if difference.sources:
        place = place_of(pair.first.place, False)
        lines = [f"  first seen at {place}: {lines[0].strip()}"]
        lines = [source_text(source, first, second) for source in difference.sources] + lines
    if difference.users:
        names = [f"{called(user)} at {place_of(user.place, False)}" for user in difference.users]
        lines.append(f"  look at the derivative of {', '.join(names[:MOST_USERS])}")
    lines += amounts(difference, first, second)
    if pair.first.fields.get("workers"):
        lines.append("  what its workers do is not recorded: compare with num_workers=0 as well")
    return lines + setting_lines(pair)


def source_text(source, first, second) -> str:
    library = TITLES[(first if source.first else second).library]
    record = source.either
    return f"  only {library} calls {record.name} at {place_of(record.place, False)}"


def called(record) -> str:
    """The name of a call, and of a module its path."""
    path = record.fields.get("path")
    return f"{record.name} ({path})" if path else record.name


def described(difference) -> str:
    pair = difference.pair
    record, other = pair.first, pair.second
    if record.kind == "gradient":
        return "the gradient of a result, where the gradients before it agree"
    names = record.name if record.name == other.name else f"{record.name} and {other.name}"
    path = record.fields.get("path")
    name = f"{record.kind} {names}" + (f" ({path})" if path else "")
    if record.kind == "loss":
        return "the loss"
    if not difference.inputs:
        return name
    unequal = [gap for gap in difference.inputs if gap]
    if unequal and max(unequal) > NEARLY:
        return f"{name}: inputs differ already"
    if not unequal:
        return f"{name}: inputs equal, output not"
    return f"{name}: inputs equal up to {percent(max(unequal))}, output not"


def amounts(difference, first, second) -> list[str]:
    lines = []
    pairs = zip(difference.pair.first.outputs, difference.pair.second.outputs, strict=False)
    for number, (digests, gap) in enumerate(zip(pairs, difference.outputs, strict=True)):
        if not gap:
            continue
        title = f"output {number}" if len(difference.outputs) > 1 else "output"
        lines.append(f"  {title} differs by {percent(gap)} of its norm")
        for run, digest in zip((first, second), digests, strict=True):
            lines.append(f"    {TITLES[run.library]:8} {shown(run.summaries.get(digest))}")
    return lines


def shown(summary) -> str:
    if summary is None:
        return "has no numbers"
    shape = f"{summary['dtype']}{summary['shape']}"
    if len(summary["sketch"]) == 1 == math.prod(summary["shape"]):
        return f"{shape} {summary['sketch'][0]:.9g}"
    low, high = summary["low"], summary["high"]
    return f"{shape} norm {summary['norm']:.7g}, from {low:.7g} to {high:.7g}"


def option_lines(pair) -> list[str]:
    options = pair.first.fields["settings"], pair.second.fields["settings"]
    return [
        f"  {name}: PyTorch {options[0][name]}, jaxgrad {options[1][name]}"
        for name in options[0]
        if name in options[1] and options[0][name] != options[1][name]
    ]


def setting_lines(pair) -> list[str]:
    """The arguments that are no tensors and that both calls name, where they differ."""
    settings = pair.first.fields.get("settings", {}), pair.second.fields.get("settings", {})
    names = [
        name
        for name in settings[0]
        if settings[0][name] != settings[1].get(name, settings[0][name])
    ]
    if not names:
        return []
    first, second = (
        ", ".join(f"{name}={part[name]}" if name else part[name] for name in names)
        for part in settings
    )
    return [f"  arguments: PyTorch ({first}), jaxgrad ({second})"]


def silence_lines(runs) -> list[str]:
    """What is said where no operator ran."""
    lines = ["nothing was compared: no operator of the library ran"]
    for run in runs:
        message = f": {run.message}" if run.message else ""
        lines.append(
            f"  under {TITLES[run.library]} it exits with {run.end.get('status')}{message}"
        )
    return lines


def end_lines(run: Run, name: str | None = None) -> list[str]:
    """Where a script stopped under a library, or under what has this name."""
    error = run.end.get("error")
    if not error:
        return []
    name = name or TITLES[run.library]
    return [f"under {name} the script stops at {place_of(error['place'])}: {error['text']}"]


def conditioning_lines(conditioning) -> list[str]:
    """What the runs in double precision say."""
    lines = []
    if conditioning.verdict == FAULT:
        lines.append("in double precision: a fault, since the libraries differ there too")
    elif conditioning.verdict == ROUNDING:
        lines.append("in double precision: equal; what differs in single precision is rounding")
        if conditioning.has_jumps:
            lines.append(
                "  a few elements lie at a jump, such as that of the derivative of relu at 0, and "
                "rounding decides their side; all others are equally far"
            )
    elif conditioning.verdict == FARTHER:
        lines.append(
            "in double precision: equal, but one library is farther from it in single precision"
        )
    else:
        lines.append(
            "in double precision: equal; the runs cannot be compared with single precision"
        )
    if conditioning.verdict != FAULT:  # of a fault, the difference itself is shown below
        lines.append(f"  between the libraries in double precision: {conditioning.between:.1e}")
    for title, gaps in (
        ("at the first difference", conditioning.distances),
        ("gradients of parameters", conditioning.gradients),
    ):
        if None not in gaps:
            lines.append(
                f"  single from double precision, {title}: PyTorch {gaps[0]:.1e}, "
                f"jaxgrad {gaps[1]:.1e}"
            )
    return lines


# ---- the table at the end


def rows(runs: list[Run], timed: list[Run], missing: list[str]) -> list[tuple]:
    """The rows of the table: a title and a text for each library."""
    curves = [run.curve() for run in runs]
    table = [("", *(f"{TITLES[run.library]} {run.start.get('version', '')}" for run in runs))]
    if any(curves):
        table.append(
            ("loss, first step", *(f"{curve[0]:.9g}" if curve else "" for curve in curves))
        )
        table.append(
            ("loss, last step", *(f"{curve[-1]:.9g}" if curve else "" for curve in curves))
        )
    table.append(("training steps", *(str(len(curve)) for curve in curves)))
    table.append(("records", *(str(len(run.records) + len(run.gradients)) for run in runs)))
    if timed:
        table += timing_rows(timed)
    table.append(("missing names", "", ", ".join(missing) or "none"))
    return table


def timing_rows(timed: list[Run]) -> list[tuple]:
    kind = common_tick([run.ticks for run in timed])
    measured = [times(run, kind) for run in timed]
    return [
        ("time of the first step", *(seconds(first) for first, _, _ in measured)),
        ("time of a later step", *(seconds(later) for _, later, _ in measured)),
        ("memory", *(f"{memory / 1e6:.0f} MB" if memory else "" for _, _, memory in measured)),
    ]


def common_tick(ticks) -> str:
    """The kind of event that comes most often in both libraries: a step has one."""
    counts = {
        kind: min(sum(tick["of"] == kind for tick in part) for part in ticks)
        for kind in ("step", "compiled", "backward")
    }
    return max(counts, key=lambda kind: counts[kind])


def times(run: Run, kind: str):
    """The time of the first step, the median of the later ones, and the most memory, in bytes."""
    begin = [tick["time"] for tick in run.ticks if tick["of"] == "begin"]
    moments = [*begin, *(tick["time"] for tick in run.ticks if tick["of"] == kind)]
    steps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    memory = max((tick["memory"] or 0 for tick in run.ticks), default=0)
    first = steps[0] if steps else None
    return first, statistics.median(steps[1:]) if len(steps) > 1 else None, memory


def seconds(number) -> str:
    if number is None:
        return ""
    return f"{number:.2f} s" if number >= 1 else f"{number * 1e3:.3g} ms"


def text_of(table: list[tuple]) -> str:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
