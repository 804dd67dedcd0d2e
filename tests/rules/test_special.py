"""Special functions: errors, edges of domains and dtypes as PyTorch has them; values and
derivatives that PyTorch lacks or has inaccurately, against mpmath's numbers.
"""

import math

import jax
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops, special

NAN, INFINITE = numpy.nan, numpy.inf

REFUSED = [
    ("torch.special.bessel_j0(tensor([1j]))", NotImplementedError, "for 'ComplexFloat'"),
    ("torch.special.airy_ai(zeros(1, dtype=torch.float16))", NotImplementedError, "for 'Half'"),
    ("torch.special.entr(tensor([1j]))", NotImplementedError, "for 'ComplexFloat'"),
    ("torch.special.zeta(tensor([1j]), 1)", NotImplementedError, "for 'ComplexFloat'"),
    (
        "torch.special.legendre_polynomial_p(tensor([1j]), 2)",
        NotImplementedError,
        "for 'ComplexFloat'",
    ),
    (
        "torch.special.hermite_polynomial_h(zeros(2), torch.ones(3))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3)",
    ),
]

ANSWERS = [
    ("torch.special.bessel_y0(tensor([0.0, -1.0]))", "float32", [-INFINITE, NAN]),
    ("torch.special.bessel_y1(tensor([0.0, -1.0]))", "float32", [-INFINITE, NAN]),
    ("torch.special.modified_bessel_k0(tensor([0.0, -1.0]))", "float32", [INFINITE, NAN]),
    ("torch.special.scaled_modified_bessel_k1(tensor([0.0, -1.0]))", "float32", [INFINITE, NAN]),
    ("torch.special.spherical_bessel_j0(tensor([inf, nan]))", "float32", [0.0, NAN]),
    ("torch.special.airy_ai(tensor([200.0, inf]))", "float32", [0.0, NAN]),
    ("torch.special.bessel_j1(tensor([True]))", "float32", [0.44005057215690613]),
    ("torch.special.i1(tensor([1.0], dtype=torch.float16))", "float16", [0.56494140625]),
    ("torch.special.erfcx(tensor([inf, -inf, nan]))", "float32", [0.0, INFINITE, NAN]),
    ("torch.special.log_ndtr(tensor([inf, -inf]))", "float32", [-0.0, -INFINITE]),
    ("torch.special.ndtri(tensor([-0.1, 0.0, 1.0]))", "float32", [NAN, -INFINITE, INFINITE]),
    ("torch.special.zeta(tensor([3.0, 0.5]), tensor([0.0, 2.0]))", "float32", [INFINITE, NAN]),
    ("torch.special.hermite_polynomial_h(tensor([1.0]), 129)", "float32", [NAN]),
    ("torch.special.chebyshev_polynomial_t(tensor([2]), tensor(2.9))", "float32", [7.0]),
    ("torch.special.laguerre_polynomial_l(tensor([0.5]), -1)", "float32", [0.0]),
    ("torch.special.chebyshev_polynomial_u(tensor([-1.0]), 1000001)", "float32", [-1000002.0]),
    ("torch.special.legendre_polynomial_p(zeros(0), zeros(2, 1))", "float32", numpy.zeros((2, 0))),
]

# at -10, 1 and 5, or 3, 10 and 50
ACCURATE = {
    "bessel_j0": ([3, 10, 50], [-0.26005195490193345, -0.24593576445134835, 0.055812327669251816]),
    "bessel_j1": ([3, 10, 50], [0.3390589585259365, 0.04347274616886144, -0.09751182812517514]),
    "bessel_y0": ([3, 10, 50], [0.3768500100127904, 0.055671167283599395, -0.09806499547007708]),
    "bessel_y1": ([3, 10, 50], [0.3246744247918, 0.24901542420695388, -0.05679566856201477]),
    "airy_ai": ([-10, 1, 5], [0.04024123848644319, 0.13529241631288141, 0.00010834442813607442]),
    "ndtr": ([-10], [7.619853024160525e-24]),
    "erfcx": ([5, 100], [0.11070463773306863, 0.005641613782989433]),
}


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy(name):
    points, expected = ACCURATE[name]
    result = getattr(special, name)(jaxgrad.tensor(points, dtype=jaxgrad.float64))
    numpy.testing.assert_allclose(result.numpy(), expected, 3e-14)
    count("closed forms", len(points))


