"""Faults in a library of layers, each seen at its line: PyTorch's run is recorded."""

import pytest
from helpers import compared_runs

from jaxgrad.compare.difference import Comparison

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs():
    return compared_runs.pytorch(), compared_runs.under_jaxgrad(["none", *compared_runs.NAMES])


@pytest.mark.parametrize("fault", compared_runs.NAMES)
def test_a_fault_is_seen_at_its_line(fault, runs):
    pytorch, under_jaxgrad = runs
    difference = Comparison(pytorch, under_jaxgrad[fault]).difference
    file, line, _ = difference.place
    assert file == str(compared_runs.FAULTS / "layers.py")
    assert line in compared_runs.lines_of(fault)


def test_without_a_fault_the_runs_are_equal(runs):
    pytorch, under_jaxgrad = runs
    comparison = Comparison(pytorch, under_jaxgrad["none"])
    assert comparison.difference is None
    assert comparison.compared > 150
    assert comparison.largest < 1e-5
    assert under_jaxgrad["none"].losses == pytest.approx(pytorch.losses, rel=1e-6)
