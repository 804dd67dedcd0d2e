"""The gamma function, its logarithm and its derivatives."""

import functools
import math

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

# marks a family of elementwise operators, whose results have the strides of their operands
POINTWISE = True

_real = promotion.without(dtypes.COMPLEX)

# Riemann's zeta(k) - 1 for k = 2, 3, ..., 26
_ZETA_MINUS_ONE = (
    6.4493406684822644e-01,
    2.0205690315959429e-01,
    8.2323233711138192e-02,
    3.6927755143369926e-02,
    1.7343061984449140e-02,
    8.3492773819228268e-03,
    4.0773561979443394e-03,
    2.0083928260822144e-03,
    9.9457512781808534e-04,
    4.9418860411946456e-04,
    2.4608655330804830e-04,
    1.2271334757848915e-04,
    6.1248135058704829e-05,
    3.0588236307020493e-05,
    1.5282259408651872e-05,
    7.6371976378997623e-06,
    3.8172932649998398e-06,
    1.9082127165539389e-06,
    9.5396203387279611e-07,
    4.7693298678780647e-07,
    2.3845050272773299e-07,
    1.1921992596531107e-07,
    5.9608189051259480e-08,
    2.9803503514652280e-08,
    1.4901554828365042e-08,
)
_EULER = 0.57721566490153286

# lgamma(2 + w) / w as a polynomial in w for |w| <= 1/2 (Abramowitz and Stegun, 6.1.33)
_NEAR_TWO = (1 - _EULER, *((-1) ** k * z / k for k, z in enumerate(_ZETA_MINUS_ONE, start=2)))


def polynomial(coefficients, x):
    """The sum of `coefficients[k] * x ** k`."""
    return functools.reduce(
        lambda total, coefficient: total * x + coefficient, reversed(coefficients)
    )


# the coefficients of z ** -1, z ** -3, ... in Stirling's series (Abramowitz and Stegun, 6.1.41)
STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
    43867 / 244188,
)
_FAR = 8  # from here on Stirling's series holds


@promotion.floating
@promotion.in_single
@_real
def lgamma(self):
    """By series, since XLA's has no correct digit around its zeros 1 and 2."""
    size = lax.abs(self)
    value = jnp.where(size < _FAR, _lgamma_near(self), _lgamma_far(jnp.maximum(size, _FAR)))
    sine = lax.sin(math.pi * (self - jnp.round(self)))
    reflected = lax.log(math.pi / lax.abs(size * sine)) - value
    value = jnp.where(self <= -0.5, reflected, value)
    is_pole = (self <= 0) & (self == jnp.floor(self))
    return jnp.where(is_pole, jnp.inf, value)


def lgamma_of_next(x):
    """`lgamma(1 + x)` for numbers between 0 and 1/2, in which the sum would lose their digits."""
    return x * polynomial(_NEAR_TWO, x) - lax.log1p(x)


def _lgamma_near(x):
    """`lgamma` of `x` between -1/2 and 1/2, and of its absolute value between 1/2 and 8."""
    y, product = lax.abs(x), jnp.ones_like(x)
    for _ in range(_FAR - 2):  # gamma(y) = (y - 1) * gamma(y - 1)
        is_above = y > 2.5
        product, y = jnp.where(is_above, product * (y - 1), product), jnp.where(is_above, y - 1, y)
    is_small, is_below = y < 0.5, y < 1.5
    offset = jnp.where(is_small, x, jnp.where(is_below, y - 1, y - 2))
    coefficients = _NEAR_TWO if x.dtype == jnp.float64 else _NEAR_TWO[:13]
    value = offset * polynomial(coefficients, offset)
    value -= lax.log1p(jnp.where(is_below, offset, 0))  # gamma(1 + w) = gamma(2 + w) / (1 + w)
    logarithm = lax.log(jnp.where(is_small, lax.abs(x), product))  # 1 / x may be infinite
    return value + jnp.where(is_small, -logarithm, logarithm)


