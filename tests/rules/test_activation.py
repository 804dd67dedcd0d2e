"""Activations: errors, dtypes and tails as PyTorch has them; softmax of half precision to the last
bit; derivatives of a complex silu, which PyTorch lacks, against finite differences."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals
from jax.test_util import check_grads

import jaxgrad
import jaxgrad.nn.functional as F
from jaxgrad import ops

REFUSED = [
    ("F.hardsigmoid(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    ("F.mish(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("F.softshrink(zeros(2), -1.0)", RuntimeError, "but found -1"),
    ("F.hardshrink(tensor([True]))", NotImplementedError, "not implemented for 'Bool'"),
    (
        "F.glu(tensor(1.0))",
        RuntimeError,
        "glu does not support scalars because halving size must be even",
    ),
    (
        "F.glu(zeros(2, 3))",
        RuntimeError,
        "Halving dimension must be even, but dimension 1 is size 3",
    ),
    ("F.glu(zeros(2), 1)", IndexError, "expected to be in range of [-1, 0], but got 1"),
    (
        "F.prelu(zeros(2, 3), zeros(2))",
        RuntimeError,
        "Found parameter numbers = 2 and channel size = 3",
    ),
    ("F.prelu(tensor(1.0), zeros(2))", RuntimeError, "Not allow zero-dim input tensor"),
    (
        "F.prelu(zeros(2), zeros(1, 1))",
        RuntimeError,
        "to be a scalar or 1D tensor, but got: ndim = 2",
    ),
    (
        "F.prelu(zeros(2), zeros(1, dtype=torch.float64))",
        RuntimeError,
        "prelu: Type promoting not supported. Got Float and Double",
    ),
    (
        "F.rrelu(zeros(2), 0.5, 0.2)",
        RuntimeError,
        "Lower bound should be less than or equal to the upper bound",
    ),
    ("F.rrelu(zeros(2), -inf, 0.2)", RuntimeError, "rrelu: lower bound must be finite, got -inf"),
    ("F.leaky_relu(tensor([1, 2]))", NotImplementedError, "not implemented for 'Long'"),
    ("F.hardtanh(tensor([1.0]), 2.0, 1.0)", ValueError, "min_val cannot be greater than max_val"),
    ("F.gelu(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    (
        "F.gelu(tensor([1.0]), approximate='sine')",
        RuntimeError,
        "approximate argument must be either none or tanh",
    ),
    ("F.silu(tensor([True]))", NotImplementedError, "not implemented for 'Bool'"),
    ("F.softplus(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    ("F.elu(tensor([1]))", NotImplementedError, "not implemented for 'Long'"),
    ("F.celu(tensor([1.0]), 0)", RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
    ("F.selu(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("F.logsigmoid(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("F.threshold(tensor([1j]), 0, 0)", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("F.threshold(tensor([True]), 0, 0)", NotImplementedError, "not implemented for 'Bool'"),
    ("torch.softmax(tensor([1, 2]), 0)", NotImplementedError, "not implemented for 'Long'"),
    (
        "torch.log_softmax(tensor([1j]), 0)",
        NotImplementedError,
        "not implemented for 'ComplexFloat'",
    ),
    (
        "torch.softmax(tensor([1.0, 2.0]), 1)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
    ),
    (
        "torch.log_softmax(tensor(3.0), -2)",
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got -2)",
    ),
]

ANSWERS = [
    # integers, which the straight pieces take
    ("F.relu(tensor([-1, 9], dtype=torch.int8))", "int8", [0, 9]),
    ("F.relu6(tensor([-1, 9]))", "int64", [0, 6]),
    ("F.hardtanh(tensor([1, 5], dtype=torch.uint8), 2, 3)", "uint8", [2, 3]),
    ("F.threshold(tensor([1, 5]), 2, 7.9)", "int64", [7, 5]),
    ("F.threshold(tensor([1, 5], dtype=torch.uint8), 2, -1)", "uint8", [255, 5]),
    (
        "torch.softmax(tensor([True, False]), 0, dtype=torch.float32)",
        "float32",
        [0.7310585975646973, 0.2689414322376251],
    ),
    # half precision
    ("F.gelu(tensor([1.0], dtype=torch.bfloat16))", "bfloat16", [0.83984375]),
    ("F.silu(tensor([1.0], dtype=torch.float16))", "float16", [0.73095703125]),
    ("F.softplus(tensor([100.0], dtype=torch.float16))", "float16", [100.0]),
    (
        "torch.softmax(tensor([1.0, 2.0], dtype=torch.bfloat16), 0)",
        "bfloat16",
        [0.26953125, 0.73046875],
    ),
    (
        "torch.log_softmax(tensor([1.0, 2.0], dtype=torch.bfloat16), 0)",
        "bfloat16",
        [-1.3125, -0.3125],
    ),
    ("torch.softmax(tensor([-1e4, 0.0], dtype=torch.float16), 0)", "float16", [0.0, 1.0]),
    (
        "torch.softmax(tensor([1.0, 2.0], dtype=torch.float16), 0, dtype=torch.float32)",
        "float32",
        [0.2689414322376251, 0.7310585975646973],
    ),
    ("F.softshrink(tensor([-0.2, nan], dtype=torch.float16))", "float16", [-0.0, numpy.nan]),
    # tails
    ("F.elu(tensor([-1e-10], dtype=torch.float64))", "float64", [-9.999999999500001e-11]),
    ("F.elu(tensor([-1000.0, 1000.0, -inf]))", "float32", [-1.0, 1000.0, -1.0]),
    ("F.silu(tensor([1000.0, -1000.0, -inf]))", "float32", [1000.0, -0.0, numpy.nan]),
    ("F.logsigmoid(tensor([-1000.0, 0.0]))", "float32", [-1000.0, -0.6931471824645996]),
    (
        "F.softplus(tensor([20.0, 21.0, 1000.0, -1000.0]), 2.0, 1.0)",
        "float32",
        [20.0, 21.0, 1000.0, 0.0],
    ),
    ("torch.log_softmax(tensor([1e30, -1e30], dtype=torch.float64), 0)", "float64", [0.0, -2e30]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_leaky_relu_backward_refuses_a_result_of_a_negative_slope():
    with pytest.raises(RuntimeError, match="triggered with a negative slope"):
        ops.leaky_relu_backward(jaxgrad.ones(3), jaxgrad.ones(3), -0.5, True)
    count("errors")


def test_relu_refuses_booleans():
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        F.relu(jaxgrad.tensor([True]))
    count("errors")


@pytest.mark.slow
def test_softmax_of_halves_is_rounded_once():
    """In half precision each step would be. A half step may be exceeded by what single precision
    rounds.
    """

    def check(result, exact):
        assert result.dtype == numpy.float16
        step = numpy.spacing(abs(exact).astype(numpy.float16)).astype(numpy.float64)
        assert (abs(result - exact) <= 0.502 * step).all()

    halves = numpy.linspace(-4, 4, 3000, dtype=numpy.float16)
    exponentials = numpy.exp(halves.astype(numpy.float64))
    exact = exponentials / exponentials.sum()
    check(jaxgrad.softmax(jaxgrad.tensor(halves), 0).numpy(), exact)
    check(jaxgrad.log_softmax(jaxgrad.tensor(halves), 0).numpy(), numpy.log(exact))


# silu of complex numbers

X = numpy.linspace(-1, 1, 12).reshape(3, 4)


@pytest.mark.slow
def test_silu_of_complex_numbers_has_derivatives_to_second_order():
    """silu is holomorphic: differences along two directions determine its derivative."""
    with jax.enable_x64(True):
        check_grads(ops.silu, (jnp.asarray(X + 1j * X[::-1]),), 2, eps=1e-4)
    count("activation", 4)


def test_gradient_of_silu_of_complex_numbers_is_conjugate():
    z, step = 0.3 - 0.8j, 1e-6
    x = jaxgrad.tensor(z, dtype=jaxgrad.complex128, requires_grad=True)
    F.silu(x).real.backward()
    real, imaginary = (real_silu(z + d) - real_silu(z - d) for d in (step, 1j * step))
    assert x.grad.item() == pytest.approx((real + 1j * imaginary) / (2 * step), rel=1e-8)


def real_silu(z):
    return (z / (1 + numpy.exp(-z))).real


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Casting complex values to real:UserWarning")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_complex_numbers_as_real_ones_has_a_gradient(name):
    function = getattr(jaxgrad, name)
    z = jaxgrad.tensor([1 + 2j, 0.5j], requires_grad=True)
    x = jaxgrad.tensor([1.0, 0.0], requires_grad=True)
    for leaf in (z, x):
        result = function(leaf, 0, dtype=jaxgrad.float32)
        result[0].backward()
    expected = function(z, 0, dtype=jaxgrad.float32)
    numpy.testing.assert_allclose(result.tolist(), expected.tolist(), rtol=1e-6)
    numpy.testing.assert_allclose(z.grad.tolist(), x.grad.tolist(), rtol=1e-6)
    count("closed forms")


@pytest.mark.parametrize("dtype", [jaxgrad.float16, jaxgrad.float32])
def test_tangents_of_softmax_in_a_wider_dtype(dtype):
    # of numbers that both dtypes hold, so that only the dtype of the computation shows
    x, t = [0.25, 1.75, -2.125], [1.0, -2.0, 0.75]
    forward_ad = jaxgrad.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(jaxgrad.tensor(x, dtype=dtype), jaxgrad.tensor(t, dtype=dtype))
        result = jaxgrad.softmax(dual, 0, dtype=jaxgrad.float64)
        tangent = forward_ad.unpack_dual(result).tangent
    weights = numpy.exp(x) / numpy.exp(x).sum()
    expected = weights * (numpy.array(t) - weights @ numpy.array(t))
    numpy.testing.assert_allclose(tangent.numpy(), expected, rtol=1e-14)
