"""The page of rows is what the tests' names say, and every row has its test."""

import pytest
import rows

pytestmark = pytest.mark.checkout


def test_the_page_is_up_to_date():
    assert rows.PAGE.read_text() == rows.page(), "run python tests/rows.py"


def test_every_row_has_a_test():
    assert rows.untested() == []


def test_every_id_in_a_name_is_a_row():
    assert rows.unlisted() == []


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_A05_of_wrong_length", ["A05"]),
        ("test_F03_F04_order", ["F03", "F04"]),
        ("test_C01", ["C01"]),
        ("test_edge_07_materialize_grads", ["edge_07"]),
        ("test_edge_under_jit", []),
        ("test_order_of_A05", []),
        ("test_A050", []),
    ],
)
def test_ids_of_a_name(name, ids):
    assert rows.ids_of(name) == ids


def test_rows_without_a_test_are_found(monkeypatch):
    found = rows.tests_by_row()
    del found["A05"]
    monkeypatch.setattr(rows, "tests_by_row", lambda: {**found, "A99": []})
    assert "A05" in rows.untested() and rows.unlisted() == ["A99"]
