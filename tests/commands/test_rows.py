"""The page of rows follows from the names of the tests, and every row has a test."""

import re

import pytest

from commands import rows

pytestmark = pytest.mark.checkout


def test_the_page_is_up_to_date():
    assert rows.PAGE.read_text() == rows.page(), "run python tests/commands/rows.py"


@pytest.mark.slow
def test_every_row_has_a_test():
    assert rows.untested() == []


def test_every_id_in_a_name_is_a_row():
    assert rows.unlisted() == []


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_grad_tensors_of_wrong_length_A05", ["A05"]),
        ("test_the_order_of_hooks_F03_F04", ["F03", "F04"]),
        ("test_materialize_grads_edge_07", ["edge_07"]),
        ("test_detach_D15_edge_23", ["D15", "edge_23"]),
        ("test_edges_under_jit", []),
        ("test_A05_of_wrong_length", []),
        ("test_grad_tensors_A050", []),
        ("test_numbers_of_36", []),
    ],
)
def test_ids_of_a_name(name, ids):
    assert rows.ids_of(name) == ids


def test_no_name_begins_with_an_id():
    begins = re.compile(rf"\s*def test_{rows.ID}(_|\b)", re.MULTILINE)
    names = [path.name for path in rows.TESTS.rglob("test_*.py") if begins.search(path.read_text())]
    assert names == [], "a name says what the test checks; its row's id ends it"


def test_rows_without_a_test_are_found(monkeypatch):
    tests = rows.tests_by_row()
    del tests["A05"]
    monkeypatch.setattr(rows, "tests_by_row", lambda: {**tests, "A99": []})
    assert "A05" in rows.untested() and rows.unlisted() == ["A99"]
