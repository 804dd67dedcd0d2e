"""Every sample of every operator (samples/), by the checks of derivatives.py.

python -m pytest tests/ops/test_operators.py -k pointwise     (one family)

`make test` takes the first sample of every twelfth operator. What depends on the operator more than
on its arguments is checked with the first sample: of each for first derivatives, and of every third
operator for vmap, jit and second derivatives; `make oracle` checks it with all.
"""

import pytest
from helpers import checks, derivatives, recorded

# kl_div warns of its mean, as PyTorch's does
pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")


def rank(family, sample) -> int:
    """How many samples of the operator come before this one."""
    same = [candidate for candidate in recorded.FAMILIES[family] if candidate.name == sample.name]
    return next(number for number, candidate in enumerate(same) if candidate is sample)


NAMES = sorted({sample.name for _, sample in recorded.SAMPLES})


def parameters(family, sample):
    is_slow = rank(family, sample) or NAMES.index(sample.name) % 12
    marks = [pytest.mark.slow] if is_slow else []
    return pytest.param(family, sample, id=f"{family}-{sample}", marks=marks)


every_sample = pytest.mark.parametrize(
    ("family", "sample"), [parameters(*pair) for pair in recorded.SAMPLES]
)


def first_samples(count, step=1):
    """The first `count` samples of every operator, or of every third one with `step` 3."""
    names = set(NAMES[::step])
    return [
        parameters(family, sample)
        for family, sample in recorded.SAMPLES
        if sample.name in names and rank(family, sample) < count
    ]


FIRST_ORDER, SECOND_ORDER = first_samples(1), first_samples(1, step=3)


def problems(family, sample):
    return [recorded.problem(family, sample, field) for field in sample.fields]


def report(family, findings):
    checks.count(family, findings.compared)
    assert not findings, "\n".join(findings)


@every_sample
def test_answers(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        derivatives.answers(problem, findings)
        if "float32" in problem.recorded:
            derivatives.answers_in_float32(problem, findings)
    report(family, findings)


@pytest.mark.parametrize(("family", "sample"), FIRST_ORDER)
def test_first_order(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        if derivatives.has_derivative(problem):
            derivatives.first_order(problem, findings)
    report(family, findings)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "sample"), SECOND_ORDER)
def test_batched_and_compiled(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        derivatives.batched(problem, findings)
        derivatives.under_jit(problem, findings)
    report(family, findings)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "sample"), SECOND_ORDER)
def test_second_order(family, sample):
    findings = derivatives.Findings()
    for problem in problems(family, sample):
        if derivatives.has_derivative(problem) and not sample.kink:
            derivatives.second_order(problem, findings)
    report(family, findings)


@pytest.mark.parametrize("family", recorded.FAMILIES)
def test_every_sample_is_recorded_and_once(family):
    ids = [sample.id for sample in recorded.FAMILIES[family]]
    assert len(set(ids)) == len(ids)
    recorded.check_complete(recorded.answers_of(family), recorded.FAMILIES[family])
