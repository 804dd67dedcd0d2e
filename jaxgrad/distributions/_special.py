"""Functions that are precise where sums of `lgamma`, `log1p` or `expm1` cancel, and so are their
derivatives of all orders: each element is computed by a series or by the plain expression.

They are code of JAX, which is traced much faster than operators; none has a kink.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from .. import ops
from ..frontend.jax_interop import own_operator
from ..rules.gamma import polynomial, stirling_series
from ._formulas import HALF_LOG_TAU

LARGE = 8  # from here on Stirling's series holds


def _stirling_rest(x):
    """`lgamma(x)` without `(x - 1/2) * log(x) - x + log(2 * pi) / 2`."""
    is_large = x >= LARGE
    large, small = jnp.where(is_large, x, LARGE), jnp.where(is_large, 1, x)
    plain = ops.lgamma(small) - (small - 0.5) * jnp.log(small) + small - HALF_LOG_TAU
    return jnp.where(is_large, stirling_series(large), plain)


@own_operator
def log_beta(a, b):
    """`lgamma(a) + lgamma(b) - lgamma(a + b)` for positive numbers, precise for large ones.

    Source: DiDonato and Morris, "Algorithm 708: Significant Digit Computation of the Incomplete
    Beta Function Ratios", 1992.
    """
    rest = _stirling_rest(a) + _stirling_rest(b) - _stirling_rest(a + b)
    powers = (a - 0.5) * jnp.log1p(b / a) + b * jnp.log1p(a / b)
    return HALF_LOG_TAU - powers - jnp.log(b) / 2 + rest


# lgamma(x + 1/2) - lgamma(x) - log(x) / 2, times x, in powers of x ** -2
_HALF_STEP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
_LARGE_STEP = 16.0


@own_operator
def half_step(x):
    """`lgamma(x + 1/2) - lgamma(x)` for positive numbers, precise for large ones."""
    large = jnp.where(x >= _LARGE_STEP, x, _LARGE_STEP)
    series = jnp.log(large) / 2 + polynomial(_HALF_STEP, 1 / (large * large)) / large
    return jnp.where(x >= _LARGE_STEP, series, ops.lgamma(x + 0.5) - ops.lgamma(x))


@own_operator
def half_step_slope(x):
    """`digamma(x + 1/2) - digamma(x)`, the derivative of `half_step`."""
    large = jnp.where(x >= _LARGE_STEP, x, _LARGE_STEP)
    slopes = [-(2 * n + 1) * coefficient for n, coefficient in enumerate(_HALF_STEP)]
    series = 1 / (2 * large) + polynomial(slopes, 1 / (large * large)) / (large * large)
    return jnp.where(x >= _LARGE_STEP, series, ops.digamma(x + 0.5) - ops.digamma(x))


# ---- probabilities of counts. Source: Loader, "Fast and Accurate Computation of Binomial
# Probabilities", 2000.


def _deviance(x, mean, log_mean):
    """`x * log(x / mean) + mean - x`, precise for an x near the mean."""
    v = (x - mean) / (x + mean)
    is_near = jnp.abs(v) < 0.1
    near = jnp.where(is_near, v, 0)
    series = near * polynomial([1 / (2 * n + 3) for n in range(7)], near * near)
    return jnp.where(
        is_near,
        (x - mean) * near * (1 + (1 + near) * series),
        x * (jnp.log(x) - log_mean) + mean - x,
    )


@own_operator
def large_binomial(value, count, log_p, log_q):
    """The logarithm of the probability of `value` successes and as many failures as are left, where
    both are large; any finite number elsewhere.

    log_p, log_q: the logarithms of the probabilities of a success and of a failure.
    """
    both = (value >= LARGE) & (count - value >= LARGE)
    k, n = jnp.where(both, value, LARGE), jnp.where(both, count, 2 * LARGE)
    log_p, log_q = (jnp.where(both, logarithm, -1) for logarithm in (log_p, log_q))
    rest = _stirling_rest(n) - _stirling_rest(k) - _stirling_rest(n - k)
    root = (jnp.log(n) - jnp.log(k) - jnp.log(n - k)) / 2
    successes = _deviance(k, n * jnp.exp(log_p), jnp.log(n) + log_p)
    failures = _deviance(n - k, n * jnp.exp(log_q), jnp.log(n) + log_q)
    return root - HALF_LOG_TAU + rest - successes - failures


@own_operator
def large_poisson(value, rate):
    """The logarithm of a Poisson probability of a large value; any finite number elsewhere."""
    is_large = (value >= LARGE) & (rate > 0)
    k, rate = jnp.where(is_large, value, LARGE), jnp.where(is_large, rate, 1)
    deviance = _deviance(k, rate, jnp.log(rate))
    return -deviance - jnp.log(k) / 2 - HALF_LOG_TAU - _stirling_rest(k)


# ---- quotients that are 0 / 0 at 0


def _series_near_0(x, bound, series, closed):
    """`series(x)` where `|x| < bound`, else `closed(x)`; each sees its own elements only."""
    is_near = jnp.abs(x) < bound
    near, far = jnp.where(is_near, x, 0.0), jnp.where(is_near, bound, x)
    return jnp.where(is_near, series(near), closed(far))


@own_operator
def log1p_quotient(x):
    """`log(1 + x) / x`, by the series of `atanh(x / (2 + x))` near 0."""

    def series(x):
        y = x / (2 + x)
        return polynomial([1 / (2 * n + 1) for n in range(7)], y * y) * 2 / (2 + x)

    return _series_near_0(x, 0.1, series, lambda x: jnp.log1p(x) / x)


_SINH = [1 / math.factorial(2 * n + 1) for n in range(9)]
_SINH_LESS_1 = [1 / math.factorial(2 * n + 3) for n in range(8)]
_COSH_LESS_SINH = [2 * (n + 1) / math.factorial(2 * n + 3) for n in range(8)]


@own_operator
def log_sinh_quotient(x):
    """`log(sinh(x) / x)`."""

    def closed(x):
        x = jnp.abs(x)
        return x + jnp.log(-jnp.expm1(-2 * x)) - jnp.log(2 * x)

    def series(x):
        return jnp.log1p(x * x * polynomial(_SINH_LESS_1, x * x))

    return _series_near_0(x, 1.0, series, closed)


@own_operator
def langevin(x):
    """`1 / tanh(x) - 1 / x`, the derivative of `log_sinh_quotient`."""

    def series(x):
        return x * polynomial(_COSH_LESS_SINH, x * x) / polynomial(_SINH, x * x)

    return _series_near_0(x, 1.0, series, lambda x: 1 / jnp.tanh(x) - 1 / x)


@own_operator
def langevin_slope(x):
    """`1 / x ** 2 - 1 / sinh(x) ** 2`, the derivative of `langevin`."""

    def series(x):
        sinh = polynomial(_SINH, x * x)
        return polynomial(_SINH_LESS_1, x * x) * (sinh + 1) / (sinh * sinh)

    def closed(x):
        decay = jnp.exp(-2 * jnp.abs(x))
        return 1 / (x * x) - 4 * decay / jnp.square(1 - decay)

    return _series_near_0(x, 1.0, series, closed)


@own_operator
def expm1_quotient(x):
    """`(exp(x) - 1) / x`."""
    return jnp.exp(x / 2 + log_sinh_quotient(x / 2))
