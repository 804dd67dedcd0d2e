"""Vandermonde matrices."""

import pytest
from helpers.pytorch_answers import check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.linalg.vander(zeros(3), N=1)", RuntimeError, "N must be greater than 1."),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@pytest.mark.slow
def test_gradient_of_vander():
    x = jaxgrad.tensor([2.0, 0.0, -3.0], requires_grad=True)
    jaxgrad.vander(x, 4).sum().backward()
    assert x.grad.tolist() == [1 + 2 * 2 + 3 * 4, 1, 1 - 6 + 27]
