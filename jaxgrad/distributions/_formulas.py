"""Formulas of densities as single nodes, and functions that they are composed of.

The functions are precise where sums of `lgamma`, `log1p` or `expm1` cancel, and so are their
derivatives. They are code on tensors, which every derivative goes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import ops
from ..frontend.jax_interop import from_jax, to_jax

HALF_LOG_TAU = math.log(2 * math.pi) / 2


def fused(formula: Callable) -> Callable:
    """Turn a function of tensors into an operator: one kernel, and one node of its name.

    Called operator by operator, a density takes five times as long. The arguments that are no
    tensors are constants of the kernel.

    >>> from jaxgrad.distributions._formulas import fused
    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> fused(lambda x: x.exp() - x)(x).grad_fn.next_functions[0][0].variable is x
    True
    """
    return from_jax(to_jax(formula))


def polynomial(x, coefficients: Sequence[float]):
    """The polynomial with these coefficients, of the lowest power first."""
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def times_log(x, log_y):
    """`x * log_y`, and 0 without a gradient where x is 0 and the logarithm is infinite."""
    return x * ops.masked_fill(log_y, (x == 0) & ops.isinf(log_y), 0)


def xlogy(x, y):
    """`x * log(y)`, and 0 without a gradient where x and y are 0."""
    return x * ops.log(ops.masked_fill(y, (x == 0) & (y == 0), 1))


def xlog1py(x, y):
    """`x * log(1 + y)`, and 0 without a gradient where x is 0 and y is -1."""
    return x * ops.log1p(ops.masked_fill(y, (x == 0) & (y == -1), 0))


def where_defined(condition, formula: Callable, x, inside: float, otherwise: float):
    """`formula(x)` where the condition holds, else a constant.

    inside: a number for which the formula is finite; it stands for each x where the condition does
    not hold, whose gradient would be NaN.
    """
    return ops.where(condition, formula(ops.where(condition, x, inside)), otherwise)


# ---- gamma functions

# Stirling's series of log(gamma(x)), divided by x: Bernoulli numbers B(2n) / (2n (2n - 1))
_STIRLING = (
    *(1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156),
    *(-3617 / 122400,),
)
_LARGE = 8.0  # from here on the series has the precision of float64


def _stirling_rest(x):
    """What Stirling's formula lacks of log(gamma(x)) for a large x."""
    return polynomial(1 / (x * x), _STIRLING) / x


def log_beta(a, b):
    """`lgamma(a) + lgamma(b) - lgamma(a + b)` for positive numbers, precise for large ones.

    Source: DiDonato and Morris, "Algorithm 708: Significant Digit Computation of the Incomplete
    Beta Function Ratios", 1992.
    """
    # by `where`, so that at a == b too each derivative is that of one argument
    is_ordered = a < b
    a, b = ops.where(is_ordered, a, b), ops.where(is_ordered, b, a)
    plain = ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)
    large = ops.where(b >= _LARGE, b, _LARGE)
    rest = _stirling_rest(large) - _stirling_rest(a + large) + (0.5 - large) * ops.log1p(a / large)
    with_one = ops.lgamma(a) - a * (ops.log(a + large) - 1) + rest
    both = ops.where(a >= _LARGE, a, _LARGE)
    with_two = HALF_LOG_TAU - ops.log(both) / 2 - both * ops.log1p(large / both)
    with_two = with_two + _stirling_rest(both) + rest
    return ops.where(b < _LARGE, plain, ops.where(a < _LARGE, with_one, with_two))


# lgamma(x + 1/2) - lgamma(x) - log(x) / 2, times x, in powers of x ** -2
_HALF_STEP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
_LARGE_STEP = 16.0


def half_step(x):
    """`lgamma(x + 1/2) - lgamma(x)` for positive numbers, precise for large ones."""
    large = ops.where(x >= _LARGE_STEP, x, _LARGE_STEP)
    series = ops.log(large) / 2 + polynomial(1 / (large * large), _HALF_STEP) / large
    return ops.where(x >= _LARGE_STEP, series, ops.lgamma(x + 0.5) - ops.lgamma(x))


def half_step_slope(x):
    """`digamma(x + 1/2) - digamma(x)`, the derivative of `half_step`."""
    large = ops.where(x >= _LARGE_STEP, x, _LARGE_STEP)
    slopes = [-(2 * n + 1) * each for n, each in enumerate(_HALF_STEP)]
    series = 1 / (2 * large) + polynomial(1 / (large * large), slopes) / (large * large)
    return ops.where(x >= _LARGE_STEP, series, ops.digamma(x + 0.5) - ops.digamma(x))


# ---- quotients that are 0 / 0 at 0


def _series_near_0(x, bound, series, closed):
    """`series(x)` where `|x| < bound`, else `closed(x)`; each sees its own elements only."""
    is_near = ops.abs(x) < bound
    near, far = ops.where(is_near, x, 0.0), ops.where(is_near, bound, x)
    return ops.where(is_near, series(near), closed(far))


def log1p_quotient(x):
    """`log(1 + x) / x`, by the series of `atanh(x / (2 + x))` near 0."""

    def series(x):
        y = x / (2 + x)
        return polynomial(y * y, [1 / (2 * n + 1) for n in range(7)]) * 2 / (2 + x)

    return _series_near_0(x, 0.1, series, lambda x: ops.log1p(x) / x)


_SINH = [1 / math.factorial(2 * n + 1) for n in range(9)]
_SINH_LESS_1 = [1 / math.factorial(2 * n + 3) for n in range(8)]
_COSH_LESS_SINH = [2 * (n + 1) / math.factorial(2 * n + 3) for n in range(8)]


def log_sinh_quotient(x):
    """`log(sinh(x) / x)`."""

    def closed(x):
        x = ops.abs(x)
        return x + ops.log(-ops.expm1(-2 * x)) - ops.log(2 * x)

    return _series_near_0(x, 1.0, lambda x: ops.log(polynomial(x * x, _SINH)), closed)


def langevin(x):
    """`1 / tanh(x) - 1 / x`, the derivative of `log_sinh_quotient`."""

    def series(x):
        return x * polynomial(x * x, _COSH_LESS_SINH) / polynomial(x * x, _SINH)

    return _series_near_0(x, 1.0, series, lambda x: 1 / ops.tanh(x) - 1 / x)


def langevin_slope(x):
    """`1 / x ** 2 - 1 / sinh(x) ** 2`, the derivative of `langevin`."""

    def series(x):
        sinh = polynomial(x * x, _SINH)
        return polynomial(x * x, _SINH_LESS_1) * (sinh + 1) / (sinh * sinh)

    def closed(x):
        decay = ops.exp(-2 * ops.abs(x))
        return 1 / (x * x) - 4 * decay / ops.square(1 - decay)

    return _series_near_0(x, 1.0, series, closed)


def expm1_quotient(x):
    """`(exp(x) - 1) / x`."""
    return ops.exp(x / 2 + log_sinh_quotient(x / 2))
