"""Derivatives of gamma and Dirichlet samples by the parameters: implicit reparameterization.

The distribution function of a sample stays the same when a parameter moves. So for the density p
the derivative of a sample x is the integral of -p(t) / p(x) times the derivative of log(p(t)) by
the parameter, over t up to x, or minus that from x on. The shorter one is taken: all its terms have
one sign. Where the density is narrow, distances from its maximum are computed of differences in
which no digits are lost. Source: Figurnov, Mohamed and Mnih, "Implicit Reparameterization
Gradients", 2018.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import gamma, igamma, random

from jaxgrad.core.primitive import op

_LARGE = 8  # parameters from here on by `_integral`
_DROP = 40  # where a density is less than exp(-40) of that of the sample it is left out


def gamma_sample_slope(self, output):
    """The derivative of a gamma sample `output` by the shape `self`."""
    shape, sample = _together(self, output)
    shape, sample = random.single_of_half(shape), random.single_of_half(sample)
    inside, is_large = sample > 0, shape >= _LARGE
    sample = jnp.where(inside, sample, 1)
    slope = lax.random_gamma_grad(jnp.where(is_large, 1, shape), sample)
    slope = jnp.where(is_large, _large_gamma_slope(shape, sample), slope)
    return jnp.where(inside, slope, 0).astype(jnp.result_type(self, output))


def _together(*tensors):
    """The tensors in one dtype and shape."""
    dtype = jnp.result_type(*tensors)
    shape = jnp.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return [jnp.broadcast_to(tensor, shape).astype(dtype) for tensor in tensors]


def standard_gamma_grad_self_backward(grad, self, output):
    """`grad` times the derivative by the shape, at a constant sample."""
    shape, sample = _precise(self), _precise(output)
    by_shape = functools.partial(_gamma_slope, sample=jnp.where(sample > 0, sample, 1))
    slope = jax.jvp(by_shape, (shape,), (jnp.ones_like(shape),))[1]
    slope = jnp.where(sample > 0, slope, 0)
    return grad * slope.astype(grad.dtype)


def standard_gamma_grad_output_backward(grad, self, output, result):
    """`grad` times the derivative by the sample, which is known in closed form."""
    inside = output > 0
    sample = jnp.where(inside, output, 1)
    slope = lax.digamma(self) - jnp.log(sample) - result * ((self - 1) / sample - 1)
    return grad * jnp.where(inside, slope, 0)


def sample_dirichlet_backward(grad, self, result):
    total = jnp.broadcast_to(jnp.sum(self, axis=-1, keepdims=True), self.shape)
    centered = grad - jnp.sum(result * grad, axis=-1, keepdims=True)
    return op._dirichlet_grad(result, self, total) * centered


def beta_sample_slope(x, alpha, total):
    """The derivative of a beta sample x by its first parameter alpha, divided by 1 - x; the second
    parameter is total - alpha.
    """
    random.check_floating("_dirichlet_grad", x)
    place, alpha, total = jnp.broadcast_arrays(_precise(x), _precise(alpha), _precise(total))
    inside = (place > 0) & (total > alpha)  # in single precision the sum may be one parameter
    place, total = jnp.where(inside, place, 0.5), jnp.where(inside, total, alpha + 1)
    return jnp.where(inside, _beta_slope(place, alpha, total), 0).astype(x.dtype)


def _precise(tensor):
    """In double precision, if it is enabled."""
    return tensor.astype(jnp.result_type(float))


def _gamma_slope(shape, sample):
    """The value of `gamma_sample_slope`, by integrals that JAX can differentiate."""
    is_large = shape >= _LARGE
    small = _small_gamma_slope(jnp.where(is_large, 1, shape), sample)
    return jnp.where(is_large, _large_gamma_slope(shape, sample), small)


@functools.cache
def _nodes(dtype):
    """Places and weights of a double exponential quadrature over the positive numbers.

    Source: Takahasi and Mori, "Double Exponential Formulas for Numerical Integration", 1974.
    """
    step = 0.125
    places = numpy.arange(-3.75, 14, step)
    nodes = numpy.exp(places - numpy.exp(-places))
    weights = step * nodes * (1 + numpy.exp(-places))
    return nodes.astype(dtype), weights.astype(dtype)


def _small_gamma_slope(shape, sample):
    places, weights = _nodes(shape.dtype)
    shape, sample = shape[..., None], sample[..., None]
    is_low = sample <= shape
    # up to the sample, t = sample * exp(-w / shape)
    low = jnp.where(is_low, sample, shape / 2)
    decay = jnp.exp(-places + low * -jnp.expm1(-places / shape))
    center = lax.digamma(shape)
    below = decay * (jnp.log(low) - places / shape - center) * low / shape
    # from the sample on, t = sample + w
    high = jnp.where(is_low, shape + 1, sample)
    decay = jnp.exp((shape - 1) * jnp.log1p(places / high) - places)
    above = decay * (jnp.log(high + places) - center)
    return jnp.sum(jnp.where(is_low, -below, above) * weights, axis=-1)


def _large_gamma_slope(shape, sample):
    """By the integral over t = sample * exp(s), for a large shape."""
    shape = jnp.maximum(shape, _LARGE)
    is_low, distance = sample <= shape, lax.abs(shape - sample)
    sign = jnp.where(is_low, -1, 1)[..., None]
    away = _logarithm(-(shape - sample), sample, shape) + _log_less_digamma(shape)

    def integrand(s):
        bend = jnp.where(sign < 0, _remainder(s, -1), _remainder(s, 1))
        decay = jnp.exp(-distance[..., None] * s - sample[..., None] * bend)
        return decay * (away[..., None] + sign * s)

    bend, far = jnp.where(is_low, 0.5, 0), jnp.where(is_low, (_DROP + sample) / shape, jnp.inf)
    return sign[..., 0] * sample * _integral(integrand, distance, sample, bend, far)


def _integral(integrand, slope, curvature, bend, far):
    """The integral over positive s of a function that falls by the exponential of at least
    `slope * s + curvature * s * s / (2 + 2 * bend * s)`, and is 0 from `far` on.
    """
    # where that is _DROP, by the formula for a quadratic equation that keeps its digits
    square, lack = curvature / 2 + slope * bend, _DROP * bend - slope
    root = lax.sqrt(lack * lack + 4 * square * _DROP)
    is_flat = lack > 0
    reach = (lack + root) / (2 * square)
    reach = jnp.where(is_flat, reach, 2 * _DROP / (root - jnp.where(is_flat, 0, lack)))
    end = lax.stop_gradient(jnp.minimum(reach, far))
    return igamma.integral(integrand, jnp.zeros_like(end), end)


def _remainder(s, sign):
    """`exp(sign * s) - 1 - sign * s` for positive s, with all digits."""
    near = jnp.minimum(s, 1)
    terms = [sign**k / math.factorial(k) for k in range(2, 19)]
    series = near * near * gamma.polynomial(terms, near)
    far = jnp.maximum(s, 1)
    return jnp.where(s < 1, series, jnp.expm1(sign * far) - sign * far)


def _excess(v):
    """`v - log(1 + v)` for positive v, with all digits."""
    near = jnp.minimum(v, 1)
    y = near / (2 + near)  # log(1 + v) = 2 artanh(y), and v = 2 y / (1 - y)
    terms = [1 / (2 * k + 3) for k in range(18)]
    series = near * y - 2 * y * y * y * gamma.polynomial(terms, y * y)
    far = jnp.maximum(v, 1)
    return jnp.where(v < 1, series, far - jnp.log1p(far))


def _logarithm(difference, x, center):
    """`log(x / center)`, where `difference` is x - center with all digits."""
    ratio = difference / center
    is_near = lax.abs(ratio) < 0.5
    return jnp.where(is_near, jnp.log1p(jnp.where(is_near, ratio, 0)), jnp.log(x / center))


def _log_less_digamma(x):
    """`log(x) - digamma(x)`, for large numbers by Stirling's series."""
    is_large = x >= _LARGE
    some, many = jnp.where(is_large, 1, x), jnp.where(is_large, x, _LARGE)
    inverse = 1 / many
    # of the derivative of the series of lgamma (Abramowitz and Stegun, 6.3.18)
    terms = [(2 * k + 1) * c for k, c in enumerate(gamma.STIRLING)]
    series = inverse / 2 + inverse * inverse * gamma.polynomial(terms, inverse * inverse)
    return jnp.where(is_large, series, jnp.log(some) - lax.digamma(some))


