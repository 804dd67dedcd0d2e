"""Bessel functions of order 0 and 1, and the Airy function Ai, of real numbers.

Small arguments have a rational function or a series of their own, large ones the asymptotic form
with fitted amplitudes (tables.py). Derivatives follow from the recurrences of the orders; where
these subtract nearly equal numbers, near 0, a power series replaces them, so that derivatives of
every order are right there.
"""

import functools
import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import tables

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

POINTWISE = True

_NEAR = 0.5  # where the power series are used


def _real(function):
    """A function of one real floating-point tensor, not of half precision, as PyTorch's."""
    name = function.__name__

    @functools.wraps(function)
    def checked(x):
        dtype = dtypes.from_numpy(x.dtype)
        if dtype.is_complex or dtype.itemsize < 4:
            raise NotImplementedError(
                f"\"{name}\" not implemented for '{dtype.scalar_type}': convert to float32 first"
            )
        return function(x)

    return promotion.floating(checked)


def _horner(x, coefficients):
    """Horner's rule, highest power first."""
    total = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def ratio(x, numerator, denominator):
    """A rational function, highest powers first."""
    return _horner(x, numerator) / _horner(x, denominator)


def chebyshev_series(x, coefficients):
    """Clenshaw's rule for a sum of Chebyshev polynomials at x in [-1, 1], highest degree first."""
    before, last = jnp.zeros_like(x), jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:-1]:
        before, last = last, 2 * x * last - before + coefficient
    return x * last - before + coefficients[-1]


def _cephes_series(x, coefficients):
    """`chebyshev_series` for x from -2 to 2, with half of the last coefficient."""
    return chebyshev_series(x / 2, (*coefficients[:-1], coefficients[-1] / 2))


def _powers(x, coefficients):
    """A power series in x ** 2, lowest power first."""
    return _horner(x * x, coefficients[::-1])


def _where_near(x, near, far):
    """`near(x)` for small arguments, else `far(x)`; each is evaluated where it is finite only."""
    is_near = jnp.abs(x) < _NEAR
    return jnp.where(is_near, near(jnp.where(is_near, x, 0)), far(jnp.where(is_near, 1, x)))


# ---- J and Y


@_real
def special_bessel_j0(self):
    x = jnp.abs(self)
    square = x * x
    roots = (square - 5.78318596294678452118) * (square - 30.4712623436620863991)
    small = roots * ratio(square, tables.J0_RP, tables.J0_RQ)
    return jnp.where(x <= 5, small, _waves(x, 0, lax.cos))


@_real
def special_bessel_j1(self):
    x = jnp.abs(self)
    square = x * x
    roots = (square - 14.6819706421238932572) * (square - 49.2184563216946036703)
    small = roots * x * ratio(square, tables.J1_RP, tables.J1_RQ)
    positive = jnp.where(x <= 5, small, _waves(x, 1, lax.cos))
    return jnp.where(self < 0, -positive, positive)


@_real
def special_bessel_y0(self):
    small = ratio(self * self, tables.Y0_YP, tables.Y0_YQ)
    small += 2 / math.pi * lax.log(self) * special_bessel_j0(self)
    positive = jnp.where(self <= 5, small, _waves(self, 0, lax.sin))
    return jnp.where(self == 0, -jnp.inf, jnp.where(self < 0, jnp.nan, positive))


@_real
def special_bessel_y1(self):
    small = self * ratio(self * self, tables.Y1_YP, tables.Y1_YQ)
    small += 2 / math.pi * (special_bessel_j1(self) * lax.log(self) - 1 / self)
    positive = jnp.where(self <= 5, small, _waves(self, 1, lax.sin))
    return jnp.where(self == 0, -jnp.inf, jnp.where(self < 0, jnp.nan, positive))


_AMPLITUDES = (
    (tables.J0_PP, tables.J0_PQ, tables.J0_QP, tables.J0_QQ),
    (tables.J1_PP, tables.J1_PQ, tables.J1_QP, tables.J1_QQ),
)


def _waves(x, order, function):
    """The asymptotic form for x > 5: J of the order for cos, Y for sin."""
    x = jnp.maximum(x, 5)
    p, p_divisor, q, q_divisor = _AMPLITUDES[order]
    inverse = 5 / x
    even = ratio(inverse * inverse, p, p_divisor)
    odd = inverse * ratio(inverse * inverse, q, q_divisor)
    angle = x - (math.pi / 4 + order * math.pi / 2)
    if function is lax.cos:
        wave = even * lax.cos(angle) - odd * lax.sin(angle)
    else:
        wave = even * lax.sin(angle) + odd * lax.cos(angle)
    return wave * math.sqrt(2 / math.pi) / lax.sqrt(x)


