"""The page of rows follows from the markers of the tests, and every row has a test."""

import ast
import re

import pytest

from commands import rows

pytestmark = pytest.mark.checkout


def test_the_page_is_up_to_date():
    assert rows.PAGE.read_text() == rows.page(), "run python tests/commands/rows.py"


@pytest.mark.slow
def test_every_row_has_a_test():
    assert rows.untested() == []


def test_every_id_in_a_marker_is_a_row():
    assert rows.unlisted() == []


@pytest.mark.parametrize(
    ("decorators", "ids"),
    [
        ('@pytest.mark.row("A05")', ["A05"]),
        ('@pytest.mark.row("F03", "F04")', ["F03", "F04"]),
        ('@pytest.mark.row("D15", "edge_23")', ["D15", "edge_23"]),
        ('@pytest.mark.row("A05")\n@pytest.mark.row("A06")', ["A05", "A06"]),
        ('@pytest.mark.row("A05")\n@pytest.mark.slow\n@as_torch("1.0")', ["A05"]),
        ('@pytest.mark.parametrize("A05", [1])', []),
        ("@as_torch", []),
        ("", []),
    ],
)
def test_ids_of_a_test(decorators, ids):
    (test,) = ast.parse(f"{decorators}\ndef test_it(): pass").body
    assert rows.ids_of(test) == ids


def test_no_name_has_an_id():
    coded = re.compile(r"\s*def test_(\w+_)?([A-Z]|edge_)\d\d(_|\b)", re.MULTILINE)
    names = [path.name for path in rows.TESTS.rglob("test_*.py") if coded.search(path.read_text())]
    assert names == [], "a name says what the test checks; a marker names the row"


def test_rows_without_a_test_are_found(monkeypatch):
    tests = rows.tests_by_row()
    del tests["A05"]
    monkeypatch.setattr(rows, "tests_by_row", lambda: {**tests, "A99": []})
    assert "A05" in rows.untested() and rows.unlisted() == ["A99"]
