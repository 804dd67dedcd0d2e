"""Special functions of one or two real numbers: entropy, error function, normal distribution, zeta.

Derivatives are written so that no intermediate is infinite where the derivative is finite.
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import bessel, tables

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

POINTWISE = True

_real = promotion.without(dtypes.COMPLEX)
_ROOT_2_PI = math.sqrt(2 * math.pi)


def _in_single(function):
    return promotion.floating(promotion.in_single(_real(function)))


@_in_single
def special_entr(self):
    positive = -self * lax.log(jnp.where(self > 0, self, 1))
    entropy = jnp.where(self > 0, positive, jnp.where(self == 0, 0, -jnp.inf))
    return jnp.where(jnp.isnan(self), self, entropy)


@_in_single
def special_xlog1py(self, other):
    product = self * lax.log1p(other)
    return jnp.where(jnp.isnan(other), jnp.nan, jnp.where(self == 0, 0, product))


def xlog1py_backward(grad, self, other):
    """`grad * log1p(other)`; 0 where `self` is 0 and `other <= -1`: there the value is 0 by
    definition.
    """
    self, other = promotion.unify_floating(self, other)
    defined = (self == 0) & (other <= -1)
    return jnp.where(defined, 0, grad * op.log1p(jnp.where(defined, 0, other)))


@promotion.floating
@_real
def special_zeta(self, other):
    is_pole = (self > 1) & (other <= 0) & (other == lax.floor(other))
    values = jnp.where(is_pole, jnp.inf, lax.zeta(self, jnp.where(is_pole, 1, other)))
    return jnp.where(self < 1, jnp.nan, values)  # the series diverges


# ---- error function and normal distribution

_SCALE = 3  # of the variable t = 3 / (3 + x) of the series for erfcx


@_in_single
def special_erfcx(self):
    """`exp(x ** 2) * erfc(x)`: t times a series in t for x >= 0, and mirrored below."""
    t = _SCALE / (_SCALE + jnp.abs(self))
    value = t * bessel.chebyshev_series(2 * t - 1, tables.ERFCX)
    negative = jnp.where(self < 0, self, 0)
    return jnp.where(self < 0, 2 * lax.exp(negative * negative) - value, value)


@promotion.in_single
def erfcx_backward(grad, self, result):
    """`grad * (2 * x * result - 2 / sqrt(pi))`.

    For large x the terms cancel, and the derivative is the asymptotic series of it, whose
    coefficients overflow in float16.
    """
    is_far = self > _FAR
    inverse = 1 / jnp.where(is_far, self, _FAR)
    square = inverse * inverse
    series = jnp.zeros_like(square)
    for coefficient in _ERFCX_SLOPE[::-1]:
        series = series * square + coefficient
    near = 2 * jnp.where(is_far, 0, self) * jnp.where(is_far, 0, result) - 2 / math.sqrt(math.pi)
    return grad * jnp.where(is_far, series * square, near)


_FAR = 10.0
# erfcx(x) ~ 1 / (x sqrt(pi)) * sum of (-1)**k (2k-1)!! / (2 x**2)**k, differentiated
_ERFCX_SLOPE = [
    -((-1) ** k) * (2 * k + 1) * math.prod(range(1, 2 * k, 2)) / 2**k / math.sqrt(math.pi)
    for k in range(14)
]


@_in_single
def special_log_ndtr(self):
    """Logarithm of the normal distribution function; its tail by `erfcx`."""
    is_tail = self < -1
    scaled = self / math.sqrt(2)
    tail = jnp.where(is_tail, scaled, 0)
    far = lax.log(special_erfcx(-tail) / 2) - tail * tail
    return jnp.where(is_tail, far, lax.log1p(-lax.erfc(jnp.where(is_tail, 0, scaled)) / 2))


def log_ndtr_backward(grad, self):
    """`grad` times density over distribution, by `erfcx` below 0, which overflows above."""
    below = jnp.where(self < 0, self, 0)
    above = jnp.where(self < 0, 0, self)
    left = math.sqrt(2 / math.pi) / op.special_erfcx(below / -math.sqrt(2))
    density = op.exp(-above * above / 2) / _ROOT_2_PI
    right = density / (0.5 * op.erfc(above / -math.sqrt(2)))
    return grad * jnp.where(self < 0, left, right)


_TAIL = 0.13533528323661269189  # exp(-2)


@_in_single
def special_ndtri(self):
    """Quantile of the normal distribution, by the rational functions of Cephes."""
    is_upper = self > 1 - _TAIL
    p = jnp.where(is_upper, 1 - self, self)
    is_central = p > _TAIL
    y = jnp.where(is_central, p, 0.5) - 0.5
    square = y * y
    center = y + y * square * bessel.ratio(square, tables.NDTRI_P0, tables.NDTRI_Q0)
    x = lax.sqrt(-2 * lax.log(jnp.where((p > 0) & ~is_central, p, _TAIL)))
    z = 1 / x
    near = z * bessel.ratio(z, tables.NDTRI_P1, tables.NDTRI_Q1)
    far = z * bessel.ratio(z, tables.NDTRI_P2, tables.NDTRI_Q2)
    tail = x - lax.log(x) * z - jnp.where(x < 8, near, far)
    quantile = jnp.where(is_central, center * _ROOT_2_PI, jnp.where(is_upper, tail, -tail))
    quantile = jnp.where(self == 0, -jnp.inf, jnp.where(self == 1, jnp.inf, quantile))
    return jnp.where((self >= 0) & (self <= 1), quantile, jnp.nan)
