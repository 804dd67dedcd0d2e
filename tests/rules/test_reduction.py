"""Reductions: errors, dtypes of sums, empty dimensions, ties and nan as PyTorch has them; and
derivatives at zeros and ties against closed forms."""

import warnings

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, primitives, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    (
        "torch.sum(zeros(2, 3), 2)",
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        "torch.sum(zeros(2, 3), (0, -2))",
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    (
        "torch.sum(tensor(1.0), 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "torch.mean(tensor([1, 2]))",
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or",
    ),
    (
        "torch.mean(tensor([1.0]), dtype=torch.int64)",
        RuntimeError,
        "mean(): could not infer output dtype. Optional dtype must be either a floating point",
    ),
    (
        "torch.cumsum(zeros(2), 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "torch.amax(zeros(0))",
        RuntimeError,
        "amax(): Expected reduction dim to be specified for input.numel() == 0. Specify the",
    ),
    (
        "torch.amin(zeros(0, 3), (0, 1))",
        IndexError,
        "amin(): Expected reduction dim 0 to have non-zero size",
    ),
    (
        "torch.max(zeros(0))",
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the",
    ),
    (
        "torch.min(zeros(0, 3), 0)",
        IndexError,
        "min(): Expected reduction dim 0 to have non-zero size",
    ),
    (
        "torch.argmin(zeros(0))",
        IndexError,
        "argmin(): Expected reduction dim to be specified for input.numel() == 0",
    ),
    (
        "torch.argmax(zeros(0, 2), 0)",
        IndexError,
        "argmax(): Expected reduction dim 0 to have non-zero size",
    ),
    ("torch.argmax(tensor([True]))", RuntimeError, "argmax(): does not support bool input"),
    (
        "torch.var(tensor([1, 2]))",
        RuntimeError,
        "std and var only support floating point and complex dtypes",
    ),
    (
        "torch.std(tensor([True]))",
        RuntimeError,
        "std and var only support floating point and complex dtypes",
    ),
    (
        "torch.logsumexp(zeros(2), 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "torch.any(zeros(2), 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "torch.max(tensor([1.0]), tensor([1.0, 2.0]), 1)",
        TypeError,
        "max() received an invalid combination of arguments - got (Tensor, Tensor, int), but",
    ),
]

ANSWERS = [
    (
        "torch.cumsum(tensor([1.5, 1.5]), 0, out=torch.empty(2, dtype=torch.int64))",
        "int64",
        [1, 2],
    ),
    (
        "torch.cumprod(tensor([2.5, 3.5]), 0, out=torch.empty(0, dtype=torch.int32))",
        "int32",
        [2, 6],
    ),
    # integers and booleans are added up in int64
    ("torch.sum(tensor([True, True]))", "int64", 2),
    ("torch.sum(tensor([200, 100], dtype=torch.uint8))", "int64", 300),
    ("torch.prod(tensor([2, 3], dtype=torch.int8))", "int64", 6),
    ("torch.cumsum(tensor([200, 100], dtype=torch.uint8), 0)", "int64", [200, 300]),
    ("torch.sum(tensor([1.5, 2.5]), dtype=torch.int64)", "int64", 3),
    ("torch.mean(tensor([1, 2]), dtype=torch.float64)", "float64", 1.5),
    ("torch.all(tensor([1, 2], dtype=torch.uint8))", "uint8", 1),
    # half precision is added up in float32
    ("torch.sum(full((5000,), 1.0, dtype=torch.float16))", "float16", 5000.0),
    ("torch.sum(full((3000,), 30.0, dtype=torch.float16))", "float16", numpy.inf),
    ("torch.mean(full((3000,), 60.0, dtype=torch.float16))", "float16", 60.0),
    ("torch.sum(full((1000,), 1.0, dtype=torch.bfloat16))", "bfloat16", 1000.0),
    ("torch.var(tensor([100.5, 101.0, 101.5], dtype=torch.float16))", "float16", 0.25),
    (
        "torch.cumsum(full((3,), 2000.0, dtype=torch.float16), 0)",
        "float16",
        [2000.0, 4000.0, 6000.0],
    ),
    # no elements
    ("torch.sum(zeros(0, 3), 0)", "float32", [0.0, 0.0, 0.0]),
    ("torch.prod(zeros(0, 3), 0)", "float32", [1.0, 1.0, 1.0]),
    ("torch.mean(zeros(0))", "float32", numpy.nan),
    ("torch.all(zeros(0))", "bool", True),
    ("torch.any(zeros(0))", "bool", False),
    ("torch.amax(zeros(2, 0, 3), (0, 2))", "float32", []),
    ("torch.logsumexp(zeros(0), 0)", "float32", -numpy.inf),
    # nan, infinities and ties
    ("torch.max(tensor([nan, 1.0]))", "float32", numpy.nan),
    ("torch.argmax(tensor([1.0, nan, nan]))", "int64", 1),
    ("torch.argmax(tensor([[1.0, 3.0], [3.0, 0.0]]))", "int64", 1),
    ("torch.argmin(tensor([2, 1, 1], dtype=torch.uint8))", "int64", 1),
    ("torch.all(tensor([nan]))", "bool", True),
    ("torch.count_nonzero(tensor([nan, 0.0, -0.0]))", "int64", 1),
    ("torch.logsumexp(tensor([1000.0, 1000.0]), 0)", "float32", 1000.6931762695312),
    ("torch.logsumexp(tensor([-inf, -inf]), 0)", "float32", -numpy.inf),
    # variances
    ("torch.var(tensor([10001.0, 10002.0, 10003.0]))", "float32", 1.0),
    ("torch.var(tensor([1j, 3j, 2.0]))", "float32", 3.6666665077209473),
    ("torch.std(tensor([1.0, 2.0]), correction=0)", "float32", 0.5),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize("name", ["max", "amin", "argmax"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(RuntimeError, match="does not support complex input, which has no order"):
        getattr(jaxgrad, name)(jaxgrad.tensor([1j]))
    count("errors")


@pytest.mark.parametrize(("correction", "expected"), [(1, numpy.nan), (2, numpy.nan)])
def test_a_variance_without_degrees_of_freedom_is_nan(correction, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variance = jaxgrad.var(jaxgrad.tensor([1.0]), correction=correction)
    numpy.testing.assert_equal(variance.item(), expected)
    count("closed forms")


def gradient(function, values):
    x = jaxgrad.tensor(values, dtype=jaxgrad.float64, requires_grad=True)
    function(x).backward()
    return x.grad.tolist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
        ([1e200, 1e200, 1e-200], [1.0, 1.0, numpy.inf]),
    ],
)
def test_the_gradient_of_a_product_is_the_product_of_the_others(values, expected):
    numpy.testing.assert_allclose(gradient(jaxgrad.prod, values), expected, 1e-14)
    count("closed forms")


def test_the_gradient_of_a_product_has_no_division():
    program = jax.make_jaxpr(jax.grad(lambda x: ops.prod(x)))(jnp.ones(3))
    assert "div" not in {*primitives(program)}
    count("programs")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.amax(), [0.5, 0.5, 0.0]),
        (lambda x: x.max(), [0.5, 0.5, 0.0]),
        (lambda x: x.max(0).values, [1.0, 0.0, 0.0]),
        (lambda x: (-x).amin(), [-0.5, -0.5, -0.0]),
    ],
    ids=["amax", "max", "max along a dimension", "amin"],
)
def test_ties_share_the_gradient_unless_an_index_names_one(function, expected):
    assert gradient(function, [2.0, 2.0, 1.0]) == expected
    count("closed forms")


