"""docs/ecosystem.md from results/*.json and causes.json: which programs run and are equal."""

import json
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
CAUSES = HERE / "causes.json"
SLOW = 3  # times PyTorch's time

INTRODUCTION = """\
# Packages that run

Programs that use other people's packages, unchanged, run by `python -m jaxgrad run` and compared
with PyTorch number by number: outputs, losses, every gradient, buffers, the parameters after
three steps of training, what is generated, and what is loaded after saving. Weights and inputs
are the same in both. A program is equal where no array differs by more than 1e-4 of its largest
number in float32, or 1e-8 in float64, or what the program itself states; integers are equal to
the last one. Arrays of which each number is below a thousandth of the largest of their kind, such
as gradients that are zero but for rounding, are measured by that thousandth.

A program is *compiled* where its whole step, with `backward()` and the optimizer, is one call of
`torch.compile`, compared with what PyTorch computes eagerly. *Time* is that of the median of five
steps after ten, beside PyTorch's eager step with one thread: the median, and the range, over a
package's programs. The models are as small as their code allows, so the times compare what a call
costs more than what arithmetic costs: [Figures](figures.md) has larger ones.

```sh
python -m jaxgrad run train.py  # your program, with jaxgrad where it imports torch
make ecosystem  # install the packages, run the programs and write this page
make ecosystem ARGUMENTS="--only timm,peft"  # run some of them
```

"""


def load():
    """What is known of all programs, by their keys."""
    results = {}
    for file in RESULTS.glob("*.json"):
        results |= json.loads(file.read_text())
    return dict(sorted(results.items()))


def keep(key, result):
    """Put what is known of a program into the file of its package."""
    file = RESULTS / f"{result['package']}.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(dict(sorted((results | {key: result}).items())), indent=1) + "\n")


def page(results):
    """The text of the page."""
    causes = json.loads(CAUSES.read_text()) if CAUSES.exists() else {}
    packages = defaultdict(dict)
    for key, result in sorted(results.items()):
        packages[result["package"]][key] = result
    total = {"package": "**all**", "version": ""}
    lines = [INTRODUCTION + "| package | version | programs | equal | compiled | equal | time |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
    for package, programs in packages.items():
        version = next(iter(programs.values()))["version"]
        lines.append(row({"package": package, "version": version}, programs.values()))
    lines.append(row(total, results.values()))
    return "\n".join([*lines, *unequal(results, causes), *slow(results, causes)]) + "\n"


def row(names, programs):
    """A line of the first table."""
    eager = [one["eager"] for one in programs]
    compiled = [one["compiled"] for one in programs if "compiled" in one]
    ratios = sorted(filter(None, map(ratio, programs)))
    time = "-"
    if ratios:
        time = f"{ratios[len(ratios) // 2]:.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})"
    counts = [len(eager), sum(map(is_equal, eager))]
    counts += [len(compiled), sum(map(is_equal, compiled))] if compiled else ["-", "-"]
    return "| " + " | ".join(map(str, [*names.values(), *counts, time])) + " |"


def is_equal(run):
    return run.get("differences") == []


def ratio(result):
    """The time of an eager step beside PyTorch's."""
    step, reference = result["eager"].get("step"), result["torch"].get("step")
    return step / reference if step and reference else None


def unequal(results, causes):
    """The part of the page on programs that fail or differ."""
    lines = []
    for key, result in sorted(results.items()):
        for mode in ("eager", "compiled"):
            if mode in result and not is_equal(result[mode]):
                cause = causes.get(key) or complaint(result["torch"], result[mode])
                lines.append(f"| {key} | {mode} | {cell(cause)} |")
    if not lines:
        return []
    heading = ["", "## What is not equal", "", "| program | run | cause |", "| --- | --- | --- |"]
    return [*heading, *lines]


def complaint(reference, run):
    """What a run itself says of why it is not equal."""
    for prefix, report in (("PyTorch itself: ", reference), ("", run)):
        if "error" in report:
            error = report["error"]
            return f"{prefix}{error['type']}: {error['message']}"
    return "; ".join(run.get("differences", []))


def cell(text):
    """A text that stands in a table as it is."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def slow(results, causes):
    """The part of the page on programs that take several times as long as in PyTorch."""
    lines = []
    for key, result in sorted(results.items()):
        if (ratio(result) or 0) > SLOW:
            milliseconds = f"{result['eager']['step'] * 1e3:.3g}"
            cause = causes.get(
                f"{key} time", "not examined; measured on a machine that other work shared"
            )
            lines.append(f"| {key} | {milliseconds} | {ratio(result):.1f} | {cell(cause)} |")
    if not lines:
        return []
    heading = ["", f"## Steps that take more than {SLOW} times as long", ""]
    heading += ["| program | ms | beside PyTorch | cause |", "| --- | --- | --- | --- |"]
    return [*heading, *lines]


def summary(result):
    """What is printed of a program that has run."""
    for mode in ("eager", "compiled"):
        if mode in result:
            run = result[mode]
            yield (
                f"{mode}: equal" if is_equal(run) else f"{mode}: {complaint(result['torch'], run)}"
            )
    if ratio(result):
        yield f"{result['eager']['step'] * 1e3:.3g} ms, {ratio(result):.1f} times PyTorch's"