def bessel_y1_backward(grad, self):
    """`grad * (Y0 - Y1 / x)`, infinite at 0."""
    away = jnp.where(self == 0, 1, self)
    slope = op.special_bessel_y0(away) - op.special_bessel_y1(away) / away
    return grad * jnp.where(self == 0, jnp.inf, slope)


_TERMS = range(8)
# the derivatives of I1 and, with alternating signs, of J1
_I1_SLOPE = [(2 * k + 1) / 2 / 4**k / math.factorial(k) / math.factorial(k + 1) for k in _TERMS]
_J1_SLOPE = [(-1) ** k * coefficient for k, coefficient in enumerate(_I1_SLOPE)]


def bessel_j1_backward(grad, self):
    """`grad * (J0 - J1 / x)`."""
    return grad * _where_near(
        self,
        lambda x: _powers(x, _J1_SLOPE),
        lambda x: op.special_bessel_j0(x) - op.special_bessel_j1(x) / x,
    )


# ---- the spherical function of order 0

_SPHERICAL = [(-1) ** k / math.factorial(2 * k + 1) for k in _TERMS]
_SPHERICAL_SLOPE = [2 * (k + 1) * coefficient for k, coefficient in enumerate(_SPHERICAL[1:])]


@_real
def special_spherical_bessel_j0(x):
    finite = _where_near(x, lambda x: _powers(x, _SPHERICAL), lambda x: lax.sin(x) / x)
    return jnp.where(jnp.isinf(x), 0, finite)


def spherical_bessel_j0_backward(grad, x):
    """`grad * (cos(x) - sin(x) / x) / x`; 0 at infinity."""
    finite = jnp.where(jnp.isinf(x), 1, x)
    slope = _where_near(
        finite,
        lambda x: x * _powers(x, _SPHERICAL_SLOPE),
        lambda x: (op.cos(x) - op.special_spherical_bessel_j0(x)) / x,
    )
    return jnp.where(jnp.isinf(x), 0, grad * slope)


# ---- I and K


@promotion.floating
@promotion.in_single
@promotion.without(dtypes.COMPLEX)
def special_i0e(self):
    return lax.bessel_i0e(self)


@promotion.floating
@promotion.in_single
@promotion.without(dtypes.COMPLEX)
def special_i1e(self):
    return lax.bessel_i1e(self)


@promotion.floating
@promotion.in_single
@promotion.without(dtypes.COMPLEX)
def special_i1(self):
    return lax.exp(jnp.abs(self)) * lax.bessel_i1e(self)


@_real
def special_modified_bessel_i0(self):
    return lax.exp(jnp.abs(self)) * lax.bessel_i0e(self)


@_real
def special_modified_bessel_i1(self):
    return lax.exp(jnp.abs(self)) * lax.bessel_i1e(self)


def i1_backward(grad, self):
    """`grad * (I0 - I1 / x)`."""
    return grad * _where_near(
        self,
        lambda x: _powers(x, _I1_SLOPE),
        lambda x: op.special_modified_bessel_i0(x) - op.special_i1(x) / x,
    )


def i1e_backward(grad, self, result):
    """`grad` times the derivative of I1, scaled by `exp(-abs(x))`, less `sign(x) * result`."""
    slope = _where_near(
        self,
        lambda x: op.exp(-op.abs(x)) * _powers(x, _I1_SLOPE),
        lambda x: op.special_i0e(x) - result / x,
    )
    return grad * (slope - jnp.sign(self) * result)


@_real
def special_modified_bessel_k0(self):
    return _k0(self, False)


@_real
def special_modified_bessel_k1(self):
    return _k1(self, False)


@_real
def special_scaled_modified_bessel_k0(x):
    return _k0(x, True)


@_real
def special_scaled_modified_bessel_k1(x):
    return _k1(x, True)


def scaled_modified_bessel_k0_backward(grad, x, result):
    """`grad * (result - K1 * exp(x))`, minus infinity at 0."""
    away = jnp.where(x == 0, 1, x)
    slope = jnp.where(x == 0, 0, result) - op.special_scaled_modified_bessel_k1(away)
    return grad * jnp.where(x == 0, -jnp.inf, slope)


def _k0(x, is_scaled):
    near = jnp.clip(x, 0, 2)
    i0 = lax.exp(near) * lax.bessel_i0e(near)
    small = _cephes_series(near * near - 2, tables.K0_A) - lax.log(near / 2) * i0
    return _decaying(x, small, tables.K0_B, is_scaled)


