"""The rows of the benchmarks as data.

`note` adds rows to the file that the variable FIGURES names, a chart in JSON a line, and does
nothing without it. measure.py sets it, and makes docs/figures.md of what it finds.
"""

import json
import os


def rounds(many, few):
    """How often to measure: `many` times, or `few` where the variable QUICK is set."""
    return few if os.environ.get("QUICK") else many


def note(section, title, unit, base, rows, more_is_better=False):
    """Add rows to the chart `title` of a section of README.md.

    rows: by name of the row, by subject (jaxgrad, torch, ...) a number in `unit`. base: the subject
    to which the chart gives ratios, or the row, where each row has one subject.
    """
    if "FIGURES" not in os.environ:
        return
    chart = {
        "section": section,
        "title": title,
        "unit": unit,
        "base": base,
        "more_is_better": more_is_better,
        "rows": {
            row: {subject: float(f"{value:.4g}") for subject, value in values.items()}
            for row, values in rows.items()
        },
    }
    with open(os.environ["FIGURES"], "a") as file:
        file.write(json.dumps(chart) + "\n")
