"""Methods of early PyTorch: errors and answers."""

from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    ("zeros(2).as_subclass(int)", TypeError, "class that does not inherit from Tensor"),
    ("zeros(2).as_subclass(3)", TypeError, "cls must be a type (got int)"),
    ("zeros(2).new(2.5)", TypeError, "data must be a sequence (got float)"),
    ("zeros(2).apply_(lambda x: 'a')", TypeError, "must be real number, not str"),
    ("zeros(2).requires_grad_().apply_(abs)", RuntimeError, "Can't call apply_() on Variable that"),
    ("zeros(2).map_(tensor([1, 2]), max)", TypeError, "map_: expected torch.FloatTensor for"),
    ("zeros(2).pin_memory()", RuntimeError, "Cannot access accelerator device when none is"),
]

ANSWERS = [
    ("zeros(2).new([[1, 2]])", "float32", [[1.0, 2.0]]),
    ("zeros(2).new()", "float32", []),
    ("tensor([1, 2]).apply_(lambda x: x + 1.7)", "int64", [2, 3]),
    ("tensor([[1, 2]]).map_(tensor(3), lambda x, y: x * y)", "int64", [[3, 6]]),
    ("zeros(1).map2_(zeros(1), tensor([2.0]), lambda x, y, z: x + y - z)", "float32", [-2.0]),
    (
        "torch.masked_select(tensor([1, 2]), tensor([False, True]), out=zeros(0).long())",
        "int64",
        [2],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_in_place_operators_and_masked_select_of_early_pytorch():
    x = jaxgrad.zeros(1, 3)
    assert ops.transpose_(x, 0, 1).shape == x.shape == (3, 1)
    assert ops.squeeze_(x, 1).shape == (3,)
    assert ops.unsqueeze_(x, 0).shape == (1, 3)
    assert ops.masked_select(x, x == 0).tolist() == [0.0] * 3
