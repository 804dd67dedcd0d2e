"""The host's rules of special functions, compared with XLA, SciPy and closed forms."""

import itertools

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.special
from helpers import checks
from helpers.host_rules_elementwise import assert_near, by_wider_xla, check, dtype_of, on_host
from jax import lax

FLOATS = ["float16", "bfloat16", "float32", "float64"]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, np.inf, -np.inf, np.nan, 3.25, -7.75]
UNARY = {
    "bessel_i0e": scipy.special.i0e,
    "bessel_i1e": scipy.special.i1e,
    "digamma": scipy.special.psi,
    "erf": scipy.special.erf,
    "erf_inv": scipy.special.erfinv,
    "erfc": scipy.special.erfc,
    "lgamma": scipy.special.gammaln,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name, dtype):
    numbers = np.random.default_rng(0).uniform(-0.99, 0.99, 80)
    numbers[40:] *= 1 if name == "erf_inv" else 20
    numbers = np.concatenate([EDGES, numbers]).astype(dtype_of(dtype))
    ulps = {"float16": 1, "bfloat16": 1, "float32": 64, "float64": 64}[dtype]
    tiny = 1e-37
    if name in ("digamma", "lgamma"):  # XLA's lose digits beside their zeros
        tiny = 1e-13 if dtype == "float64" else 1e-5
    if name == "digamma":  # versions of XLA differ at its pole
        numbers = numbers[numbers != 0]
    with jax.enable_x64(True):
        check(getattr(lax, name), numbers, ulps=ulps, oracle=by_wider_xla, tiny=tiny)


@pytest.mark.parametrize("name", UNARY)
def test_single_precision_is_accurate(name):
    random = np.random.default_rng(0)
    numbers = random.uniform(-1, 1, 5000)
    if name != "erf_inv":
        numbers = np.concatenate([numbers, random.uniform(-9, 9, 5000)])
    numbers = numbers.astype(np.float32)
    assert_rounded(on_host(getattr(lax, name), numbers)[0], UNARY[name](numbers.astype(float)))


def assert_rounded(computed, expected):
    """Compare numbers of single precision with exact ones to one ulp."""
    spacing = np.spacing(np.abs(expected).astype(np.float32)).astype(float)
    assert (np.abs(computed - expected) <= spacing).all()
    checks.count("host rules", computed.size)


# ---- Functions of several operands


def operands(count, low=-3, high=4, size=400):
    random = np.random.default_rng(0)
    return [np.exp(random.uniform(low, high, size)).astype(np.float32) for _ in range(count)]


