"""The incomplete gamma functions, and their derivatives in the order."""

import functools
import math

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import gamma

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

# marks a family of elementwise operators, whose results have the strides of their operands
POINTWISE = True

_real_inexact = promotion.without(dtypes.BOOLEAN, dtypes.INTEGRAL, dtypes.COMPLEX)


@promotion.common
@promotion.in_single
@_real_inexact
def igamma(self, other):
    value = _by_expansion(self, other, lax.igamma(self, other), -1)
    return _with_limits(self, other, value, 1, 0)


@promotion.common
@promotion.in_single
@_real_inexact
def igammac(self, other):
    # XLA takes 1 - igamma for small numbers, which has no digits left for a small order
    is_small = (self > 0) & (self < 0.5) & (other > 0) & (other <= 1)
    value = jnp.where(is_small, _upper_of_small(self, other), lax.igammac(self, other))
    value = _by_expansion(self, other, value, 1)
    return _with_limits(self, other, value, 0, 1)


def _with_limits(self, other, value, at_zero, at_infinity):
    """The values with the limits for the orders 0 and infinity, NaN where there is none."""
    is_past = (self == 0) & (other > 0)
    is_before = (self == jnp.inf) & (other >= 0) & jnp.isfinite(other)
    is_limit = (self == 0) | jnp.isinf(self)
    limit = jnp.where(is_past, at_zero, jnp.where(is_before, at_infinity, jnp.nan))
    return jnp.where(is_limit, limit, value)


# C_k(eta) of Temme's expansion, each as a polynomial in eta
_TEMME = (
    (
        -1 / 3,
        1 / 12,
        -2 / 135,
        1 / 864,
        3.527336860670194e-4,
        -1.7875514403292181e-4,
        3.9192631785224378e-5,
        -2.1854485106799922e-6,
        -1.85406221071516e-6,
        8.296711340953086e-7,
    ),
    (
        -1 / 540,
        -1 / 288,
        1 / 378,
        -9.9022633744855967e-4,
        2.0576131687242798e-4,
        -4.0187757201646091e-7,
        -1.8098550334489978e-5,
        7.6491609160811101e-6,
    ),
    (
        25 / 6048,
        -139 / 51840,
        1 / 1296,
        2.0093878600823045e-6,
        -1.0736653226365161e-4,
        5.2923448829120125e-5,
    ),
)


def _by_expansion(a, x, otherwise, side):
    """The lower (`side` -1) or upper (1) function in float32 for a large order `a` near `x`, by the
    uniform expansion (DLMF 8.12): there `x ** a * exp(-x)` has no digits left.
    """
    if a.dtype != jnp.float32:
        return otherwise
    is_near = (a > 20) & (lax.abs(x - a) < 0.4 * a)
    a = jnp.where(is_near, a, 20)
    difference = jnp.where(is_near, (x - a) / a, 0)  # mu = x / a - 1
    # eta ** 2 / 2 = mu - log(1 + mu), by its series
    terms = [(-1) ** n / n for n in range(2, 20)]
    eta = difference * lax.sqrt(2 * gamma.polynomial(terms, difference))
    tail = lax.erfc(side * eta * lax.sqrt(a / 2)) / 2
    correction = gamma.polynomial([gamma.polynomial(row, eta) for row in _TEMME], 1 / a)
    correction *= lax.exp(-a * eta * eta / 2) / lax.sqrt(2 * math.pi * a)
    return jnp.where(is_near, tail + side * correction, otherwise)


def _upper_of_small(a, x):
    """The upper function for 0 < a < 1/2 and 0 < x <= 1 by the series of the lower one, whose
    first term is subtracted from 1 without loss of digits (as `igamc_series` of Cephes).
    """
    logarithm = lax.log(x)
    terms = [(-x) ** n / (float(math.factorial(n)) * (a + n)) for n in range(1, 19)]
    exponent = a * logarithm - gamma.lgamma_of_next(a)
    return -lax.expm1(exponent) - lax.exp(exponent) * a * sum(terms)


# ---- derivatives


def igamma_density(self, other):
    """The derivative of `igamma` in `other`: `other ** (self - 1) * exp(-other) / gamma(self)`."""
    a, x = promotion.unify(self, other)
    is_infinite = x == jnp.inf
    x = jnp.where(is_infinite, 1, x)
    exponent = op.xlogy(a - 1, x) - x - op.lgamma(a)
    return jnp.where(is_infinite, 0, op.exp(exponent))


@promotion.common
@promotion.in_single
@_real_inexact
def _moment(self, other, *, k):
    a, x = jnp.broadcast_arrays(self, other)
    is_defined = (a > 0) & (x >= 0) & jnp.isfinite(a)
    a, x = jnp.where(is_defined, a, 1), jnp.where(is_defined, x, 1)
    is_zero = x == 0
    x = jnp.where(is_zero, 1, jnp.minimum(x, 1e30))
    shift, logarithm = gamma.digamma(a), gamma.lgamma(a)
    by_tail = _total_moment(a, k) - _upper_moment(a, x, k, shift, logarithm)
    of_small = jnp.where(x <= 1, _moment_by_series(a, x, k, shift, logarithm), by_tail)
    value = jnp.where(a < _LARGE, of_small, _moment_of_large(a, x, k, shift))
    return jnp.where(is_defined, jnp.where(is_zero, 0, value), jnp.nan)


