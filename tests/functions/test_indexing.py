"""Places of elements: errors and answers of unravel_index, nonzero_static and argwhere."""

from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.unravel_index(tensor(1.0), (2,))", TypeError, "expected 'indices' to be integer dtype"),
    ("torch.unravel_index(tensor(1), 2.0)", TypeError, "expected 'shape' to be int or sequence of"),
    ("torch.unravel_index(tensor(1), (2, -3))", ValueError, "'shape' cannot have negative values"),
    ("torch.nonzero_static(zeros(2), size=-1)", RuntimeError, "must be an non-negative integer"),
]

ANSWERS = [
    ("torch.unravel_index(tensor(-1), (2, 3))[1]", "int64", 2),
    ("torch.unravel_index(zeros(0, dtype=torch.int32), (2, 0))[1]", "int64", []),
    ("torch.argwhere(tensor(3.0)).sum(1)", "int64", [0]),
    ("torch.nonzero_static(tensor([0, 5]), size=2)", "int64", [[1], [-1]]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)
