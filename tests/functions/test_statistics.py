"""Covariances: errors, edges and gradients."""

import numpy
import pytest
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals
from numpy import nan

import jaxgrad

REFUSED = [
    (
        "torch.cov(zeros(2, 3), fweights=tensor([1, -2, 3]))",
        RuntimeError,
        "cov(): fweights cannot be negative",
    ),
]

ANSWERS = [
    ("torch.cov(tensor(2.0))", "float32", nan),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
@pytest.mark.filterwarnings("ignore:cov")
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.slow
def test_gradient_of_a_covariance_with_weights():
    random = numpy.random.RandomState(0)
    x = jaxgrad.tensor(random.uniform(-1, 1, (2, 4)), requires_grad=True)
    weights = jaxgrad.tensor(random.uniform(0.5, 1, 4), requires_grad=True)
    counts = jaxgrad.tensor([1, 2, 3, 1])
    assert jaxgrad.autograd.gradcheck(
        lambda x, w: jaxgrad.cov(x, fweights=counts, aweights=w), (x, weights)
    )


def test_covariance_without_degrees_of_freedom_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        jaxgrad.cov(jaxgrad.tensor([[1.0, 2.0]]), correction=2)
