"""`jaxgrad compare` with the installed PyTorch, on new seeds in each run.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import sys
from pathlib import Path

import pytest
from helpers import compared_runs
from oracle.seed import SEED

from jaxgrad.compare import children, conditioning
from jaxgrad.compare.difference import Comparison

SCRIPTS = sorted((Path(__file__).parent / "same_seed").glob("*.py"))
OTHERS = sorted((Path(__file__).parent / "compared").glob("*.py"))


def runs(script, **options):
    settings = {"script": str(script), "arguments": [], "seed": SEED, **options}
    libraries = ("torch", "jaxgrad")
    return [children.run_under(library, sys.executable, settings) for library in libraries]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_one_seed_gives_the_same_training(script):
    first, second = runs(script)
    assert [run.end["error"] for run in (first, second)] == [None, None]
    comparison = Comparison(first, second)
    assert comparison.difference is None, comparison.difference
    assert len(first.losses) >= 20
    assert second.losses == pytest.approx(first.losses, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("script", OTHERS, ids=[script.stem for script in OTHERS])
def test_programs_of_other_kinds_are_equal(script):
    first, second = runs(script)
    assert [run.end["error"] for run in (first, second)] == [None, None]
    comparison = Comparison(first, second)
    assert comparison.difference is None, comparison.difference
    assert comparison.compared > 20


def test_compiled_functions_are_training_steps():
    (compiled,) = (script for script in OTHERS if script.stem == "compiled")
    for run in runs(compiled):
        calls = [record for record in run.records if record.name == "step"]
        assert [record.step for record in calls] == [4, 5, 6, 7]


@pytest.fixture(scope="module")
def faulty():
    settings = compared_runs.SETTINGS
    first = children.run_under("torch", sys.executable, settings)
    return first, compared_runs.under_jaxgrad(compared_runs.NAMES)


@pytest.mark.parametrize("fault", compared_runs.NAMES)
def test_a_fault_is_seen_at_its_line(fault, faulty):
    first, others = faulty
    _, line, _ = Comparison(first, others[fault]).difference.place
    assert line in compared_runs.lines_of(fault)


def judged(script, **options):
    single, double = (
        Comparison(*runs(script, double=double, **options)) for double in (False, True)
    )
    return single, conditioning.judge(single, double)


def test_a_small_fault_is_seen_in_double_precision(monkeypatch):
    monkeypatch.setenv("FAULT", "small epsilon")
    single, verdict = judged(compared_runs.FAULTS / "train.py")
    assert single.difference is None
    assert verdict.verdict == conditioning.FAULT
    assert verdict.difference.place[1] in compared_runs.lines_of("epsilon")


def test_an_ill_conditioned_script_differs_by_rounding():
    single, verdict = judged(compared_runs.FAULTS / "ill_conditioned.py")
    assert single.difference is not None
    assert verdict.verdict == conditioning.ROUNDING
    assert verdict.between < 1e-11
    assert all(1e-5 < gap < 1e-2 for gap in verdict.gradients)


def test_gradients_of_densenet_differ_by_rounding():
    script = Path(__file__).parent / "conditioning" / "densenet.py"
    _, verdict = judged(script, modules=True)
    assert verdict.verdict == conditioning.ROUNDING and verdict.between < 1e-8
    assert min(verdict.gradients) > 1e-3