def test_many_ties_share_the_gradient_of_half_precision_exactly():
    """4,096 shares: float16 counts no further than 2,048 one by one."""
    x = jaxgrad.ones(4096, dtype=jaxgrad.float16, requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [2.0**-12] * 4096
    count("closed forms")


@pytest.mark.slow
@pytest.mark.parametrize("order", ["reverse over reverse", "forward over reverse"])
def test_the_second_derivative_of_logsumexp(order):
    """The Hessian is diag(p) - p p^T, p the softmax."""
    outer = jax.jacrev if order.startswith("reverse") else jax.jacfwd
    with jax.enable_x64(True):
        x = jnp.array([1000.0, 1000.5, 999.0])
        hessian = outer(jax.grad(lambda x: ops.logsumexp(x, 0)))(x)
        p = jax.nn.softmax(x)
        numpy.testing.assert_allclose(hessian, jnp.diag(p) - jnp.outer(p, p), 1e-12, 1e-14)
    count("closed forms")


def test_no_dim_of_the_greatest_is_all():
    x = jaxgrad.tensor([[1.0, 5.0], [3.0, 2.0]])
    assert jaxgrad.amax(x, None).item() == x.amax(dim=None).item() == 5
    assert jaxgrad.amin(x, dim=None, keepdim=True).tolist() == [[1.0]]


def test_variance_of_no_elements_is_nan_for_any_correction():
    x = jaxgrad.zeros(0, 2)
    for correction in (-1, 0, 1, 2.5):
        for function in (jaxgrad.var, jaxgrad.std):
            assert function(x, dim=0, correction=correction).isnan().all()
            assert jaxgrad.jit(lambda x, f=function, c=correction: f(x, correction=c))(x).isnan()
