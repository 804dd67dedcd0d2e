"""The report of a machine as a page."""

NOTES = {
    "numerics": "Each operator beside the CPU in float64, value and gradient, of the same numbers.",
    "programs": "Random programs of state, compiled and uncompiled.",
    "scripts": "Models trained for three steps in float64, beside what PyTorch gave.",
    "operators": "Microseconds of an operator on 2^22 numbers.",
    "training": "Milliseconds of a training step.",
    "attention": "Milliseconds of causal attention and its gradients, by length.",
    "gpt2": "Tokens each second of a training step of GPT-2 of 124M parameters.",
}
COMMANDS = """\
In a checkout these commands make such a report of your machine, or some parts of it:

```sh
make accelerator
make accelerator ARGUMENTS="--minutes 5 --parts numerics training"
```"""
# differences that a page shows of a part
MOST = 20


def page(report: dict) -> str:
    machine = report["machine"]
    lines = [f"# jaxgrad on {machine['device']}", ""]
    if machine["platform"] == "cpu":
        lines += [
            "**No accelerator: all of this ran on the CPU.** It shows that the command works.",
            "",
        ]
    lines += [COMMANDS, "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()]
    for name, part in report["parts"].items():
        lines += ["", f"## {name}", "", NOTES[name], ""]
        lines += [f"Took {part['seconds']} s.", ""]
        if part["ended early"]:
            lines += [f"**Ended early**: {part['ended early']}", ""]
        lines += section(name, part)
    return "\n".join(lines) + "\n"


def section(name: str, part: dict) -> list[str]:
    lines = []
    if "by dtype" in part:
        lines += dtypes(part)
    for key, unit in (("programs", "programs"), ("trained", "models")):
        if key in part:
            value = part[key]
            lines += [f"{unit}: {value if isinstance(value, int) else ', '.join(value)}", ""]
    if "rows" in part:
        lines += rows(part)
    if "differences" in part:
        lines += [f"Differences: {len(part['differences'])}", ""]
        lines += [f"- `{difference}`" for difference in part["differences"][:MOST]]
    return lines


def dtypes(part: dict) -> list[str]:
    kinds = ("compared", "of the dtype", "refused", "not reached")
    lines = [f"{part['operators']} operators.", "", f"| | {' | '.join(kinds)} |"]
    lines += ["| --- " * (len(kinds) + 1) + "|"]
    lines += [
        f"| {name} | {' | '.join(str(counts[kind]) for kind in kinds)} |"
        for name, counts in part["by dtype"].items()
    ]
    text = "Of the dtype: beyond the tolerance, and the CPU is about as far off in this dtype. "
    return [*lines, "", text + "Refused: the CPU refuses the dtype too.", ""]


def rows(part: dict) -> list[str]:
    libraries = list(dict.fromkeys(name for row in part["rows"].values() for name in row))
    lines = [f"| {part['unit']} | {' | '.join(libraries)} |", "| --- " * (len(libraries) + 1) + "|"]
    for name, row in part["rows"].items():
        times = map(row.get, libraries)
        cells = ["not reached" if time is None else f"{time:,}" for time in times]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    share = part.get("share of the peak")
    return [*lines, ""] + ([f"Share of the chip's peak: {share:.1%}", ""] if share else [])