# the first five derivatives at 0
AT_ZERO = {
    "bessel_j0": [0, -1 / 2, 0, 3 / 8, 0],
    "bessel_j1": [1 / 2, 0, -3 / 8, 0, 5 / 16],
    "i1": [1 / 2, 0, 3 / 8, 0, 5 / 16],
    "modified_bessel_i0": [0, 1 / 2, 0, 3 / 8, 0],
    "spherical_bessel_j0": [0, -1 / 3, 0, 1 / 5, 0],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_ZERO)
def test_higher_derivatives_at_zero(name):
    x = jaxgrad.tensor(0.0, dtype=jaxgrad.float64, requires_grad=True)
    derivatives, value = [], getattr(special, name)(x)
    for _ in range(5):
        (value,) = jaxgrad.autograd.grad(value, x, create_graph=True)
        derivatives.append(value.item())
    numpy.testing.assert_allclose(derivatives, AT_ZERO[name], 1e-13, 1e-13)
    count("closed forms", 5)


@pytest.mark.slow
def test_derivatives_at_poles_are_infinite():
    for name, slope in (
        ("bessel_y0", INFINITE),
        ("bessel_y1", INFINITE),
        ("modified_bessel_k0", -INFINITE),
        ("modified_bessel_k1", -INFINITE),
        ("scaled_modified_bessel_k0", -INFINITE),
        ("scaled_modified_bessel_k1", -INFINITE),
    ):
        x = jaxgrad.tensor(0.0, requires_grad=True)
        getattr(special, name)(x).backward()
        assert x.grad.item() == slope, name
        count("closed forms")


@pytest.mark.slow
def test_log_ndtr_is_smooth_in_both_tails():
    x = jaxgrad.tensor([-30.0, 3.0, 60.0], dtype=jaxgrad.float64, requires_grad=True)
    (slope,) = jaxgrad.autograd.grad(special.log_ndtr(x).sum(), x, create_graph=True)
    numpy.testing.assert_allclose(
        slope.tolist(), [30.033259667433676, 0.004437839042125664, 0], 1e-12
    )
    (second,) = jaxgrad.autograd.grad(slope.sum(), x)
    numpy.testing.assert_allclose(
        second.tolist(), [-0.9988962284881097, -0.01333321154174, 0], 1e-8
    )
    count("closed forms", 6)


@pytest.mark.parametrize("name", ["zeta", "legendre_polynomial_p"])
def test_what_has_no_derivative_raises(name):
    first = jaxgrad.tensor([2.5], requires_grad=name == "zeta")
    second = jaxgrad.tensor([2.0], requires_grad=name != "zeta")
    with pytest.raises(NotImplementedError, match=r"no derivative|not known"):
        getattr(special, name)(first, second).sum().backward()
    count("errors")


@pytest.mark.slow
def test_degrees_may_be_traced_and_batched():
    degrees = jaxgrad.arange(5)
    x = jaxgrad.tensor(0.3)
    expected = special.hermite_polynomial_he(x, degrees)
    compiled = jaxgrad.jit(special.hermite_polynomial_he)(x, degrees)
    batched = jax.vmap(lambda n: ops.special_hermite_polynomial_he(0.3, n))(degrees._array)
    assert compiled.tolist() == expected.tolist()
    numpy.testing.assert_allclose(batched, expected.numpy(), 1e-6)
    count("closed forms", 2)


def test_zeta_below_one_is_not_defined():
    """As PyTorch 2.13 prints it, also at a pole of the second argument."""
    exponents, starts = jaxgrad.tensor([0.0, 0.5, 1.0, 2.0]), jaxgrad.tensor([0.0, 1.0, 1.0, 1.0])
    values = jaxgrad.special.zeta(exponents, starts)
    assert values.isnan().tolist() == [True, True, False, False]
    assert values[2:].tolist() == pytest.approx([math.inf, math.pi**2 / 6])


@pytest.mark.parametrize("dtype", [jaxgrad.float16, jaxgrad.bfloat16])
def test_slopes_of_half_precision_do_not_overflow(dtype):
    """Closed forms for large x: erfcx(x) is near 1 / (sqrt(pi) x), asinh has the slope 1 / x."""
    x = jaxgrad.tensor([60.0, 300.0], dtype=dtype, requires_grad=True)
    (slope,) = jaxgrad.autograd.grad(special.erfcx(x).sum(), x)
    expected = [-1 / (math.sqrt(math.pi) * n**2) for n in x.tolist()]
    assert slope.tolist() == pytest.approx(expected, rel=0.01)
    (slope,) = jaxgrad.autograd.grad(jaxgrad.asinh(x).sum(), x)
    assert slope.tolist() == pytest.approx([1 / n for n in x.tolist()], rel=0.01)
