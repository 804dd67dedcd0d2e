"""Pointwise operators: errors, edges of domains, rounding and dtypes as PyTorch has them;
derivatives that PyTorch lacks or has wrong, against closed forms."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

NAN, INFINITE = numpy.nan, numpy.inf

REFUSED = [
    # numbers that integers cannot hold
    ("tensor([3], dtype=torch.int8).clamp(300)", RuntimeError, "type int8_t without overflow"),
    ("tensor([3], dtype=torch.int32).clamp(max=2**40)", RuntimeError, "type int without overflow"),
    ("tensor([3]).clamp_min(2**63)", RuntimeError, "type int64_t without overflow"),
    (
        "torch.where(tensor([True]), tensor([3], dtype=torch.int8), 300)",
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    (
        "torch.where(tensor([True, False]), tensor([1.0]), zeros(3))",
        RuntimeError,
        "non-singleton dimension 0",
    ),
    (
        "torch.where(tensor([1.0]), tensor([1.0]), tensor([1.0]))",
        RuntimeError,
        "to be a boolean tensor, but got a tensor with dtype Float",
    ),
    (
        "torch.clamp(tensor([1.0]))",
        RuntimeError,
        "At least one of 'min' or 'max' must not be None",
    ),
    (
        "torch.clamp(tensor([1 + 2j, 3j]), 0, 1)",
        NotImplementedError,
        "clamp is not supported for complex types",
    ),
    (
        "torch.maximum(tensor([1 + 2j]), tensor([3j]))",
        RuntimeError,
        "maximum not implemented for complex tensors",
    ),
    (
        "torch.fmin(tensor([1 + 2j]), tensor([3j]))",
        RuntimeError,
        "fmin not implemented for complex tensors",
    ),
    (
        "torch.ceil(tensor([1 + 2j]))",
        NotImplementedError,
        "ceil is not supported for complex inputs",
    ),
    ("torch.floor(tensor([True, False]))", NotImplementedError, "not implemented for 'Bool'"),
    ("torch.frac(tensor([3, 4]))", NotImplementedError, "not implemented for 'Long'"),
    ("torch.round(tensor([3, 4]), decimals=1)", NotImplementedError, "not implemented for 'Long'"),
    (
        "torch.atan2(tensor([1 + 2j]), tensor([3j]))",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    (
        "torch.hypot(tensor([3, 4]), tensor([3, 4]))",
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    ("torch.erf(tensor([1 + 2j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    (
        "torch.lerp(tensor([3, 4]), tensor([3, 4]), 0.5)",
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    (
        "torch.imag(tensor([1.0]))",
        RuntimeError,
        "imag is not implemented for tensors with non-complex dtypes",
    ),
    (
        "torch.view_as_real(tensor([1.0]))",
        RuntimeError,
        "view_as_real is only supported for complex tensors",
    ),
    (
        "torch.view_as_complex(tensor([[1, 2]]))",
        RuntimeError,
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
        "scalar type: Long",
    ),
    (
        "torch.view_as_complex(zeros(3))",
        RuntimeError,
        "Tensor must have a last dimension of size 2",
    ),
    (
        "torch.view_as_complex(tensor(1.0))",
        RuntimeError,
        "Input tensor must have one or more dimensions",
    ),
]

ANSWERS = [
    # integers of more than 32 bits
    ("tensor([1.0]).clamp(3_000_000_000, 2**40)", "float32", [3e9]),
    ("torch.where(tensor([True]), 2**40, tensor([3.0]))", "float32", [2.0**40]),
    ("tensor([1.0]).fill_(2**40)", "float32", [2.0**40]),
    ("tensor([1.0]).masked_fill(tensor([True]), -(2**40))", "float32", [-(2.0**40)]),
    ("torch.nn.functional.threshold(tensor([1.0]), 2**40, 2**41)", "float32", [2.0**41]),
    # edges of domains
    ("torch.log(tensor([0.0, -1.0]))", "float32", [-INFINITE, NAN]),
    ("torch.log(tensor([-1 + 0j]))", "complex64", [3.1415927410125732j]),
    ("torch.asin(tensor([2.0]))", "float32", [NAN]),
    ("torch.erfinv(tensor([1.0, -1.0, 1.5]))", "float32", [INFINITE, -INFINITE, NAN]),
    ("torch.sigmoid(tensor([1000.0, -1000.0]))", "float32", [1.0, 0.0]),
    ("torch.xlogy(zeros(3), tensor([0.0, nan, -1.0]))", "float32", [0.0, NAN, 0.0]),
    (
        "torch.atan2(tensor([0.0, -0.0]), tensor([-1.0, -1.0]))",
        "float32",
        [3.1415927410125732, -3.1415927410125732],
    ),
    (
        "torch.logaddexp(tensor([-inf, inf, 1e30]), tensor([-inf, inf, 0.0]))",
        "float32",
        [-INFINITE, INFINITE, 1e30],
    ),
    # digits that a plainer formula loses
    (
        "torch.log1p(tensor([1e-10, -1.0], dtype=torch.float64))",
        "float64",
        [9.999999999500001e-11, -INFINITE],
    ),
    ("torch.expm1(tensor([1e-10], dtype=torch.float64))", "float64", [1.00000000005e-10]),
    ("torch.hypot(tensor([1e-30]), tensor([1e-30]))", "float32", [1.4142135555081815e-30]),
    ("torch.lerp(tensor([1e20]), tensor([1.0]), 1.0)", "float32", [1.0]),
    # rounding
    ("torch.round(tensor([0.5, 1.5, 2.5, -0.5]))", "float32", [0.0, 2.0, 2.0, -0.0]),
    ("torch.round(tensor([1.25, 15.0]), decimals=-1)", "float32", [0.0, 20.0]),
    ("torch.round(tensor([0.125, 0.375]), decimals=2)", "float32", [0.12, 0.38]),
    ("torch.floor(tensor([3]))", "int64", [3]),
    # bounds and nan
    ("torch.clamp(tensor([1.0, nan]), 0, 0.5)", "float32", [0.5, NAN]),
    ("torch.clamp(tensor([1.0]), 3, 2)", "float32", [2.0]),
    ("torch.maximum(tensor([nan, 1.0]), tensor([1.0, nan]))", "float32", [NAN, NAN]),
    ("torch.fmax(tensor([nan, 1.0, nan]), tensor([1.0, nan, nan]))", "float32", [1.0, 1.0, NAN]),
    ("torch.nan_to_num(tensor([nan, inf], dtype=torch.float16))", "float16", [0.0, 65504.0]),
    ("torch.angle(tensor([-1.0, 1.0, nan]))", "float32", [3.1415927410125732, 0.0, NAN]),
    # dtypes of results
    ("torch.tanh(tensor([True]))", "float32", [0.7615941762924194]),
    ("torch.clamp(tensor([1, 5]), 2.5)", "float32", [2.5, 5.0]),
    ("torch.maximum(tensor([True]), tensor([3]))", "int64", [3]),
    ("torch.where(tensor([True, False]), 1, 2.5)", "float32", [1.0, 2.5]),
    ("torch.where(tensor([True, False]), tensor([1]), tensor(2.5))", "float32", [1.0, 2.5]),
    ("torch.nan_to_num(tensor([1, 2]))", "int64", [1, 2]),
    ("torch.angle(tensor([-1 + 0j, 1j]))", "float32", [3.1415927410125732, 1.5707963705062866]),
    ("tensor([-1]).to(torch.uint8)", "uint8", [255]),
    ("tensor([1.7, -1.7]).to(torch.int64)", "int64", [1, -1]),
    ("tensor([nan]).to(torch.bool)", "bool", [True]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_lerp_refuses_other_dtypes_and_names_the_operand():
    with pytest.raises(
        RuntimeError, match="expected dtype float32 for `end` but got dtype complex64"
    ):
        jaxgrad.lerp(jaxgrad.tensor([1.0]), jaxgrad.tensor([1j]), 0.5)
    count("errors")
    one = jaxgrad.tensor([1.0])
    with pytest.raises(RuntimeError, match=r"expected dtype .* for `end` but got dtype"):
        jaxgrad.lerp(one, jaxgrad.tensor(1.0, dtype=jaxgrad.float64), 0.5)
    assert jaxgrad.lerp(one, one, jaxgrad.tensor(0.5, dtype=jaxgrad.float64)).dtype is one.dtype


# complex numbers


def test_nan_to_num_of_complex_numbers_part_by_part():
    z = jaxgrad.tensor([complex(numpy.nan, 2), complex(1, numpy.inf)], requires_grad=True)
    result = jaxgrad.nan_to_num(z, posinf=7.0)
    assert result.tolist() == [2j, 1 + 7j]
    result.backward(jaxgrad.tensor([3 + 4j, 5 + 6j]))
    assert z.grad.tolist() == [4j, 5 + 0j]
    count("closed forms", 2)


def test_where_of_real_and_complex():
    real = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    other = jaxgrad.tensor([1j, 2j], requires_grad=True)
    result = jaxgrad.where(jaxgrad.tensor([True, False]), real, other)
    result.backward(jaxgrad.tensor([3 + 4j, 5 + 6j]))
    assert (real.grad.tolist(), other.grad.tolist()) == ([3.0, 0.0], [0j, 5 + 6j])
    count("closed forms", 2)


@pytest.mark.slow
def test_complex_to_real_drops_the_imaginary_part_with_a_warning():
    z = jaxgrad.tensor([1 + 2j], requires_grad=True)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        x = z.to(jaxgrad.float32)
    x.backward(jaxgrad.tensor([3.0]))
    assert (x.tolist(), z.grad.tolist()) == ([1.0], [3 + 0j])
    count("closed forms", 2)


# derivatives

SECOND = {
    "atan2": (lambda x, y: ops.atan2(x, y), (0.0, 0.0), [[0.0, 0.0], [0.0, 0.0]]),
    "xlogy": (lambda x, y: ops.xlogy(x, y), (0.0, 2.0), [[0.0, 0.5], [0.5, 0.0]]),
    "maximum": (lambda x, y: ops.maximum(x * x, y), (1.0, 1.0), [[1.0, 0.0], [0.0, 0.0]]),
    "logaddexp": (lambda x, y: ops.logaddexp(x, y), (2e3, 0.0), [[0.0, 0.0], [0.0, 0.0]]),
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


def test_logarithms_of_complex_sums_keep_the_imaginary_part():
    x, y = jaxgrad.tensor([1 + 5j, 2 - 4j]), jaxgrad.tensor([0 + 6j, 2.5 - 7j])
    expected = [1.2136 + 5.2527j, 1.6050 - 6.7890j]  # PyTorch's
    numpy.testing.assert_allclose(jaxgrad.logaddexp(x, y).numpy(), expected, 1e-4)
    running = jaxgrad.logcumsumexp(jaxgrad.tensor([1 + 5j, 2 + 6j]), 0)
    numpy.testing.assert_allclose(running.numpy(), [1 + 5j, 2.2136 + 5.7473j], 1e-4)
    count("closed forms", 2)