def _lgamma_far(x):
    return (x - 0.5) * (lax.log(x) - 1) + (math.log(2 * math.pi) - 1) / 2 + stirling_series(x)


def stirling_series(x):
    """`lgamma(x)` without Stirling's formula, for numbers from 8 on."""
    coefficients = STIRLING if x.dtype == jnp.float64 else STIRLING[:3]
    inverse = 1 / x
    return inverse * polynomial(coefficients, inverse * inverse)


@promotion.floating
@promotion.in_single
@_real
def digamma(self):
    """XLA's; at 0 it is infinite, as its limit from the side of the sign of 0."""
    return jnp.where(self == 0, -jnp.inf / jnp.copysign(1, self), lax.digamma(self))


def polygamma(n, self):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(self) if n == 0 else _polygamma(self, n=n)


def polygamma_self_first(self, n):
    return polygamma(n, self)


@promotion.floating
@promotion.in_single
@_real
def _polygamma(self, *, n):
    """`(-1) ** (n + 1) * n! * zeta(n + 1, x)` for positive numbers; for others by the reflection
    formula, Abramowitz and Stegun 6.4.7.
    """
    sign = (-1) ** (n + 1)
    positive = self > 0
    order = jnp.full_like(self, n + 1)
    # the last term of XLA's series of zeta is infinity times zero at infinity
    argument = jnp.where(positive, self, 1 - self)
    series = sign * _rounded(math.factorial(n)) * lax.zeta(order, argument)
    series = jnp.where(jnp.isposinf(argument), 0, series)
    reflected = -sign * series - _derivative_of_cotangent(n, self)
    at_pole = (self == jnp.floor(self)) & jnp.isfinite(self)
    reflected = jnp.where(at_pole, sign * jnp.inf, reflected)
    return jnp.where(positive, series, jnp.where(jnp.isneginf(self), jnp.nan, reflected))


def _derivative_of_cotangent(n, x):
    """The derivative of order `n` of `pi * cot(pi * x)`."""
    coefficients = [0, 1]  # of a polynomial in the cotangent c, whose derivative is -1 - c ** 2
    for _ in range(n):
        slope = [k * coefficient for k, coefficient in enumerate(coefficients)][1:]
        padded = [*slope, 0, 0]
        coefficients = [-(padded[k] + (slope[k - 2] if k > 1 else 0)) for k in range(len(padded))]
    factor = math.pi ** (n + 1)
    cotangent = _cotangent_of_pi(x - jnp.round(x))
    # every other coefficient is 0
    even = polynomial(
        [_rounded(coefficient) for coefficient in coefficients[(n + 1) % 2 :: 2]], cotangent**2
    )
    return factor * even * (cotangent if n % 2 == 0 else 1)


def _cotangent_of_pi(x):
    """`cot(pi * x)` for numbers between -1/2 and 1/2, 0 at both."""
    size = lax.abs(x)
    far = lax.tan(math.pi * (0.5 - size)) * lax.sign(x)
    return jnp.where(size > 0.25, far, 1 / lax.tan(math.pi * x))


def _rounded(integer):
    """`integer` as a float, infinite if it is too large for one."""
    try:
        return float(integer)
    except OverflowError:
        return math.copysign(math.inf, integer)


def mvlgamma(self, p):
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1: mvlgamma got {p}")
    if self.dtype == bool:
        raise RuntimeError("The input tensor may not be a boolean tensor: mvlgamma needs numbers")
    return _mvlgamma(self, p=p)


@promotion.floating
@promotion.in_single
@_real
def _mvlgamma(self, *, p):
    total = sum(lgamma(self - j / 2) for j in range(p))
    return total + p * (p - 1) / 4 * math.log(math.pi)


def mvlgamma_backward(grad, self, p):
    """`grad` times the sum of the digamma functions of `self`, `self - 1/2`, ..."""
    return grad * sum((op.digamma(self - j / 2) for j in range(1, p)), op.digamma(self))
