"""Signs, exponents, divisors and angles: errors, edges and dtypes as PyTorch has them; derivatives
that PyTorch lacks or has wrong, against closed forms."""

import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

NAN, INFINITE = numpy.nan, numpy.inf

REFUSED = [
    (
        "torch.heaviside(tensor([1]), tensor([1.0]))",
        RuntimeError,
        "heaviside is not yet implemented for tensors with different dtypes",
    ),
    (
        "torch.heaviside(tensor([1j]), tensor([1j]))",
        RuntimeError,
        "heaviside is not yet implemented for complex tensors.",
    ),
    ("torch.copysign(tensor([1j]), 1.0)", NotImplementedError, "implemented for 'ComplexFloat'"),
    ("torch.signbit(tensor([1j]))", NotImplementedError, "not implemented for complex tensors."),
    ("torch.deg2rad(tensor([1j]))", RuntimeError, "deg2rad is not supported for complex tensors."),
    ("torch.rad2deg(tensor([1j]))", RuntimeError, "rad2deg is not supported for complex tensors."),
    ("torch.frexp(tensor([1]))", RuntimeError, "torch.frexp() only supports floating-point dtypes"),
    ("torch.nextafter(tensor([1]), tensor([2]))", NotImplementedError, "implemented for 'Long'"),
    ("torch.gcd(tensor([1.0]), tensor([2]))", NotImplementedError, "not implemented for 'Float'"),
    ("torch.lcm(tensor([True]), tensor([True]))", NotImplementedError, "implemented for 'Bool'"),
    ("torch.ldexp(tensor([1.0]), 2)", TypeError, "ldexp()"),
    (
        "torch.polar(tensor([1]), tensor([2]))",
        RuntimeError,
        "Expected both inputs to be Half, Float or Double tensors but got Long and Long",
    ),
    (
        "torch.complex(tensor([1.0]), tensor([2.0], dtype=torch.float64))",
        RuntimeError,
        "Expected object of scalar type Float but got scalar type Double for second argument",
    ),
    ("torch.logit(tensor([1j]))", NotImplementedError, "not implemented for 'ComplexFloat'"),
    ("torch.logaddexp2(tensor([1]), tensor([2]))", NotImplementedError, "implemented for 'Long'"),
    (
        "tensor([2.0]).float_power_(2)",
        RuntimeError,
        "the base given to float_power_ has dtype Float but the operation's result requires dtype "
        "Double",
    ),
    ("torch.float_power(2, 3)", TypeError, "float_power()"),
]

