"""Comparisons, logic and bits: errors, promotion, nan and complex numbers as PyTorch has them;
results without a history, and programs of one primitive."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import (
    answers,
    check_answer,
    check_refusal,
    evaluated,
    primitives,
    refusals,
)

import jaxgrad
from jaxgrad import ops

REFUSED = [
    (
        "torch.lt(tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "torch.lt(tensor([1 + 2j, 3j]), 1)",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    (
        "torch.ge(tensor([1.0]), tensor([1j]))",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    (
        "~tensor([1.0])",
        TypeError,
        "~ (operator.invert) is only implemented on integer and Boolean-type tensors",
    ),
    ("torch.bitwise_not(tensor([1.0]))", NotImplementedError, "not implemented for 'Float'"),
    ("torch.le(tensor([1]), 1j)", NotImplementedError, "not implemented for 'ComplexFloat'"),
    (
        "torch.eq(zeros(2), zeros(3))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "torch.logical_and(zeros(2), zeros(3))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "torch.logical_xor(zeros(1, 2), zeros(3))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "torch.bitwise_and(tensor([1, 2]), tensor([1, 2, 3]))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton",
    ),
    (
        "torch.bitwise_and(tensor([1.0]), tensor([1.0]))",
        NotImplementedError,
        "not implemented for 'Float'",
    ),
    ("torch.bitwise_or(tensor([1]), 1.5)", NotImplementedError, "not implemented for 'Float'"),
    (
        "torch.bitwise_xor(tensor([1j]), tensor([1]))",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    ("torch.bitwise_not(tensor([1.0]))", NotImplementedError, "not implemented for 'Float'"),
    ("torch.bitwise_left_shift(tensor([1.0]), 1)", NotImplementedError, "for 'Float'"),
    ("tensor([True]) >> tensor([True])", NotImplementedError, "not implemented for 'Bool'"),
    ("torch.isposinf(tensor([1j]))", RuntimeError, "isposinf does not support complex inputs."),
    ("torch.isclose(tensor([1]), tensor([1.0]))", RuntimeError, "Long did not match Float"),
    (
        "torch.isclose(tensor([1]), tensor([1]), rtol=-1)",
        RuntimeError,
        "rtol must be greater than or equal to zero, but got -1",
    ),
    ("torch.allclose(tensor([1.0]), 1.0)", TypeError, "must be Tensor, not float"),
    (
        "torch.isin(tensor([1j]), tensor([1j]))",
        RuntimeError,
        "encountered for isin(): ComplexFloat",
    ),
    ("torch.isin(tensor([True]), tensor([True]))", RuntimeError, "encountered for isin(): Bool"),
    (
        "torch.is_nonzero(zeros(2))",
        RuntimeError,
        "Boolean value of Tensor with more than one value",
    ),
    ("torch.where(tensor([1.0]), 1)", TypeError, "where()"),
    (
        "torch.eq(tensor([1]), 'a')",
        TypeError,
        "eq() received an invalid combination of arguments - got (Tensor, str), but expected",
    ),
]

ANSWERS = [
    # operands are converted to their common dtype before they are compared
    ("tensor([2**53 + 1]) == float(2**53)", "bool", [True]),
    ("tensor([255], dtype=torch.uint8) == -1", "bool", [True]),
    ("tensor([1], dtype=torch.int8) < 300", "bool", [True]),
    ("tensor([0.1]) == 0.1", "bool", [True]),
    ("tensor([0.1]) == tensor(0.1, dtype=torch.float64)", "bool", [True]),
    ("tensor([0.1]) == tensor([0.1], dtype=torch.float64)", "bool", [False]),
    ("tensor([1 + 0j, 1 + 1j]) == 1", "bool", [True, False]),
    ("tensor([True]) < tensor([False])", "bool", [False]),
    # nan and signed zeros
    ("tensor([nan, 0.0]) == tensor([nan, -0.0])", "bool", [False, True]),
    ("tensor([nan, 0.0]) != tensor([nan, -0.0])", "bool", [True, False]),
    ("torch.logical_and(tensor([nan, 0.0, 2.0]), tensor([1, 1, 0]))", "bool", [True, False, False]),
    # truth of numbers that are no booleans
    ("torch.logical_xor(tensor([2.0, 0.0]), tensor([True, True]))", "bool", [False, True]),
    ("torch.logical_not(tensor([0j, 1j]))", "bool", [True, False]),
    ("torch.logical_not(tensor([0, 3], dtype=torch.int8))", "bool", [True, False]),
    # bits
    ("torch.bitwise_not(tensor([0, 255], dtype=torch.uint8))", "uint8", [255, 0]),
    ("torch.bitwise_not(tensor([True, False]))", "bool", [False, True]),
    (
        "torch.bitwise_and(tensor([6], dtype=torch.uint8), tensor([-2], dtype=torch.int8))",
        "int16",
        [6],
    ),
    ("torch.bitwise_xor(tensor([True]), 3)", "int64", [2]),
    ("torch.bitwise_or(4, tensor([1], dtype=torch.uint8))", "uint8", [5]),
    # complex numbers are infinite or nan where a part is
    ("torch.isnan(tensor([complex(0, nan), 1j]))", "bool", [True, False]),
    (
        "torch.isinf(tensor([complex(inf, nan), complex(nan, -inf), complex(nan, 0)]))",
        "bool",
        [True, True, False],
    ),
    (
        "torch.isfinite(tensor([complex(0, inf), 1j, complex(0, nan)]))",
        "bool",
        [False, True, False],
    ),
    ("torch.isfinite(tensor([65504.0, 65536.0], dtype=torch.float16))", "bool", [True, False]),
    ("torch.isnan(tensor([1]))", "bool", [False]),
    ("tensor([1, -8]) << tensor([2, 1])", "int64", [4, -16]),
    ("tensor([1, -8]) >> 70", "int64", [0, -1]),
    ("2 << tensor([1, 3])", "int64", [4, 16]),
    ("tensor([True]) << 1", "int64", [2]),
    ("tensor([1], dtype=torch.uint8) << 300", "uint8", [0]),
    ("tensor([1], dtype=torch.int8) << -1", "int8", [0]),
    ("tensor([-1], dtype=torch.int8) >> -1", "int8", [-1]),
    ("tensor([128], dtype=torch.uint8) >> 3", "uint8", [16]),
    ("tensor([5, -3]).bitwise_left_shift_(1)", "int64", [10, -6]),
    ("tensor([5, -3]).__irshift__(1)", "int64", [2, -2]),
    # closeness
    ("torch.isclose(tensor([1, 2]), tensor([2, 5]), atol=1)", "bool", [True, False]),
    (
        "torch.isclose(tensor([nan, inf, inf]), tensor([nan, inf, -inf]), equal_nan=True)",
        "bool",
        [True, True, False],
    ),
    ("torch.isclose(tensor([nan]), tensor([nan]))", "bool", [False]),
    ("torch.isreal(tensor([1 + 2j, 3 + 0j]))", "bool", [False, True]),
    ("torch.isin(tensor([nan, 1.0]), tensor([nan, 1]))", "bool", [False, True]),
    ("torch.isin(5, tensor([[5, 6]]), invert=True)", "bool", False),
    # one argument: the indices of nonzero elements
    ("torch.where(tensor([0.0, 2.0, nan]))[0]", "int64", [1, 2]),
    ("torch.where(tensor([[True, False], [True, True]]))[1]", "int64", [0, 0, 1]),
    ("torch.where(tensor(True))[0]", "int64", [0]),
    # shapes without elements
    ("zeros(0, 3) == zeros(3)", "bool", numpy.zeros((0, 3))),
    ("torch.eq(zeros(2, 1), zeros(0))", "bool", numpy.zeros((2, 0))),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.equal(tensor([1]), tensor([1.0]))", True),
        ("torch.equal(zeros(2), zeros(2, 1))", False),
        ("torch.equal(zeros(0), zeros(0))", True),
        ("torch.allclose(tensor([1.0]), tensor([1.0 + 1e-6]))", True),
        ("tensor([1.0]).allclose(tensor([1.1]), rtol=0.2)", True),
        ("torch.allclose(tensor([nan]), tensor([nan]), equal_nan=True)", True),
        ("torch.is_nonzero(tensor([[0.3]]))", True),
        ("torch.is_same_size(zeros(2), zeros(3))", False),
        ("tensor([1.0]).is_neg()", False),
        ("torch.is_signed(tensor([1], dtype=torch.uint8))", False),
    ],
)
def test_comparisons_with_one_bool_match_pytorch(call, expected):
    assert evaluated(jaxgrad, call) is expected
    count("answers")


@pytest.mark.parametrize("name", ["eq", "lt", "logical_and", "bitwise_not", "isnan"])
def test_results_have_no_history(name):
    x = jaxgrad.tensor([1, 0]) if name == "bitwise_not" else jaxgrad.ones(2, requires_grad=True)
    operands = (x,) if name in ("bitwise_not", "isnan") else (x, x)
    result = getattr(jaxgrad, name)(*operands)
    assert not result.requires_grad and result.grad_fn is None and result.is_leaf
    count("closed forms")


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_a_comparison_of_one_dtype_is_one_primitive(name):
    program = jax.make_jaxpr(getattr(ops, name))(jnp.ones(3), jnp.ones(3))
    assert [*primitives(program)] == [name]
    count("programs")


def test_a_comparison_does_not_disturb_the_gradient_of_what_it_chooses():
    x = jaxgrad.tensor([-1.0, 2.0], requires_grad=True)
    jaxgrad.where(x > 0, x * 3, x * 5).sum().backward()
    assert x.grad.tolist() == [5.0, 3.0]
    count("closed forms")
