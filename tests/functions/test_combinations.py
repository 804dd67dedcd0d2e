"""Combinations of elements."""

from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.combinations(zeros(2, 2))", RuntimeError, "Expect a 1D vector, but got shape [2, 2]"),
]

ANSWERS = [
    ("torch.combinations(tensor([1, 2]), 0)", "int64", []),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)
