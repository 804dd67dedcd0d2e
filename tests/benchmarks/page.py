"""Writes docs/figures.md and its charts: figures.txt, with the charts of each section of README.md
in place of its letter. They come from docs/figures/figures.json, which measure.py writes, and from
docs/figures/elsewhere.json: figures of README.md that are of another machine, or of code before.
"""

import json
import re
import statistics
from pathlib import Path

import charts

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILES = ("figures.json", "elsewhere.json")
TEMPLATE = Path(__file__).with_name("figures.txt")
HEAD = ["beside", "rows", "less", "within 5 %", "more", "median ratio", "largest ratio"]
FRONT_PAGE = 520  # the width of its charts, which a phone shows at two thirds
PEERS = ("JAX by hand", "torch", "torch.compile", "XLA", "HIPS autograd", "mlx")


def load():
    """All charts, by section."""
    sections = {
        letter: [] for letter in re.findall(r"^{(\w)}$", TEMPLATE.read_text(), re.MULTILINE)
    }
    for name in FILES:
        path = DOCS / "figures" / name
        for chart in json.loads(path.read_text()) if path.exists() else ():
            sections[chart["section"]].append(chart)
    return sections


def words(text):
    """Text in which Markdown marks nothing."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)


def cell(chart, row, subject):
    if subject not in chart["rows"][row]:
        return ""
    figure, share = charts.number(chart["rows"][row][subject]), charts.ratio(chart, row, subject)
    is_base = share is None or subject == chart["base"]
    if is_base or chart["unit"] == charts.RATIO:
        return figure
    return f"{figure} ({charts.ratio_text(share)})"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def table(chart):
    subjects = list(dict.fromkeys(subject for row in chart["rows"].values() for subject in row))
    head = [f"{chart['unit']} (to {words(chart['base'])})", *map(words, subjects)]
    rows = [[words(row), *(cell(chart, row, s) for s in subjects)] for row in chart["rows"]]
    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def origin(chart):
    """Date, machine, versions, and the command."""
    versions = ", ".join(f"{name} {version}" for name, version in chart["versions"].items())
    command = f"; `{chart['command']}`" if chart["command"] else ""
    return f"Measured on {chart['date']}, {chart['machine']}; {versions}{command}."


def summary(sections):
    """For each peer, in how many rows jaxgrad takes less and more. Rows of what was before a change
    do not count.
    """
    rows = [line(HEAD)]
    rows.append(line(["---"] * len(HEAD)))
    for peer in PEERS:
        ratios = [
            (values["jaxgrad"] / values[peer], f"{row} ({chart['title']})")
            for section in sections.values()
            for chart in section
            if not chart["more_is_better"]
            for row, values in chart["rows"].items()
            if peer in values and "jaxgrad" in values and ", before " not in row
        ]
        if not ratios:
            continue
        numbers = [ratio for ratio, _ in ratios]
        less, more = sum(n < 0.95 for n in numbers), sum(n > 1.05 for n in numbers)
        most, name = max(ratios)
        counts = [len(numbers), less, len(numbers) - less - more, more]
        median, most = charts.ratio_text(statistics.median(numbers)), charts.ratio_text(most)
        rows.append(line([peer, *map(str, counts), median, f"{most}: {words(name)}"]))
    return rows


def charts_of(letter, section, files):
    """The lines of a section. The files of its charts are put into `files`."""
    lines = []
    for place, chart in enumerate(section, 1):
        name, title = f"{letter}{place}.svg", words(chart["title"])
        files[name] = charts.svg(chart)
        picture = f"![{title}: bars of the numbers below](figures/{name})"
        numbers = ["<details markdown>", "<summary>The numbers</summary>", "\n".join(table(chart))]
        lines += [f"### {title}", picture, origin(chart), *numbers, "</details>"]
    return "\n\n".join(lines)


def page(sections):
    """The text of the page, and by name that of its charts."""
    text, files = TEMPLATE.read_text(), {}
    text = text.replace("{summary}", "\n".join(summary(sections)))
    for letter, section in sections.items():
        text = text.replace(f"{{{letter}}}", charts_of(letter, section, files))
    training = sections["h"][0] | {"title": "The time of a training step"}
    files["front_page.svg"] = charts.svg(training, width=FRONT_PAGE)
    return text, files


def write():
    """Write the page and its charts, and remove charts that it has no longer."""
    text, files = page(load())
    (DOCS / "figures.md").write_text(text)
    for path in (DOCS / "figures").glob("*.svg"):
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        (DOCS / "figures" / name).write_text(content)


if __name__ == "__main__":
    write()
