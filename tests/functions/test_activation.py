"""Activations that PyTorch composes: rows of a softmax that exclude all elements."""

import pytest
from helpers.pytorch_answers import answers, check_answer

import jaxgrad

ANSWERS = [
    (
        "torch._safe_softmax(tensor([[-inf, -inf], [0.0, -inf]]), 1)",
        "float32",
        [[0.0, 0.0], [1.0, 0.0]],
    ),
    ("torch._safe_softmax(tensor([0, 0]), 0, dtype=torch.float64)", "float64", [0.5, 0.5]),
]


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradient_of_an_excluded_row_is_zero(is_compiled):
    x = jaxgrad.tensor([[-jaxgrad.inf] * 3, [1.0, 2.0, -jaxgrad.inf]], requires_grad=True)
    weights = jaxgrad.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])

    def loss(x):
        return (jaxgrad.ops.aten._safe_softmax.default(x, 1) * weights).sum()

    (jaxgrad.compile(loss) if is_compiled else loss)(x).backward()
    expected = [[0.0, 0.0, 0.0], [-0.1966119, 0.1966119, 0.0]]
    jaxgrad.testing.assert_close(x.grad, jaxgrad.tensor(expected))