ANSWERS = [
    (
        "torch.ldexp(tensor([1, 2]), tensor([1 + 1j, 2]))",
        "complex64",
        [1.5384777784347534 + 1.277922511100769j, 8.0 + 0.0j],
    ),
    ("torch.ldexp(tensor([1 + 1j]), tensor([2]))", "complex64", [4.0 + 4.0j]),
    ("torch.copysign(tensor([1.0, -1.0, nan]), tensor([-0.0]))", "float32", [-1.0, -1.0, NAN]),
    ("torch.copysign(tensor([3]), tensor([-1]))", "float32", [-3.0]),
    ("torch.copysign(tensor([0.0]), -2)", "float32", [-0.0]),
    ("torch.signbit(tensor([-0.0, 0.0, -1.0]))", "bool", [True, False, True]),
    ("torch.signbit(tensor([0, -7]))", "bool", [False, True]),
    ("torch.signbit(tensor([True]))", "bool", [False]),
    ("torch.heaviside(tensor([nan, -0.0]), tensor([0.5]))", "float32", [0.0, 0.5]),
    ("torch.heaviside(tensor([True, False]), tensor([True]))", "bool", [True, True]),
    ("torch.deg2rad(tensor([180]))", "float32", [3.1415927410125732]),
    ("torch.rad2deg(tensor([True]))", "float32", [57.295780181884766]),
    # the power of two alone would overflow
    (
        "torch.ldexp(tensor([1e-30, 1e30]), tensor([140, -140]))",
        "float32",
        [1.3937966e12, 7.174648e-13],
    ),
    ("torch.ldexp(tensor([3]), tensor([-1]))", "float32", [1.5]),
    ("torch.ldexp(tensor([2.0], dtype=torch.float16), tensor([3]))", "float16", [16.0]),
    ("torch.ldexp(tensor([1 + 2j]), tensor([2]))", "complex64", [4 + 8j]),
    ("torch.ldexp(tensor([4.0]), tensor([0.5]))", "float32", [5.656854152679443]),
    ("torch.frexp(tensor([0.0, inf, nan, -6.0])).mantissa", "float32", [0, INFINITE, NAN, -0.75]),
    ("torch.frexp(tensor([0.0, inf, nan, -6.0])).exponent", "int32", [0, 0, 0, 3]),
    (
        "torch.nextafter(tensor([1.0, 2.0]), tensor([2.0, 2.0]))",
        "float32",
        [1.0000001192092896, 2.0],
    ),
    # the least integer has no positive counterpart
    (
        "torch.gcd(tensor([-128, 6], dtype=torch.int8), tensor([-128, -4], dtype=torch.int8))",
        "int8",
        [-128, 2],
    ),
    ("torch.gcd(tensor([6], dtype=torch.uint8), tensor([-4], dtype=torch.int8))", "int16", [2]),
    ("torch.lcm(tensor([-6, 0]), tensor([4, 5]))", "int64", [12, 0]),
    ("torch.sinc(tensor([0, 1j]))", "complex64", [1.0, 3.676077910374978]),
    ("torch.logit(tensor([0.0, 1.0, 2.0, True]))", "float32", [-INFINITE, INFINITE, NAN, INFINITE]),
    ("torch.logit(tensor([-1.0, 0.5, 2.0]), 0.7)", "float32", [0.8472978, 0.8472978, -0.8472979]),
    ("torch.logit(tensor([-1.0, 0.5]), -1.0)", "float32", [NAN, 0.0]),
    (
        "torch.logaddexp2(tensor([inf, -inf, 1e30]), tensor([inf, -inf, 0.0]))",
        "float32",
        [INFINITE, -INFINITE, 1e30],
    ),
    ("torch.i0(tensor([0, 1]))", "float32", [1.0, 1.2660658359527588]),
    ("torch.float_power(tensor([2], dtype=torch.int8), 3)", "float64", [8.0]),
    ("torch.float_power(2j, tensor([2.0]))", "complex128", [-4 + 4.898587196589413e-16j]),
    ("tensor([2.0], dtype=torch.float64).float_power_(3)", "float64", [8.0]),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def gradients(function, *values):
    tensors = [jaxgrad.tensor(value, requires_grad=True) for value in values]
    function(*tensors).sum().backward()
    return [tensor.grad.tolist() for tensor in tensors]


def test_ldexp_by_negative_integers_has_a_gradient():
    # PyTorch computes 2 ** -3 in integers, as 0
    exponents = jaxgrad.tensor([5, -3])
    assert gradients(lambda x: jaxgrad.ldexp(x, exponents), [1.0, 1.0]) == [[32.0, 0.125]]
    count("closed forms")


def test_heaviside_has_gradients():
    result = gradients(jaxgrad.heaviside, [-1.0, 0.0, 2.0], [0.5, 0.5, 0.5])
    assert result == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    count("closed forms", 2)


def test_polar_of_a_negative_size():
    # PyTorch takes the sign of the result for exp(i * angle), which is the opposite here
    (size, angle) = gradients(lambda r, t: jaxgrad.polar(r, t).real, [-2.0, 0.0], [0.5, 0.5])
    numpy.testing.assert_allclose(size, numpy.cos([0.5, 0.5]), 1e-6)
    numpy.testing.assert_allclose(angle, [2 * numpy.sin(0.5), 0.0], 1e-6)
    count("closed forms", 2)


@pytest.mark.parametrize("point", [0.0, 1e-9, 1e-4, 0.2, 0.5])
def test_derivatives_of_sinc_around_zero(point):
    # sums of the Taylor series: PyTorch has 0 at 0 for the second derivative, which is -pi ** 2 / 3
    x = jaxgrad.tensor(point, dtype=jaxgrad.float64, requires_grad=True)
    (first,) = jaxgrad.autograd.grad(jaxgrad.sinc(x), x, create_graph=True)
    (second,) = jaxgrad.autograd.grad(first, x)
    p, terms = numpy.pi * point, range(1, 20)
    factors = [(-1) ** k / float(numpy.prod(numpy.arange(1.0, 2 * k + 2))) for k in terms]
    slope = numpy.pi * sum(
        f * 2 * k * p ** (2 * k - 1) for k, f in zip(terms, factors, strict=True)
    )
    bend = numpy.pi**2 * sum(
        f * 2 * k * (2 * k - 1) * p ** (2 * k - 2) for k, f in zip(terms, factors, strict=True)
    )
    numpy.testing.assert_allclose([first.item(), second.item()], [slope, bend], 1e-12)
    count("closed forms", 2)


# the aliases


def test_special_functions_are_the_operators():
    special = jaxgrad.special
    assert special.gammaln is jaxgrad.lgamma and special.psi is special.digamma is jaxgrad.digamma
    assert special.expit is jaxgrad.sigmoid and special.gammaincc is jaxgrad.igammac
    assert special.multigammaln is jaxgrad.mvlgamma and special.softmax is jaxgrad.softmax
    assert {"expit", "psi", "gammainc", "logit"} <= set(dir(special))
    count("names", 7)


@pytest.mark.parametrize("first", [2, 2.5, True])
def test_gradient_of_a_number_modulo_a_tensor(first):
    ((slope, other),) = gradients(lambda x: first % x, [0.3, -0.4])
    assert [slope, other] == [-numpy.floor(first / 0.3), -numpy.floor(first / -0.4)]
    count("closed forms")


@pytest.mark.slow
def test_ldexp_of_complex_numbers_has_gradients():
    # PyTorch's derivative fails where the exponents have one
    numbers = jaxgrad.tensor([1 + 2j, -0.5j], dtype=jaxgrad.complex128, requires_grad=True)
    exponents = jaxgrad.tensor([0.3, -1.7], dtype=jaxgrad.float64, requires_grad=True)
    assert jaxgrad.autograd.gradcheck(jaxgrad.ldexp, (numbers, exponents), check_forward_ad=True)
    count("derivatives")


def test_exponents_of_8_bits():
    exponents = jaxgrad.tensor([0, 1, 100, 255], dtype=jaxgrad.uint8)
    expected = [1.0, 2.0, 2.0**100, INFINITE]
    assert jaxgrad.ldexp(jaxgrad.ones(4), exponents).tolist() == expected
    negative = jaxgrad.tensor([-128, -1], dtype=jaxgrad.int8)
    assert jaxgrad.ldexp(jaxgrad.ones(2), negative).tolist() == [2.0**-128, 0.5]
    count("closed forms", 2)
