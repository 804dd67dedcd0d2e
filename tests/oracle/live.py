"""Every sample of every operator against the installed PyTorch, with values that no run had before.

make oracle     (SEED=17 repeats a run: a failure names its seed)
"""

import os
import secrets
import warnings

import checks
import derivatives
import pytest
from oracle import record_operators
from problems import Problem
from samples import families

# kl_div warns of its mean, as PyTorch does
pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")

SEED = int(os.environ.get("SEED") or 1 + secrets.randbelow(2**30))
SAMPLES = [(family, sample) for family, samples in families().items() for sample in samples]


@pytest.mark.parametrize(
    ("family", "sample"), SAMPLES, ids=[f"{family}-{sample}" for family, sample in SAMPLES]
)
def test_answers(family, sample):
    findings = derivatives.Findings()
    for field in sample.fields:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of PyTorch are not ours
            answer = record_operators.answer(sample, field, SEED)
        problem = Problem(sample, field, answer, SEED)
        derivatives.answers(problem, findings)
        if "float32" in answer:
            derivatives.answers_in_float32(problem, findings)
    checks.count(family, findings.made)
    assert not findings, "\n".join([f"SEED={SEED}", *findings])
