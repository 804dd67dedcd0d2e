"""`jaxgrad compare`: run a script under PyTorch and under jaxgrad, and compare the runs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ..compat import scan
from . import report
from .children import CannotRun, python_of_torch, run_under
from .conditioning import FARTHER, FAULT, UNKNOWN, judge
from .difference import Comparison
from .page import page

EQUAL, DIFFERENT, MISUSED = 0, 1, 2
DOUBTFUL = 0.05  # a relative difference that may be rounding


def run_compare(options) -> int:
    """Run the command, and return its exit status: 0 where the runs are equal up to rounding, 1
    where they differ or the script stops under one of them, 2 for misuse.
    """
    for file in filter(None, (options.script, options.checkpoint)):
        if not Path(file).is_file():
            return complain(f"{file}: no such file")
    if options.html and not Path(options.html).absolute().parent.is_dir():
        return complain(f"{options.html}: no such folder")
    try:
        python = python_of_torch(options.torch_python)
    except CannotRun as error:
        return complain(str(error))
    return compare(options, python)


def complain(text: str) -> int:
    print(f"jaxgrad compare: {text}", file=sys.stderr)
    return MISUSED


def compare(options, python: str) -> int:
    settings = {
        "script": options.script,
        "arguments": options.arguments,
        "seed": options.seed,
        "modules": options.modules,
        "every": options.every,
        "checkpoint": options.checkpoint,
    }
    comparison = both(options, python, settings)
    if options.checkpoint and None in (comparison.first.loaded, comparison.second.loaded):
        return complain(f"{options.checkpoint}: no module of the script has the keys of this state")
    lines, status = verdict(comparison)
    if options.double:
        double = both(options, python, {**settings, "double": True})
        conditioning = judge(comparison, double)
        lines += double_lines(conditioning, double)
        if not ends(comparison):
            is_wrong = conditioning.verdict in (FAULT, FARTHER, UNKNOWN)
            status = DIFFERENT if is_wrong else EQUAL
    elif comparison.difference is not None and max(comparison.difference.outputs) < DOUBTFUL:
        lines.append("  --double tells a fault from rounding")
    timed = times(options, python, settings) if not options.no_times else []
    show(options, comparison, lines, timed)
    return status


def both(options, python, settings) -> Comparison:
    """The comparison of the runs of both libraries."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {**settings, "draws": str(Path(folder) / "draws")}
        first = run_under("torch", python, settings, options.output)
        second = run_under("jaxgrad", None, settings, options.output)
    return Comparison(first, second, options.tolerance)


def times(options, python, settings) -> list:
    timing = {**settings, "times": True}
    return [run_under("torch", python, timing), run_under("jaxgrad", None, timing)]


def stops_alike(comparison) -> bool:
    """Whether the script stops in both libraries at one place by errors of one type."""
    errors = [run.end.get("error") for run in (comparison.first, comparison.second)]
    return all(errors) and len({(error["type"], str(error["place"])) for error in errors}) == 1


def ends(comparison) -> list[str]:
    """Where the script stops, if it does not stop in both alike."""
    if stops_alike(comparison):
        return []
    return report.end_lines(comparison.first) + report.end_lines(comparison.second)


def verdict(comparison: Comparison):
    """The lines about a comparison, and the exit status."""
    lines = ends(comparison)
    status = DIFFERENT if lines else EQUAL
    runs = comparison.first, comparison.second
    if comparison.difference is not None:
        return [*lines, *report.lines_of(comparison.difference, *runs)], DIFFERENT
    if not comparison.compared:
        return [*lines, *report.silence_lines(runs)], DIFFERENT
    if stops_alike(comparison):
        lines += report.end_lines(comparison.first, "both libraries")
    which = "equal up to there" if lines else "equal"
    amount = f"{comparison.compared} records differ by at most {comparison.largest:.1e}"
    lines.append(f"{which}: {amount} of their norms")
    if comparison.noise:
        count = len(comparison.noise)
        which = (
            "1 parameter whose gradient is"
            if count == 1
            else f"{count} parameters whose gradients are"
        )
        lines.append(
            f"  not counted: {which} rounding, in some elements or in all, such as "
            f"{min(comparison.noise)}"
        )
    return lines, status


def double_lines(conditioning, double) -> list[str]:
    stops = [f"in double precision, {line}" for line in ends(double)]
    lines = stops + report.conditioning_lines(conditioning)
    if conditioning.difference is None or conditioning.is_same_place:
        return lines
    shown = report.lines_of(conditioning.difference, double.first, double.second)
    return lines + [f"  {line}" for line in shown]


def show(options, comparison, lines, timed):
    runs = [comparison.first, comparison.second]
    rows = report.rows(runs, timed, missing_names(options.script))
    text = "\n".join(lines)
    print(text, "", report.text_of(rows), sep="\n")
    if options.html:
        title = f"{Path(options.script).name} under PyTorch and jaxgrad"
        Path(options.html).write_text(page(title, text, rows, runs))


def missing_names(script: str) -> list[str]:
    """The names of torch in a script that jaxgrad lacks."""
    try:
        findings = scan.scan(Path(script))
    except (OSError, SyntaxError, ValueError):
        return []
    return sorted({finding.name for finding in findings if finding.kind != "differs"})
