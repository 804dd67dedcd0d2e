"""docs/ecosystem.md is what its data makes; runs that differ are told from runs that are equal."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.checkout

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT / "tests" / "ecosystem"))
compare, harness, pages = map(importlib.import_module, ("compare", "harness", "ecosystem_page"))
del sys.path[0]


def test_page_is_what_the_results_make():
    assert (CHECKOUT / "docs/ecosystem.md").read_text() == pages.page(pages.load())


def test_the_table_of_fields_counts_as_the_page_does():
    """ "Coming from PyTorch" names each package with its equal programs, and only these."""
    docs = Path(__file__).parents[2] / "docs"
    rows = re.findall(
        r"^\| (\S+) \| \S+ \| \d+ \| (\d+) \|", (docs / "ecosystem.md").read_text(), re.M
    )
    table = (docs / "from_pytorch.md").read_text().partition("### Packages")[2]
    named = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][2:]
    assert sorted(pair for line in named for pair in re.findall(r"(\S+) (\d+)", line)) == sorted(
        rows
    )


def differences(values, answer, tolerance=1e-4, scale=0.0):
    answers = {"gradient.a": answer, "gradient.b": np.array([scale])}
    return compare.differences({**answers, "gradient.a": values}, answers, tolerance)


@pytest.mark.parametrize(
    ("values", "is_equal"),
    [
        ([1.0, 2.0], True),
        ([1.0, 2.0001], True),
        ([1.0, 2.001], False),
        ([1.0, np.nan], False),
        ([[1.0, 2.0]], False),
        ([1, 2], False),
    ],
)
def test_arrays_are_equal_to_the_tolerance(values, is_equal):
    assert (differences(np.array(values), np.array([1.0, 2.0])) == []) == is_equal


def test_integers_are_equal_to_the_last_one():
    assert differences(np.array([7, 8]), np.array([7, 8])) == []
    assert differences(np.array([7, 9]), np.array([7, 8])) == [("gradient.a", "differs by inf")]


def test_what_is_not_finite_must_be_the_same():
    answer = np.array([np.inf, np.nan, 1.0])
    assert differences(answer.copy(), answer) == []
    assert differences(np.array([-np.inf, np.nan, 1.0]), answer) != []


def test_rounding_is_measured_by_the_largest_of_the_kind():
    noise, answer = np.array([1e-9]), np.array([-1e-9])
    assert differences(noise, answer, scale=1.0) == []
    assert differences(noise, answer, scale=1e-6) != []


def test_missing_and_surplus_arrays_are_differences():
    one = {"loss.0": np.array(1.0)}
    assert compare.differences({}, one, 1e-4) == [("loss.0", "is missing")]
    assert compare.differences(one, {}, 1e-4) == [("loss.0", "is not among PyTorch's")]


def test_a_name_stands_for_the_same_numbers_in_every_process():
    assert harness.generator_of("input").integers(0, 1000, 4).tolist() == [11, 795, 164, 383]


def test_digests_tell_integers_apart_however_they_are_rounded():
    values = np.arange(1000)
    shape, kind, size, (share, _) = compare.digest("a", values)
    rounded = shape, kind, size * (1 - 2e-16), [share * (1 + 4e-16), 0.0]
    assert compare.differences_from_digests({"a": values}, {"a": rounded}, 1e-4) == []
    values[17] += 1
    assert compare.differences_from_digests({"a": values}, {"a": rounded}, 1e-4) != []
