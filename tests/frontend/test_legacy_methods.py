"""Methods of early PyTorch: errors and answers."""

import pytest
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


def test_methods_of_python_2():
    x = jaxgrad.tensor([2.0])
    assert x.__long__() == 2 and x.__nonzero__() is True
    assert x.__div__(4).tolist() == [0.5] and (3 / x).tolist() == x.__rdiv__(3).tolist() == [1.5]
    assert x.__idiv__(4) is x and x.tolist() == [0.5]


def test_methods_of_other_kinds_of_tensors():
    x = jaxgrad.ones(2)
    for name in ("q_scale", "int_repr", "qscheme", "q_per_channel_axis"):
        with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}'.*quantized"):
            getattr(x, name)()
    with pytest.raises(NotImplementedError, match=r"'aten::to_padded_tensor'.*for nested tensors"):
        x.to_padded_tensor(0.0)
    assert jaxgrad.tensor([1, 2]).dequantize().dtype is jaxgrad.float32


def test_numbers_loaded_by_a_module():
    target, source = jaxgrad.zeros(2, requires_grad=True), jaxgrad.ones(2, requires_grad=True)
    assert target.module_load(source, assign=True).tolist() == [1, 1] and target.sum().item() == 0
    with jaxgrad.no_grad():
        loaded = target.module_load(source)
    assert target.tolist() == [1, 1] and not loaded.requires_grad