def _less_product(a, n, x):
    """`a - n * x`, where the product is about `a`: products of halves of the digits are exact."""
    (n1, n2), (x1, x2) = _halves(n), _halves(x)
    return ((a - n1 * x1) - n1 * x2) - n2 * x1 - n2 * x2


def _halves(x):
    """Two numbers of half the digits whose sum is x."""
    words, digits = (jnp.uint64, 27) if x.dtype == jnp.float64 else (jnp.uint32, 12)
    bits = lax.bitcast_convert_type(lax.stop_gradient(x), words)
    high = lax.bitcast_convert_type((bits >> digits) << digits, x.dtype)
    return high, x - high


def _beta_slope(x, alpha, total):
    """As `_gamma_slope`, for a beta distribution, and divided by 1 - x."""
    beta, difference = total - alpha, _less_product(alpha, total, x)
    is_low = difference >= 0
    # log(x) less its mean
    away = _logarithm(-difference, total * x, alpha)
    away = away + _log_less_digamma(alpha) - _log_less_digamma(total)
    low = _Side(x, 1 - x, alpha, beta, difference).where(is_low)
    high = _Side(1 - x, x, beta, alpha, -difference).where(~is_low)
    below = low.integral(lambda s, v: jnp.where(is_low, away, -1)[..., None] - s)
    above = high.integral(lambda s, v: jnp.where(is_low, 1, away)[..., None] + jnp.log1p(v))
    return jnp.where(is_low, -below * x / (1 - x), above)


