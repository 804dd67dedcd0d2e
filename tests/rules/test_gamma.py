"""The gamma function and its kin: digits where plain formulas lose them, poles, errors; derivatives
that PyTorch lacks or has to ten digits only, against closed forms and finite differences."""

import math

import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

NAN, INFINITE = numpy.nan, numpy.inf

REFUSED = [
    ("torch.lgamma(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("torch.digamma(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("torch.polygamma(1, tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("torch.polygamma(-1, tensor([1.0]))", RuntimeError, "does not support negative n"),
    ("torch.polygamma(1.0, tensor([1.0]))", TypeError, "must be int, not float"),
    ("torch.mvlgamma(tensor([1.0]), 0)", RuntimeError, "p has to be greater than or equal to 1"),
    ("torch.mvlgamma(tensor([True]), 1)", RuntimeError, "may not be a boolean tensor"),
    ("torch.igamma(tensor([1]), tensor([1]))", NotImplementedError, "implemented for 'Long'"),
    ("torch.igammac(tensor([1j]), tensor([1.0]))", NotImplementedError, "for 'ComplexFloat'"),
    ("torch.igamma(tensor([1.0]), 2.0)", TypeError, "igamma()"),
    ("tensor([5]).polygamma_(1)", RuntimeError, "Float can't be cast to the desired output type"),
]

ANSWERS = [
    (
        "torch.lgamma(tensor([1e-310, 5e-324], dtype=torch.float64))",
        "float64",
        [713.8013788281542, 744.4400719213812],
    ),
    # around the zeros of lgamma
    (
        "torch.lgamma(tensor([1.0, 1.0000001, 1.9999999, 2.0], dtype=torch.float64))",
        "float64",
        [0.0, -5.772155829918507e-08, -4.2278430309861296e-08, 0.0],
    ),
    ("torch.lgamma(tensor([1.0, 2.0, 1.9999998807907104]))", "float32", [0, 0, -5.0399816e-08]),
    (
        "torch.lgamma(tensor([-0.5, -1.5, 1e-30, -1e-30, 1e30, -1e30]))",
        "float32",
        [1.2655121, 0.86004703, 69.0775528, 69.0775528, 6.8077555e31, INFINITE],
    ),
    ("torch.lgamma(tensor([0.0, -0.0, -2.0, inf, -inf]))", "float32", [INFINITE] * 5),
    ("torch.lgamma(tensor([5, 1]))", "float32", [3.178053855895996, 0.0]),
    ("torch.lgamma(tensor([3e38, nan]))", "float32", [INFINITE, NAN]),
    # poles
    (
        "torch.digamma(tensor([0.0, -0.0, -1.0, inf, -inf]))",
        "float32",
        [-INFINITE, INFINITE, NAN, INFINITE, NAN],
    ),
    ("torch.polygamma(0, tensor([1.0, 0.0]))", "float32", [-0.5772156715393066, -INFINITE]),
    ("torch.polygamma(1, tensor([0.0, -0.0, inf]))", "float32", [INFINITE, INFINITE, 0.0]),
    ("torch.polygamma(2, tensor([0.0, -1.0]))", "float32", [-INFINITE, -INFINITE]),
    ("torch.polygamma(3, tensor([0.0, -1.0]))", "float32", [INFINITE, INFINITE]),
    ("torch.mvlgamma(tensor([0.5, 1.0]), 2)", "float32", [INFINITE, 1.1447298526763916]),
    ("torch.mvlgamma(tensor([5]), 2)", "float32", [6.204151630401611]),
    # limits of the incomplete functions
    (
        "torch.igamma(tensor([0.0, 0.0, 0.0, 1.0, -1.0, inf, inf, 2.0]),"
        " tensor([0.0, 1.0, inf, -1.0, 1.0, 1.0, inf, inf]))",
        "float32",
        [NAN, 1.0, 1.0, NAN, NAN, 0.0, NAN, 1.0],
    ),
    (
        "torch.igammac(tensor([0.0, 0.0, 0.0, 1.0, -1.0, inf, inf, 2.0]),"
        " tensor([0.0, 1.0, inf, -1.0, 1.0, 1.0, inf, inf]))",
        "float32",
        [NAN, 0.0, 0.0, NAN, NAN, 1.0, NAN, 0.0],
    ),
    ("torch.igamma(tensor(0.0), tensor([0.0, 0.5, 1e-3]))", "float32", [NAN, 1.0, 1.0]),
    ("torch.igammac(tensor(0.0), tensor([0.0, 0.5, 1e-3]))", "float32", [NAN, 0.0, 0.0]),
    ("torch.igamma(tensor([1000.0]), tensor([1000.0]))", "float32", [0.5042052268981934]),
    ("torch.igamma(tensor([1e6]), tensor([1e6]))", "float32", [0.5001329779624939]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


# values to fifteen digits, computed with 30 digits; PyTorch has fewer of them
EXACT = [
    (lambda: ops.polygamma(1, X(-10.9)), 103.26817590908067),
    (lambda: ops.polygamma(1, X(0.001)), 1000001.6425331958),
    (lambda: ops.polygamma(2, X(-100.5)), -9.802720262719757e-05),
    (lambda: ops.polygamma(3, X(-0.5)), 193.40909103400244),
    (lambda: ops.digamma(X(-2.9995)), -1998.7423793180467),
    (lambda: ops.igammac(X(1e-10), X(0.5)), 5.597735948054988e-11),
    (lambda: ops.igamma(X(21.0), X(19.0)), 0.35282563476349993),
]


def X(number, dtype=jaxgrad.float64):
    return jaxgrad.tensor(number, dtype=dtype)


@pytest.mark.parametrize("position", range(len(EXACT)))
def test_digits_that_plainer_formulas_lose(position):
    function, expected = EXACT[position]
    numpy.testing.assert_allclose(function(), expected, 1e-13)
    count("closed forms")


def gradient(function, *numbers):
    tensors = [
        jaxgrad.tensor(number, dtype=jaxgrad.float64, requires_grad=True) for number in numbers
    ]
    function(*tensors).backward()
    return [None if tensor.grad is None else tensor.grad.item() for tensor in tensors]


@pytest.mark.parametrize(
    ("point", "slope"),
    [(1.0, math.pi**2 / 6), (0.5, math.pi**2 / 2), (-0.5, math.pi**2 / 2 + 4)],
)
def test_derivative_of_digamma(point, slope):
    numpy.testing.assert_allclose(gradient(jaxgrad.digamma, point), [slope], 1e-14)
    count("closed forms")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_derivatives_left_and_right_of_the_poles(name):
    x = jaxgrad.tensor([-2.4, -0.3, 0.2, 1.0, 5.0], dtype=jaxgrad.float64, requires_grad=True)
    function = getattr(jaxgrad, name)
    assert jaxgrad.autograd.gradcheck(function, (x,), check_forward_ad=True)
    assert jaxgrad.autograd.gradgradcheck(function, (x,))
    count("finite differences", 2)


# on each side of the orders and arguments at which the way of computing changes
PAIRS = [(0.3, 0.7), (4.5, 3.0), (30.0, 28.0)]


@pytest.mark.slow
def test_derivative_in_the_order_that_pytorch_lacks():
    a, x = (
        jaxgrad.tensor(column, dtype=jaxgrad.float64, requires_grad=True)
        for column in zip(*PAIRS, strict=True)
    )
    assert jaxgrad.autograd.gradcheck(jaxgrad.igamma, (a, x), check_forward_ad=True)
    assert jaxgrad.autograd.gradgradcheck(jaxgrad.igamma, (a, x))
    lower, upper = (
        jaxgrad.autograd.grad(f(a, x).sum(), a)[0] for f in (jaxgrad.igamma, jaxgrad.igammac)
    )
    assert (lower == -upper).all()
    count("finite differences", 3)


# to fifteen digits, by quadrature with 30
MOMENTS = [
    (0.05, 0.5, 1, -0.5867472233507471),
    (0.5, 3.0, 2, 4.778215651187111),
    (7.0, 9.0, 1, -0.10549943367004838),
    (10.0, 9.0, 3, -0.03331837153240601),
    (3000.0, 2900.0, 1, -0.0013470386615686632),
]


@pytest.mark.slow
@pytest.mark.parametrize(("order", "argument", "k", "expected"), MOMENTS)
def test_moments_of_the_incomplete_gamma_function(order, argument, k, expected):
    for dtype, tolerance in ((jaxgrad.float64, 1e-10), (jaxgrad.float32, 1e-3)):
        moment = ops._igamma_moment(X(order, dtype), X(argument, dtype), k)
        numpy.testing.assert_allclose(moment, expected, tolerance)
    count("closed forms", 2)


def test_slope_of_igamma_at_zero():
    # exp(-x), of which PyTorch has NaN at 0
    one = jaxgrad.tensor(1.0, dtype=jaxgrad.float64)
    assert gradient(lambda x: jaxgrad.igamma(one, x), 0.0) == [1.0]
    assert gradient(lambda x: jaxgrad.igammac(one, x), 0.0) == [-1.0]
    count("closed forms", 2)
