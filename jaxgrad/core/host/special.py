"""Rules of special functions, by SciPy.

XLA loses all digits of some values, or gives NaN for them (igamma(0, x) of a small x, zeta(s, q) of
a negative q). The host gives SciPy's values there.
"""

from __future__ import annotations

import functools
import math

import numpy

from ...late import LateModule
from . import error_function
from .dtypes import HALVES, arithmetic, widened

scipy_special = LateModule("scipy.special")

# SciPy computes these in double precision, and rounds the results of single precision once
FUNCTIONS = {
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "erf": "erf",
    "erfc": "erfc",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "lgamma": "gammaln",
}


# without an import of SciPy, which has the faster ones for large arrays
NEAR_AT_HAND, LARGE = {"erf": error_function.erf, "erfc": error_function.erfc}, 1 << 16


@arithmetic(*FUNCTIONS)
def _function(equation):
    shape, dtype = equation.outputs[0]
    if equation.name in NEAR_AT_HAND and dtype != numpy.float64 and math.prod(shape) < LARGE:
        return widened(NEAR_AT_HAND[equation.name], dtype)
    return widened(getattr(scipy_special, FUNCTIONS[equation.name]), equation.outputs[0].dtype)


DOUBLES = "digamma", "erf_inv", "igamma_grad_a", "polygamma", "regularized_incomplete_beta", "zeta"


@arithmetic(*DOUBLES)
def _in_double(equation):
    function = {
        "digamma": _digamma,
        "erf_inv": scipy_special.erfinv,
        "polygamma": _polygamma,
        "regularized_incomplete_beta": scipy_special.betainc,
        "zeta": scipy_special.zeta,
        "igamma_grad_a": _igamma_grad_a,
    }[equation.name]
    dtype = equation.outputs[0].dtype
    if dtype == numpy.float64:
        return function
    double = numpy.float64

    def call(*operands):
        result = function(*[operand.astype(double) for operand in operands])
        # XLA, too, rounds twice
        return (result.astype(numpy.float32) if dtype in HALVES else result).astype(dtype)

    return call


def _digamma(operand):
    return numpy.where(operand == 0, numpy.nan, scipy_special.psi(operand))


def _polygamma(order, operand):
    """The derivative of digamma of an order: a factorial times a value of Hurwitz's zeta."""
    sign = numpy.where(numpy.fmod(order, 2) == 0, -1.0, 1.0)
    value = sign * scipy_special.gamma(order + 1) * scipy_special.zeta(order + 1, operand)
    value = numpy.where(order == 0, _digamma(operand), value)
    return numpy.where((order < 0) | (numpy.floor(order) != order), numpy.nan, value)


# ---- The derivative of igamma by its first operand

# nodes of Gauss and Legendre in an interval; how many elements have theirs in memory at a time
NODES, AT_ONCE = 64, 1 << 14
# a factor of e to this power is too small to matter
NEGLIGIBLE = 42.0


def _igamma_grad_a(order, bound):
    """The derivative of P(a, x) by a, from an integral over u = log(t / a):

    P'(a, x) = 1 / gamma(a) * integral of t**a exp(-t) (log(t) - digamma(a)) du for t from 0 to x

    The integral to infinity is 0, and the sign of the integrand changes only at t = e**digamma(a),
    so the integral on that side of x where it does not change has no cancellation.
    """
    order, bound = numpy.broadcast_arrays(order, bound)
    result = numpy.full(order.shape, numpy.nan)
    is_zero = (order > 0) & (bound == 0)
    numpy.copyto(result, 0.0, where=is_zero)
    places = numpy.flatnonzero((order > 0) & (bound > 0) & numpy.isfinite(order + bound))
    orders, bounds, values = order.ravel(), bound.ravel(), result.ravel()
    for start in range(0, places.size, AT_ONCE):
        some = places[start : start + AT_ONCE]
        values[some] = _derivative(orders[some], bounds[some])
    return values.reshape(result.shape)


def _derivative(a, x):
    # P(a, x) = P(a + 1, x) + x**a exp(-x) / gamma(a + 1): a small a has a long tail on the left
    digamma = scipy_special.psi(a + 1)
    is_shifted = (a < 1) & (numpy.log(x) < digamma)
    log_term = a * numpy.log(x) - x - scipy_special.gammaln(a + 1)
    shifted = numpy.where(is_shifted, numpy.exp(log_term) * (numpy.log(x) - digamma), 0)
    a = numpy.where(is_shifted, a + 1, a)
    centre = numpy.where(a < 20, scipy_special.psi(a) - numpy.log(a), _digamma_less_log(a))
    end = numpy.log(x / a)
    is_left = end < centre
    end_factor = numpy.exp(a * (end - numpy.expm1(end)) + _log_peak(a))
    width = numpy.where(is_left, -_width_on_left(a, end), _width_on_right(a, x))
    nodes, weights = _quadrature()
    steps = 0.5 * width[:, None] * (nodes + 1)
    a, end = a[:, None], end[:, None]
    # the logarithm of the density less that at the end
    decay = a * (steps - numpy.exp(end) * numpy.expm1(steps))
    integral = (numpy.exp(decay) * (end + steps - centre[:, None])) @ weights
    return shifted - 0.5 * width * integral * end_factor


@functools.cache
def _quadrature():
    return numpy.polynomial.legendre.leggauss(NODES)


def _log_peak(a):
    """log(a**a exp(-a) / gamma(a)), by Stirling's series where a is large."""
    large = numpy.maximum(a, 20)
    inverse = 1 / (large * large)
    terms = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680)))
    series = 0.5 * numpy.log(large / (2 * numpy.pi)) - terms / large
    return numpy.where(a < 20, a * numpy.log(a) - a - scipy_special.gammaln(a), series)


def _digamma_less_log(a):
    """digamma(a) - log(a) of a large a."""
    inverse = 1 / (a * a)
    terms = 1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240)))
    return -0.5 / a - inverse * terms


def _width_on_left(a, end):
    """How far below the end the density, of u, is not negligible."""
    ratio = numpy.exp(end)
    width = numpy.maximum(numpy.sqrt(3 * NEGLIGIBLE / a), 2.7 * NEGLIGIBLE / a)
    for _ in range(8):  # Newton's method, from above
        fall = a * (width + ratio * numpy.expm1(-width)) - NEGLIGIBLE
        width = width - fall / (a * (1 - ratio * numpy.exp(-width)))
    return width


def _width_on_right(a, x):
    """How far above the end the density is not negligible."""
    ratio = NEGLIGIBLE / x
    width = numpy.log1p(ratio + numpy.sqrt(ratio * ratio + 2 * ratio)) + 1 / a
    for _ in range(8):
        fall = x * numpy.expm1(width) - a * width - NEGLIGIBLE
        width = width - fall / (x * numpy.exp(width) - a)
    return width