class _Side(NamedTuple):
    """The side of 0 from a sample on: t = x * exp(-s) for positive s.

    x: the distance of the sample from the end of the side, at most the mean; rest: 1 - x;
    concentration, other: the parameters of this side and of the other one; difference:
    `concentration - (concentration + other) * x`, with all digits.
    """

    x: jax.Array
    rest: jax.Array
    concentration: jax.Array
    other: jax.Array
    difference: jax.Array

    def where(self, applies):
        """The side, with half of the mean in place of samples to which it does not apply."""
        half = self.concentration / (self.concentration + self.other) / 2
        x, rest = jnp.where(applies, self.x, half), jnp.where(applies, self.rest, 1 - half)
        difference = jnp.where(applies, self.difference, self.concentration / 2)
        return self._replace(x=x, rest=rest, difference=difference)

    def integral(self, factor):
        """The integral over s of the density by that of the sample, times `factor(s, v)`, where
        1 + v = (1 - t) / (1 - x).
        """
        is_large = (self.concentration >= _LARGE) & (self.other >= 1)
        large = self._replace(
            concentration=jnp.maximum(self.concentration, _LARGE), other=jnp.maximum(self.other, 1)
        )
        small = self._replace(concentration=jnp.where(is_large, 1, self.concentration))
        return jnp.where(is_large, large._narrow(factor), small._broad(factor))

    def _narrow(self, factor):
        ratio, power = self.x / self.rest, self.other - 1
        slope = (self.difference + self.x) / self.rest
        curvature, bend = power * ratio / self.rest, ratio * 2 / 3 + 0.5
        far = (_DROP - power * jnp.log(self.rest)) / self.concentration

        def integrand(s):
            v = -jnp.expm1(-s) * ratio[..., None]
            fall = ratio[..., None] * _remainder(s, -1) + _excess(v)
            return jnp.exp(-slope[..., None] * s - power[..., None] * fall) * factor(s, v)

        return _integral(integrand, slope, curvature, bend, far)

    def _broad(self, factor):
        places, weights = _nodes(self.x.dtype)
        concentration, ratio = self.concentration[..., None], (self.x / self.rest)[..., None]
        s = places / concentration
        v = -jnp.expm1(-s) * ratio
        density = jnp.exp(-places + (self.other[..., None] - 1) * jnp.log1p(v)) / concentration
        return jnp.sum(density * factor(s, v) * weights, -1)