def _k1(x, is_scaled):
    near = jnp.clip(x, 0, 2)
    i1 = lax.exp(near) * lax.bessel_i1e(near)
    small = lax.log(near / 2) * i1 + _cephes_series(near * near - 2, tables.K1_A) / near
    return _decaying(x, small, tables.K1_B, is_scaled)


def _decaying(x, small, coefficients, is_scaled):
    """`small` up to 2, then a series with the exponential; infinite at 0, NaN below."""
    far = jnp.maximum(x, 2)
    large = _cephes_series(8 / far - 2, coefficients) / lax.sqrt(far)
    if is_scaled:
        small = small * lax.exp(jnp.clip(x, 0, 2))
    else:
        large = large * lax.exp(-far)
    positive = jnp.where(x <= 2, small, large)
    return jnp.where(x == 0, jnp.inf, jnp.where(x < 0, jnp.nan, positive))


# ---- the Airy function

_AI, _AI_SLOPE = 0.355028053887817239260, -0.258819403792806798405  # at 0
_EDGE = 2.09  # of the power series
_AIRY_TERMS = 14


@_real
def special_airy_ai(x):
    value = jnp.where(x < 0, _airy_left(x), _airy_right(x))
    series = _AI * _airy_series(x, 2) + _AI_SLOPE * x * _airy_series(x, 4)
    value = jnp.where(jnp.abs(x) < _EDGE, series, value)
    return jnp.where(jnp.isinf(x), jnp.nan, jnp.where(x > 103.892, 0, value))


@_real
def airy_ai_derivative(x):
    """The derivative of Ai."""
    slope = jnp.where(x < 0, _slope_left(x), _slope_right(x))
    series = _AI * x * x / 2 * _airy_series(x, 5) + _AI_SLOPE * _airy_series(x, 1)
    slope = jnp.where(jnp.abs(x) < _EDGE, series, slope)
    return jnp.where(jnp.isinf(x), jnp.nan, jnp.where(x > 103.892, 0, slope))


def _airy_series(x, first):
    """A hypergeometric series in x ** 3 / 9, each coefficient the one before over two numbers.

    first: which solution of y'' = x * y, or which derivative of it, by its first lower parameter
    times 3: 2 and 4 are the solutions with 1 and x, 5 and 1 their derivatives.
    """
    cube = jnp.clip(x, -_EDGE, _EDGE) ** 3
    total = jnp.ones_like(x)
    for k in reversed(range(_AIRY_TERMS)):
        total = 1 + total * cube / ((3 * k + first) * (3 * k + 3))
    return total


def _phase(x):
    """2/3 * x ** 1.5 of the size of x, which is kept away from 0."""
    size = jnp.maximum(jnp.abs(x), 2)
    return size, 2 / 3 * size * lax.sqrt(size)


def _airy_left(x):
    size, phase = _phase(x)
    square = 1 / (phase * phase)
    even = 1 + square * ratio(square, tables.AIRY_AFN, tables.AIRY_AFD)
    odd = ratio(square, tables.AIRY_AGN, tables.AIRY_AGD) / phase
    angle = phase + math.pi / 4
    waves = lax.sin(angle) * even - lax.cos(angle) * odd
    return waves / (math.sqrt(math.pi) * lax.sqrt(lax.sqrt(size)))


def _airy_right(x):
    size, phase = _phase(x)
    amplitude = ratio(1 / phase, tables.AIRY_AN, tables.AIRY_AD)
    return amplitude * lax.exp(-phase) / (2 * math.sqrt(math.pi) * lax.sqrt(lax.sqrt(size)))


_LARGEST = 3 / 2 / 2**1.5  # 1 over the phase at 2, the end of the series of slopes


def _slope_left(x):
    size, phase = _phase(x)
    place = 2 / (phase * _LARGEST) - 1
    even = chebyshev_series(place, tables.AIRY_SLOPE_P)
    odd = chebyshev_series(place, tables.AIRY_SLOPE_Q) / phase
    angle = phase - math.pi / 4
    waves = lax.sin(angle) * even - lax.cos(angle) * odd
    return waves * lax.sqrt(lax.sqrt(size)) / math.sqrt(math.pi)


def _slope_right(x):
    size, phase = _phase(x)
    amplitude = chebyshev_series(2 / (phase * _LARGEST) - 1, tables.AIRY_SLOPE_RIGHT)
    return amplitude * lax.exp(-phase) * lax.sqrt(lax.sqrt(size)) / (-2 * math.sqrt(math.pi))
