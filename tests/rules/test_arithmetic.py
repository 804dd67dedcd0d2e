"""Arithmetic and powers: errors, wrap-around, signs and rounding of quotients as PyTorch has them;
derivatives that PyTorch lacks or has wrong, against closed forms; programs without waste."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

INFINITE = numpy.inf

REFUSED = [
    (
        "torch.add(tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0]))",
        RuntimeError,
        "must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    (
        "torch.mul(tensor([[1.0], [2.0]]), tensor([[1.0], [1.0], [1.0]]))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at",
    ),
    (
        "torch.sub(tensor([True, False]), tensor([True, False]))",
        RuntimeError,
        "with two bool tensors is not supported. Use the `^` or",
    ),
    (
        "torch.sub(tensor([3, 4]), tensor([True, False]))",
        RuntimeError,
        "with a bool tensor is not supported",
    ),
    ("torch.rsub(tensor([True, False]), 1)", RuntimeError, "with a bool tensor is not supported"),
    ("torch.sub(True, tensor([3.0, 4.0]))", RuntimeError, "with a bool tensor is not supported"),
    (
        "torch.neg(tensor([True, False]))",
        RuntimeError,
        "Negation, the `-` operator, on a bool tensor is not supported",
    ),
    (
        "torch.positive(tensor([True, False]))",
        RuntimeError,
        "The `+` operator, on a bool tensor is not supported",
    ),
    (
        "torch.add(tensor([3, 4]), tensor([3, 4]), alpha=1.5)",
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating",
    ),
    (
        "torch.add(tensor([3, 4]), tensor([3, 4]), alpha=1.0)",
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating",
    ),
    (
        "torch.addcdiv(tensor([3.0]), tensor([3]), tensor([3]))",
        RuntimeError,
        "Integer division with addcdiv is no longer supported",
    ),
    (
        "torch.addcmul(*[tensor([True])] * 3)",
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
    (
        "torch.add(tensor([3, 4]), tensor([3, 4]), alpha=True)",
        RuntimeError,
        "Boolean alpha only supported for Boolean results",
    ),
    (
        "torch.sub(tensor([1.0]), tensor([1.0]), alpha=1j)",
        RuntimeError,
        "For non-complex input tensors, argument alpha must not be",
    ),
    (
        "torch.addcdiv(tensor([3]), tensor([3]), tensor([3]))",
        RuntimeError,
        "Integer division with addcdiv is no longer supported",
    ),
    (
        "torch.div(tensor([1.0]), tensor([1.0]), rounding_mode='ceil')",
        RuntimeError,
        "one of None, 'trunc', or 'floor' but found 'ceil'",
    ),
    (
        "torch.div(tensor([3, 4]), tensor([1, 0]), rounding_mode='floor')",
        RuntimeError,
        "ZeroDivisionError",
    ),
    ("torch.floor_divide(tensor([3, 4]), 0)", RuntimeError, "ZeroDivisionError"),
    ("torch.remainder(tensor([3, 4]), 0)", RuntimeError, "ZeroDivisionError"),
    ("torch.fmod(tensor([3, 4]), tensor([0, 1]))", RuntimeError, "ZeroDivisionError"),
    (
        "torch.pow(tensor([3, 4]), -1)",
        RuntimeError,
        "Integers to negative integer powers are not allowed",
    ),
    (
        "torch.pow(tensor([3, 4]), -5)",
        RuntimeError,
        "Integers to negative integer powers are not allowed",
    ),
    (
        "torch.pow(tensor([True, False]), tensor([True, False]))",
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
    (
        "torch.remainder(tensor([1 + 2j]), tensor([3j]))",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    ("torch.abs(tensor([True, False]))", NotImplementedError, "not implemented for 'Bool'"),
    (
        "torch.sign(tensor([1 + 2j, 3j]))",
        NotImplementedError,
        "torch.sign is not intended to support complex numbers",
    ),
    # numbers that integers cannot hold
    ("tensor([3], dtype=torch.int8) ** 200", RuntimeError, "type int8_t without overflow"),
    ("tensor([3], dtype=torch.uint8) ** 2**40", RuntimeError, "type uint8_t without overflow"),
    ("tensor([3]) ** 2**63", RuntimeError, "type int64_t without overflow"),
    (
        "torch.addcmul(*[tensor([3], dtype=torch.int8)] * 3, value=300)",
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    ("tensor([3], dtype=torch.int32) // 2**40", RuntimeError, "ZeroDivisionError"),
    ("tensor([3.0]) * 2**64", OverflowError, "int too big to convert"),
    ("tensor([3.0]) * (-(2**63) - 1)", OverflowError, "can't convert negative int to unsigned"),
]

ANSWERS = [
    # integers wrap round
    ("tensor([200], dtype=torch.uint8) + tensor([100], dtype=torch.uint8)", "uint8", [44]),
    ("-tensor([-128], dtype=torch.int8)", "int8", [-128]),
    ("abs(tensor([-128], dtype=torch.int8))", "int8", [-128]),
    ("tensor([2**62]) * 4", "int64", [0]),
    ("tensor([3]) ** 40", "int64", [-6289078614652622815]),
    ("tensor([3]) ** 65", "int64", [7752514261426648835]),
    (
        "tensor([3, -3, 2]) ** tensor([64, 65, 64])",
        "int64",
        [8733086111712066817, -7752514261426648835, 0],
    ),
    ("3 ** tensor([65])", "int64", [7752514261426648835]),
    ("tensor([3, 5, 7, 2], dtype=torch.uint8) ** 65", "uint8", [3, 5, 7, 0]),
    ("tensor([3]) ** 2**40", "int64", [-7860764868738023423]),
    ("300 ** tensor([1, 65], dtype=torch.int8)", "int8", [44, 0]),
    # integers of more than 32 bits
    ("tensor([1.0, -2.0]) * 3_000_000_000", "float32", [3e9, -6e9]),
    ("2**40 / tensor([2.0])", "float32", [2.0**39]),
    ("tensor([1.5], dtype=torch.bfloat16) + 2**40", "bfloat16", [2.0**40]),
    ("tensor([2.0]) * (2**63 + 2**62)", "float32", [3 * 2.0**63]),
    ("tensor([1], dtype=torch.int32) + 2**40", "int32", [1]),
    ("tensor([1]) + 2**40", "int64", [2**40 + 1]),
    ("tensor([True]) * 2**40", "int64", [2**40]),
    ("tensor([2.0]) < -(2**31) - 1", "bool", [False]),
    # a boolean is a number, also beside what is not finite
    ("tensor([False, True]) * nan", "float32", [numpy.nan, numpy.nan]),
    ("tensor([inf, -2.0]) * tensor([False, False])", "float32", [numpy.nan, -0.0]),
    ("tensor([False, True]) / 0", "float32", [numpy.nan, numpy.inf]),
    ("tensor([False]) / -5", "float32", [-0.0]),
    ("tensor([False]).to(torch.float64) * -inf", "float64", [numpy.nan]),
    # half precision is rounded once
    (
        "torch.addcmul(*tensor([[1.0], [1.0078125], [-0.99609375]], dtype=torch.bfloat16))",
        "bfloat16",
        [1 - 1.0078125 * 0.99609375],
    ),
    ("tensor([1.099609375], dtype=torch.float16) // 1.1", "float16", [0.0]),
    (
        "tensor([0.99], dtype=torch.float64)[0] // tensor([0.99], dtype=torch.float16)",
        "float16",
        [1.0],
    ),
    # a factor and a divisor keep their digits, those of 0.7123 and 257 beside bfloat16
    ("tensor([1.5, 3.0], dtype=torch.bfloat16) * 0.7123", "bfloat16", [1.0703125, 2.140625]),
    ("tensor([37.0], dtype=torch.bfloat16).mul_(0.7123)", "bfloat16", [26.375]),
    ("tensor([300.0], dtype=torch.bfloat16) * tensor(257)", "bfloat16", [77312.0]),
    ("tensor([7.0], dtype=torch.bfloat16) / tensor(0.7123)", "bfloat16", [9.8125]),
    ("0.7123 * tensor([3.0], dtype=torch.bfloat16)", "bfloat16", [2.140625]),
    # quotients and remainders: signs, infinities, and the floor of the exact quotient
    ("tensor([-7, 7, -7]) // tensor([2, -2, -2])", "int64", [-4, -4, 3]),
    ("tensor([-7, 7, -7]) % tensor([2, -2, -2])", "int64", [1, -1, -1]),
    ("torch.fmod(tensor([-7, 7, -7]), tensor([2, -2, -2]))", "int64", [-1, 1, -1]),
    ("torch.div(tensor([-7, 7]), 2, rounding_mode='trunc')", "int64", [-3, 3]),
    ("torch.remainder(5, tensor([3, -3]))", "int64", [2, -1]),
    ("tensor([0.3, 1.0], dtype=torch.float64) // 0.1", "float64", [2.0, 9.0]),
    ("tensor([5.3, -5.3]) // 0", "float32", [numpy.inf, -numpy.inf]),
    ("tensor([1.0, -1.0]) // inf", "float32", [0.0, -1.0]),
    ("tensor([-inf, inf]) // 2.0", "float32", [numpy.nan, numpy.nan]),
    ("tensor([-1.0]) % inf", "float32", [numpy.inf]),
    # powers
    ("tensor([0, 1, -1, 2]) ** tensor([-1, -1, -1, -1])", "int64", [0, 1, -1, 0]),
    ("tensor([0.0, nan]) ** 0", "float32", [1.0, 1.0]),
    ("1 ** tensor([nan])", "float32", [1.0]),
    ("torch.pow(tensor([True]), 2)", "int64", [1]),
    ("2 ** tensor([3])", "int64", [8]),
    # dtypes of results
    ("tensor([True]) + tensor([True])", "bool", [True]),
    ("tensor([1], dtype=torch.uint8) / 2", "float32", [0.5]),
    ("tensor([2.0], dtype=torch.float16) + tensor([1.0], dtype=torch.bfloat16)", "float32", [3.0]),
    ("tensor([1.0]) + tensor(1.0, dtype=torch.float64)", "float32", [2.0]),
    ("tensor([65504.0], dtype=torch.float16) * 2", "float16", [numpy.inf]),
    ("abs(tensor([3 + 4j]))", "float32", [5.0]),
    ("torch.rsqrt(tensor([4]))", "float32", [0.5]),
    ("torch.sqrt(tensor([-1 + 0j]))", "complex64", [1j]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize("name", ["add", "mul", "where", "lt"])
def test_a_broadcast_error_names_the_operator(name):
    two, three = jaxgrad.zeros(2), jaxgrad.zeros(3)
    arguments = (three > 0, three, two) if name == "where" else (two, three)
    with pytest.raises(RuntimeError, match=f"at non-singleton dimension 0: {name}"):
        getattr(jaxgrad, name)(*arguments)
    count("errors")


# derivatives


def gradient(function, *numbers):
    with jax.enable_x64(True):
        points = [jnp.asarray(number) for number in numbers]
        return [slope.tolist() for slope in jax.grad(function, range(len(points)))(*points)]


@pytest.mark.slow
def test_remainder_and_floor_divide_have_gradients_that_pytorch_lacks():
    assert gradient(lambda x: ops.remainder(5.5, x), 2.0) == [-2.0]
    assert gradient(lambda x, y: ops.floor_divide(x, y), 5.5, 2.0) == [0.0, 0.0]
    assert gradient(lambda x: ops.floor_divide(x, 2), 5.5) == [0.0]
    count("closed forms", 3)


SECOND = {
    # d2/dx dy x ** y is 1 / x at y = 0, where PyTorch has 0
    "pow": (lambda x, y: ops.pow(x, y), (2.0, 0.0), [[0.0, 0.5], [0.5, numpy.log(2.0) ** 2]]),
    "square": (lambda x, y: ops.pow(x, 2) * y, (0.0, 1.0), [[2.0, 0.0], [0.0, 0.0]]),
    "abs": (lambda x, y: ops.abs(x) * y, (0.0, 1.0), [[0.0, 0.0], [0.0, 0.0]]),
    "remainder": (lambda x, y: ops.remainder(x, y), (5.5, 2.0), [[0.0, 0.0], [0.0, 0.0]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_at_kinks(name):
    function, point, expected = SECOND[name]
    for outer in (jax.jacrev, jax.jacfwd):
        for inner in (jax.jacrev, jax.jacfwd):
            with jax.enable_x64(True):
                result = outer(lambda p, inner=inner: inner(lambda q: function(*q))(p))(
                    jnp.array(point)
                )
            numpy.testing.assert_allclose(result, expected, 1e-12, 1e-12)
            count("closed forms")


@pytest.mark.parametrize(
    ("name", "still", "expected"),
    [("mul", INFINITE, INFINITE), ("div", 0.0, INFINITE), ("add", INFINITE, 1.0)],
)
def test_an_operand_without_a_tangent_adds_no_zero_times_infinity(name, still, expected):
    function = getattr(ops, name)
    assert jax.jvp(lambda x: function(x, still), (1.0,), (1.0,))[1] == expected
    count("closed forms")


# programs


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: ops.add(x, x), {"add"}),
        (lambda x: ops.sub(x, x, alpha=1), {"sub"}),
        (lambda x: ops.pow(x, 2), {"square", "integer_pow"}),
        (lambda x: ops.pow(x, 0.5), {"sqrt"}),
        (lambda x: ops.addcmul(x, x, x), {"add", "mul"}),
    ],
    ids=["add", "sub with alpha=1", "pow of 2", "pow of 0.5", "addcmul with value=1"],
)
def test_constants_of_the_usual_call_cost_no_primitive(function, expected):
    assert {*primitives(jax.make_jaxpr(function)(jnp.ones(3)))} <= expected
    count("programs")


def test_integer_division_by_zero_under_a_trace_is_not_checked():
    divide = jaxgrad.jit(lambda x, y: x // y)
    assert divide(jaxgrad.tensor([7]), jaxgrad.tensor([2])).tolist() == [3]
    divide(jaxgrad.tensor([7]), jaxgrad.tensor([0]))
    count("programs")


def test_the_reflected_remainder_has_both_gradients():
    x = jaxgrad.tensor([3.0], requires_grad=True)
    y = jaxgrad.tensor([7.0], requires_grad=True)
    x.__rmod__(y).sum().backward()  # 7 - 2 * 3
    assert (x.grad.item(), y.grad.item()) == (-2.0, 1.0)
    assert (7 % jaxgrad.tensor([2, 3])).tolist() == [1, 1]


def test_sizes_of_unsigned_integers():
    x = jaxgrad.tensor([0, 1, 200, 255], dtype=jaxgrad.uint8)
    assert (x.abs().tolist(), x.abs().dtype) == ([0, 1, 200, 255], jaxgrad.uint8)
    assert jaxgrad.gcd(x, x - 1).tolist() == [255, 1, 1, 1]
    assert jaxgrad.lcm(x, x).tolist() == [0, 1, 200, 255]
    assert jaxgrad.nn.functional.softsign(x[:2]).tolist() == [0.0, 0.5]
    count("closed forms", 4)
