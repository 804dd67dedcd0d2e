"""Every sample of every operator against the installed PyTorch, with new random values in each run.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import pathlib
import shutil
import warnings

import pytest
from helpers import checks, derivatives, recorded
from helpers.answers import as_json, load
from helpers.problems import Problem
from oracle import record_operators
from oracle.seed import SEED

# kl_div warns of its mean, as PyTorch does
pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")


@pytest.mark.parametrize(
    ("family", "sample"),
    recorded.SAMPLES,
    ids=[f"{family}-{sample}" for family, sample in recorded.SAMPLES],
)
def test_answers(family, sample):
    findings = derivatives.Findings()
    for field in sample.fields:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of PyTorch do not count
            answer = record_operators.answer(sample, field, SEED)
        problem = Problem(sample, field, answer, SEED)
        derivatives.answers(problem, findings)
        if "float32" in answer:
            derivatives.answers_in_float32(problem, findings)
    checks.count(family, findings.compared)
    assert not findings, "\n".join([f"SEED={SEED}", *findings])


@pytest.mark.parametrize("operators", [[], ["neg"]], ids=["all", "named"])
def test_recording_again_changes_no_byte(operators, tmp_path, monkeypatch):
    originals = [recorded.NODE_NAMES, *map(recorded.path_of, recorded.FAMILIES)]
    copies = [pathlib.Path(shutil.copy(path, tmp_path)) for path in originals]
    names = copies[0]
    without_neg = {id: told for id, told in load(names).items() if not id.startswith("neg(")}
    names.write_text(as_json(without_neg))
    monkeypatch.setattr(recorded, "path_of", lambda family: tmp_path / f"{family}.answers.json")
    monkeypatch.setattr(recorded, "NODE_NAMES", names)
    record_operators.main(operators)
    for copy, original in zip(copies, originals, strict=True):
        assert copy.read_bytes() == original.read_bytes(), original.name