SEVERAL = {
    "igamma": (lax.igamma, scipy.special.gammainc, operands(2)),
    "igammac": (lax.igammac, scipy.special.gammaincc, operands(2)),
    "zeta": (lax.zeta, scipy.special.zeta, [1 + operands(2)[0], operands(2)[1]]),
    "betainc": (
        lax.betainc,
        scipy.special.betainc,
        [*operands(2), np.linspace(0, 1, 400, dtype=np.float32)],
    ),
    "polygamma": (
        lax.polygamma,
        lambda n, x: scipy.special.polygamma(n.astype(int), x),
        [np.resize([0, 1, 2, 3, 5, 9], 400).astype(np.float32), operands(1, -1)[0]],
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_operands_in_single_precision_are_accurate(name):
    function, exact, numbers = SEVERAL[name]
    expected = exact(*[operand.astype(float) for operand in numbers])
    is_usual = (expected > 1e-37) & (expected < 1e37)
    assert is_usual.sum() > 300
    (computed,) = on_host(function, *numbers)
    assert_rounded(computed[is_usual], expected[is_usual])


@pytest.mark.slow  # to compile
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_operands(name, dtype):
    function, _, numbers = SEVERAL[name]
    numbers = [operand[:60].astype(dtype_of(dtype)) for operand in numbers]
    ulps = {"float16": 1, "bfloat16": 1, "float32": 5000, "float64": 1e6}[dtype]
    with jax.enable_x64(True):
        check(function, *numbers, ulps=ulps, oracle=by_wider_xla, tiny=1e-30)


PAIRS = np.array([(a, x) for a in (1, 0.5, 3, -1, np.nan) for x in (0, 1, 2.5, -1, np.inf, np.nan)])


@pytest.mark.slow  # to compile
@pytest.mark.parametrize("name", ["igamma", "igammac", "igamma_grad_a"])
def test_edges_of_the_incomplete_gamma_function(name):
    first, second = PAIRS.T
    with jax.enable_x64(True):
        check(getattr(lax, name), first, second, ulps=1e6)


@pytest.mark.slow  # to compile
def test_edges_of_the_incomplete_beta_function():
    values = [0, 1, 0.5, 2, -1, np.nan]
    numbers = [grid.ravel() for grid in np.meshgrid(values, values, [0, 0.25, 1, -1, 2, np.nan])]
    with jax.enable_x64(True):
        check(lax.betainc, *map(np.float64, numbers), ulps=1e6)


@pytest.mark.slow  # to compile
def test_edges_of_zeta_and_polygamma():
    values = np.array([0, 1, 2, 3.5, -1, np.nan])
    first, second = (grid.ravel() for grid in np.meshgrid(values, [0.5, 1, 3, np.nan]))
    with jax.enable_x64(True):
        check(lambda s, q: [lax.zeta(s, q), lax.polygamma(s, q)], first, second, ulps=1e6)


def test_zeta_of_a_negative_operand():
    # the terms before and behind the pole
    near = [sum((q + n) ** -3.0 for n in range(100_000)) for q in (-20.25, -0.5)]
    (computed,) = on_host(lax.zeta, np.float32([3, 3]), np.float32([-20.25, -0.5]))
    assert_near(computed, np.float32(near), 4)


# ---- The derivative of the incomplete gamma function by its order


ORDERS = [1e-3, 0.1, 0.5, 0.99, 1, 1.5, 4, 19.9, 20, 60, 150]
RATIOS = [0.01, 0.3, 0.8, 1, 1.2, 2, 8]


def derivative_by_order(a, x):
    """An integral of the integrand's derivative, over log(t), on the side of x without
    cancellation.
    """
    psi = scipy.special.psi(a)

    def integrand(u):
        return np.exp(a * u - np.exp(u) - scipy.special.gammaln(a)) * (u - psi)

    end = np.log(x)
    other = end - 1 - 45 / a if end < psi else max(end, np.log(a), 0) + 5
    bounds = np.linspace(other, end, 30)  # in parts: the integrand may have a narrow peak
    parts = [
        scipy.integrate.quad(integrand, *ends, epsabs=0, epsrel=1e-11)
        for ends in itertools.pairwise(bounds)
    ]
    return sum(part for part, _ in parts)


def test_derivative_by_the_order():
    pairs = np.array([(a, a * ratio) for a in ORDERS[1:] for ratio in RATIOS])
    expected = np.array([derivative_by_order(a, x) for a, x in pairs])
    with jax.enable_x64(True):
        (computed,) = on_host(lax.igamma_grad_a, *pairs.T)
    assert_near(computed, expected, ulps=1e6)


def test_derivative_by_the_order_is_a_difference_quotient():
    a = np.array([0.3, 0.9, 1.0, 2.5, 20.0, 19.9, 300.0, 1e4])
    x, step = a * np.array([0.2, 1.1, 0.9, 2, 1, 0.8, 1.05, 1.01]), 1e-4 * a
    p = scipy.special.gammainc
    quotient = 8 * (p(a + step, x) - p(a - step, x)) - (p(a + 2 * step, x) - p(a - 2 * step, x))
    with jax.enable_x64(True):
        (computed,) = on_host(lax.igamma_grad_a, a, x)
    np.testing.assert_allclose(computed, quotient / (12 * step), rtol=1e-8)
    checks.count("host rules", a.size)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_derivative_by_the_order_of_any_shape(dtype):
    a, x = (operand.astype(dtype_of(dtype)) for operand in operands(2))
    expected = np.array(
        [derivative_by_order(*map(float, pair)) for pair in zip(a[:9], x[:9], strict=True)]
    )
    expected = expected.astype(dtype_of(dtype))
    (computed,) = on_host(lax.igamma_grad_a, a[:9].reshape(3, 3).T, x[:9].reshape(3, 3).T)
    assert_near(computed, expected.reshape(3, 3).T, 1)
    assert_near(on_host(lax.igamma_grad_a, a[4], x[4])[0], expected[4], 1)
    assert on_host(lax.igamma_grad_a, a[:0], x[:0])[0].shape == (0,)
