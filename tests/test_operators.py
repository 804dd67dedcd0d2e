"""Every sample of every operator (samples/), by the checks of derivatives.py.

python -m pytest tests/test_operators.py -k pointwise     (one family)
"""

import json
from pathlib import Path

import checks
import derivatives
import pytest
from problems import Problem
from samples import families

FOLDER = Path(__file__).parent / "oracle" / "operators"
RECORD = "run: python tests/oracle/record_operators.py"


def recording(family):
    path = FOLDER / f"{family}.json"
    return json.loads(path.read_text()) if path.exists() else {}


FAMILIES = families()
RECORDED = {family: recording(family) for family in FAMILIES}
SAMPLES = [(family, sample) for family, samples in FAMILIES.items() for sample in samples]


def parameters(slow=lambda family, sample: False):
    """All samples, those marked for which `slow` says so."""
    return pytest.mark.parametrize(
        ("family", "sample"),
        [
            pytest.param(*each, id=f"{each[0]}-{each[1]}", marks=[pytest.mark.slow] * slow(*each))
            for each in SAMPLES
        ],
    )


def is_repeated(family, sample):
    """Whether the operator has a sample before this one."""
    return sample is not next(s for s in FAMILIES[family] if s.name == sample.name)


def problems(family, sample):
    """The sample over each of its fields."""
    answers = RECORDED[family].get(sample.id, {})
    for field in sample.fields:
        assert field in answers, f"{sample} over the {field} numbers is not recorded; {RECORD}"
        yield Problem(sample, field, answers[field])


def report(family, findings):
    checks.count(family, findings.made)
    assert not findings, "\n".join(findings)


@parameters()
def test_answers(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        derivatives.answers(problem, findings)
        if "float32" in problem.recorded:
            derivatives.answers_in_float32(problem, findings)
    report(family, findings)


@parameters(slow=is_repeated)
def test_first_order(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        if derivatives.has_derivative(problem):
            derivatives.first_order(problem, findings)
    report(family, findings)


@parameters(slow=is_repeated)
def test_batched_and_compiled(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        derivatives.batched(problem, findings)
        derivatives.under_jit(problem, findings)
    report(family, findings)


@parameters(slow=lambda family, sample: True)
def test_second_order(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        if derivatives.has_derivative(problem) and not sample.kink:
            derivatives.second_order(problem, findings)
    report(family, findings)


@pytest.mark.parametrize("family", FAMILIES)
def test_recording_is_of_these_samples(family):
    ids = [sample.id for sample in FAMILIES[family]]
    assert list(RECORDED[family]) == ids, RECORD
