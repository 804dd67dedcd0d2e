"""docs/figures.md and its charts are what their data makes, and show every table of benchmarks."""

import html
import itertools
import json
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

CHECKOUT = Path(__file__).parents[2]
BENCHMARKS = CHECKOUT / "tests" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
page, charts, measure, figures = map(__import__, ("page", "charts", "measure", "figures"))
sys.path.remove(str(BENCHMARKS))

README = (BENCHMARKS / "README.md").read_text()
SECTIONS = dict(re.findall(r"^## \((\w)\)(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL))
WITH_TABLES = [letter for letter, text in SECTIONS.items() if re.search("^[|] ---", text, re.M)]
CHARTS = page.load()
ALL = [chart for section in CHARTS.values() for chart in section]


def test_page_and_charts_are_what_the_data_makes():
    text, files = page.page(CHARTS)
    assert (CHECKOUT / "docs/figures.md").read_text() == text
    charts = {path.name: path.read_text() for path in (CHECKOUT / "docs/figures").glob("*.svg")}
    assert charts == files


@pytest.mark.parametrize("letter", WITH_TABLES)
def test_every_table_has_a_chart(letter):
    assert CHARTS[letter]


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: f"{chart['section']} {chart['title']}")
def test_charts_say_where_they_are_from(chart):
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", chart["date"])
    assert re.search("core|GPU|H100", chart["machine"])
    assert "jax" in chart["versions"]
    subjects = {subject for row in chart["rows"].values() for subject in row}
    peers = subjects & {"torch", "mlx", "HIPS autograd"}
    assert peers <= chart["versions"].keys()
    assert chart["rows"] and all(chart["rows"].values())
    assert chart["base"] in subjects | chart["rows"].keys()


@pytest.mark.parametrize("name", ["figures.json", "elsewhere.json"])
def test_data_is_written_as_measure_writes_it(name):
    text = (CHECKOUT / "docs/figures" / name).read_text()
    assert measure.text(json.loads(text)) == text


def test_figures_from_elsewhere_are_those_of_the_readme():
    charts = json.loads((CHECKOUT / "docs/figures/elsewhere.json").read_text())
    texts = SECTIONS | {"s": (CHECKOUT / "docs/scaling.md").read_text()}
    numbers = {
        letter: {
            float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)
        }
        for letter, text in texts.items()
    }
    for chart in charts:
        values = {value for row in chart["rows"].values() for value in row.values()}
        assert values - numbers[chart["section"]] == set()


def chart_of(rows, base, **options):
    return {
        "title": "A <chart>",
        "unit": "us",
        "base": base,
        "more_is_better": False,
        "rows": rows,
    } | options


def lengths(chart):
    return [
        float(width) for width in re.findall(r'class="bar[^>]* width="([\d.]+)"', svg_of(chart))
    ]


def svg_of(chart):
    return charts.svg(chart)


def test_bars_are_as_long_as_their_ratios():
    chart = chart_of(
        {"a": {"jaxgrad": 3.0, "torch": 2.0}, "b": {"jaxgrad": 5.0, "torch": 20.0}}, "torch"
    )
    long, one, short, other = lengths(chart)
    assert one == other
    assert long / one == pytest.approx(1.5, abs=0.01)
    assert short / one == pytest.approx(0.25, abs=0.01)
    assert "1.50 " in svg_of(chart) and "0.25 " in svg_of(chart)
    assert "A &lt;chart&gt;" in svg_of(chart)
    assert "logarithmic" not in svg_of(chart)


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: f"{chart['section']} {chart['title']}")
def test_names_and_figures_stand_side_by_side(chart):
    """The letters of the widest fonts that are usual take 0.6 of their height."""
    svg, letter = charts.svg(chart), 0.6 * 12
    bars = [float(x) for x in re.findall(r'class="bar[^>]* x="([\d.]+)"', svg)]
    texts = re.findall(r'<text x="(\d+)" y="(\d+)"([^>]*)>([^<]*)</text>', svg)
    spans = {}
    for x, y, options, words in texts[2:]:  # below the title and the subtitle
        width, x = letter * len(html.unescape(words)), float(x)
        start = x - width if 'anchor="end"' in options else x - width / 2 * ("middle" in options)
        spans.setdefault(y, []).append((start, start + width))
    for line in spans.values():
        line.sort()
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(line))
        assert line[-1][1] <= charts.WIDTH
    ends = [end for line in spans.values() for start, end in line if start == charts.EDGE]
    assert max(ends) <= min(bars)


def test_a_row_may_be_the_base():
    rows = {"plain": {"jaxgrad": 2.0}, "with a mode": {"jaxgrad": 5.0}}
    plain, with_mode = lengths(chart_of(rows, "plain"))
    assert with_mode / plain == pytest.approx(2.5, abs=0.01)


def test_large_ratios_are_logarithmic_and_say_so():
    rows = {n: {"jaxgrad": float(n), "torch": 1.0} for n in ("0.1", "1", "10", "100")}
    chart = chart_of(rows, "torch")
    assert "logarithmic scale" in svg_of(chart)
    tenth, one, one_more, _, ten, _, hundred, _ = lengths(chart)
    assert one == one_more
    assert one - tenth == pytest.approx(ten - one, abs=0.2)
    assert hundred - ten == pytest.approx(ten - one, abs=0.2)


def test_a_row_without_its_base_has_a_figure_and_no_bar():
    rows = {"a": {"jaxgrad": 3.0, "torch": 2.0}, "b": {"jaxgrad": 5.0}}
    chart = chart_of(rows, "torch")
    assert len(lengths(chart)) == 2
    assert ">5<" in svg_of(chart)
    assert page.cell(chart, "b", "jaxgrad") == "5"
    assert page.cell(chart, "a", "jaxgrad") == "3 (1.50)"
    assert page.cell(chart, "b", "torch") == ""


def test_rows_noted_one_by_one_are_joined(tmp_path, monkeypatch):
    monkeypatch.setenv("FIGURES", str(tmp_path / "noted"))
    figures.note("r", "A step", "s", "torch", {"GPT-2": {"jaxgrad": 1.00004}})
    figures.note("r", "A step", "s", "torch", {"GPT-2": {"torch": 2}})
    (chart,) = measure.joined((tmp_path / "noted").read_text().splitlines())
    assert chart["rows"] == {"GPT-2": {"jaxgrad": 1.0, "torch": 2.0}}
    monkeypatch.delenv("FIGURES")
    figures.note("r", "A step", "s", "torch", {"GPT-2": {"jaxgrad": 1.0}})
    assert len((tmp_path / "noted").read_text().splitlines()) == 2


def test_the_summary_counts_rows_that_take_more():
    rows = {
        "fast": {"jaxgrad": 1.0, "torch": 2.0},
        "slow": {"jaxgrad": 3.0, "torch": 2.0},
        "even": {"jaxgrad": 2.0, "torch": 2.0},
    }
    (row,) = page.summary({"a": [chart_of(rows, "torch")]})[2:]
    assert row == "| torch | 3 | 1 | 1 | 1 | 1.00 | 1.50: slow (A \\<chart\\>) |"