def igamma_moment(self, other, k):
    """The integral up to `x = other` that defines `igamma`, of the density times
    `(log(t) - digamma(a)) ** k`: `igamma` for k = 0, its derivative in the order `a` for k = 1.

    Its derivative in `a` is `moment(k + 1) - k * polygamma(1, a) * moment(k - 1)`. By quadrature in
    `s = log(t)`, where the density is `exp(a * s - exp(s)) / gamma(a)`.
    """
    return igamma(self, other) if k == 0 else _moment(self, other, k=k)


def igamma_moment_backward(grad, self, other, k):
    """The gradients of the order and of `other`."""
    slope = op._igamma_moment(self, other, k + 1)
    if k:
        slope = slope - k * op.polygamma(1, self) * op._igamma_moment(self, other, k - 1)
    factor = (op.log(other) - op.digamma(self)) ** k if k else 1
    return grad * slope, grad * igamma_density(self, other) * factor


_LARGE = 8  # orders from here on by the integral alone
_DROP = 40  # where the density is less than exp(-40) of its maximum it is left out


@functools.cache
def _nodes(count=64):
    """Nodes and weights of Gauss and Legendre between -1 and 1."""
    return numpy.polynomial.legendre.leggauss(count)


def integral(function, low, high):
    """The integral of `function` from `low` to `high`, arrays of one shape."""
    nodes, weights = (jnp.asarray(numbers, low.dtype) for numbers in _nodes())
    half, middle = (high - low)[..., None] / 2, (high + low)[..., None] / 2
    return jnp.sum(weights * function(middle + half * nodes) * half, -1)


def _total_moment(a, k):
    """The moment up to infinity, from the cumulants `polygamma(j - 1, a)`."""
    moments = [1.0, 0.0]
    for q in range(2, k + 1):
        terms = [
            math.comb(q - 1, j - 1) * gamma.polygamma(j - 1, a) * moments[q - j]
            for j in range(2, q + 1)
        ]
        moments.append(sum(terms))
    return moments[k]


def _upper_moment(a, x, k, shift, logarithm):
    """The moment from `x` on, for orders below `_LARGE`."""
    x = jnp.clip(x, 1, 700)  # exp(-700) is nothing
    order, shift, logarithm = (parameter[..., None] for parameter in (a, shift, logarithm))

    def density(s):
        return (s - shift) ** k * jnp.exp(order * s - jnp.exp(s) - logarithm)

    return integral(density, lax.log(x), lax.log(x + 45))


# of t ** n in the series of exp(-t)
_EXPONENTIAL = [(-1) ** n / math.factorial(n) for n in range(18)]


def _moment_by_series(a, x, k, shift, logarithm):
    """The moment for `x` up to 1, by the series of `exp(-t)`; each term is integrated by parts."""
    x = jnp.minimum(x, 1)
    distance = (lax.log(x) - shift)[..., None]
    n = jnp.arange(len(_EXPONENTIAL), dtype=x.dtype)
    parts = [
        (-1) ** j * math.perm(k, j) * distance ** (k - j) / (a[..., None] + n) ** (j + 1)
        for j in range(k + 1)
    ]
    terms = jnp.asarray(_EXPONENTIAL, x.dtype) * x[..., None] ** n * sum(parts)
    return jnp.sum(terms, -1) * lax.exp(a * lax.log(x) - logarithm)


def _moment_of_large(a, x, k, shift):
    """The moment for orders from `_LARGE` on: the integral over `t = s - log(a)` around its
    maximum, t = 0, to where the density has dropped.
    """
    a = jnp.maximum(a, _LARGE)
    right = jnp.minimum(lax.sqrt(2 * _DROP / a), jnp.maximum(1, lax.log(4 * _DROP / a)))
    high = jnp.minimum(lax.log(x / a), right)
    distance = (_DROP + lax.sqrt(_DROP * _DROP + 8 * a * _DROP)) / (2 * a)
    is_below = x < a
    steep = jnp.where(is_below, _DROP / jnp.where(is_below, a - x, 1), distance)
    low = jnp.minimum(high, 0) - jnp.minimum(distance, steep)
    # a * log(a) - a - lgamma(a), in which large terms cancel
    scale = lax.log(a / (2 * math.pi)) / 2 - gamma.stirling_series(a)
    order, scale, shift = (parameter[..., None] for parameter in (a, scale, lax.log(a) - shift))

    def density(t):
        return (t + shift) ** k * jnp.exp(order * (t - jnp.expm1(t)) + scale)

    return integral(density, low, high)
