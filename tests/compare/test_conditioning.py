"""Rounding or fault, by runs that are written here."""

import numpy as np
import pytest
from helpers.compared_runs import Script

from jaxgrad.compare.conditioning import FARTHER, FAULT, ROUNDING, UNKNOWN, judge
from jaxgrad.compare.difference import Comparison

TRUTH = np.linspace(1, 2, 5)


def comparison(first, second, line=1):
    runs = []
    for library, array in (("torch", first), ("jaxgrad", second)):
        script = Script(library)
        script.call("f", line, [], [array])
        runs.append(script.run())
    return Comparison(*runs)


def single(error):
    return (TRUTH * (1 + error)).astype(np.float32)


@pytest.mark.parametrize(
    ("errors", "doubles", "verdict"),
    [
        ((1e-3, -1e-3), (0, 0), ROUNDING),
        ((1e-3, -1e-6), (0, 0), FARTHER),
        ((1e-6, 1e-3), (0, 0), FARTHER),
        ((1e-3, -1e-3), (0, 1e-3), FAULT),
        ((1e-7, -1e-7), (0, 0), ROUNDING),
    ],
)
def test_verdicts(errors, doubles, verdict):
    pair = comparison(*map(single, errors))
    double = comparison(*(TRUTH * (1 + error) for error in doubles))
    assert judge(pair, double).verdict == verdict


def test_the_distances_are_those_from_double_precision():
    conditioning = judge(comparison(single(2e-3), single(-1e-3)), comparison(TRUTH, TRUTH))
    assert conditioning.distances == [pytest.approx(2e-3, rel=0.01), pytest.approx(1e-3, rel=0.01)]


def test_runs_without_common_calls_say_nothing():
    pair = comparison(single(1e-3), single(-1e-3))
    assert judge(pair, comparison(TRUTH, TRUTH, line=2)).verdict == UNKNOWN


@pytest.mark.parametrize(("flips", "verdict"), [(1, ROUNDING), (3, ROUNDING), (300, FARTHER)])
def test_few_elements_on_the_other_side_of_a_jump_are_rounding(flips, verdict):
    truth = np.random.RandomState(0).randn(1000)
    runs = [truth * (1 + 1e-6), truth * (1 - 1e-6)]
    runs[1][:flips] = 0
    pair = comparison(*(run.astype(np.float32) for run in runs))
    conditioning = judge(pair, comparison(truth, truth))
    assert (conditioning.verdict, conditioning.has_jumps) == (verdict, verdict == ROUNDING)


def test_a_jump_hides_no_run_that_is_farther():
    truth = np.random.RandomState(0).randn(1000)
    runs = [truth * (1 + 1e-6), truth * (1 - 1e-4)]
    runs[1][0] = 0
    pair = comparison(*(run.astype(np.float32) for run in runs))
    assert judge(pair, comparison(truth, truth)).verdict == FARTHER
