"""The distributions of in-place samplers, as formulas of uniform numbers; see frontend/draw.py."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from ..frontend import draw
from ..frontend.draw import Distribution
from ..frontend.number_arrays import (
    at_least_single,
    complex_of,
    erf_inv,
    namespace,
    real,
    separately,
)


def _unit(dtype):
    """Single precision for half precision, double for integers."""
    return np.dtype(np.float64) if dtype.kind in "iub" else at_least_single(dtype)


def _uniforms(unit, dtype, low, high):
    if dtype.kind == "c":
        return complex_of(_uniforms(unit, real(dtype), low, high))
    unit *= high - low
    unit += low
    numbers = unit.astype(dtype, copy=False)
    # rounding may reach the end, which is left out
    if not isinstance(numbers, np.ndarray):
        return jnp.where((numbers >= high) & (low < high), jnp.asarray(low, dtype), numbers)
    if low < high and numbers.size and numbers.max() >= high:
        numbers[numbers >= high] = low
    return numbers


def _truncated_normals(unit, dtype, low, high, std, mean, least, greatest, _):
    """By inversion of the distribution function, in single precision whatever the dtype; low, high:
    the values of the error function at the bounds.
    """
    xp = namespace(unit)
    scale, mean = (xp.asarray(number, unit.dtype) for number in (std * math.sqrt(2.0), mean))
    # rounded as by one operator after the other
    numbers = separately(erf_inv(separately(_uniforms(unit, unit.dtype, low, high))))
    numbers *= scale
    numbers = separately(numbers)
    numbers += mean
    return xp.clip(numbers, least, greatest).astype(dtype, copy=False)


def _cauchy(unit, dtype, median, sigma):
    return (median + sigma * namespace(unit).tan(math.pi * (unit - 0.5))).astype(dtype)


def _positive_exponential(unit):
    # no number is 0
    xp = namespace(unit)
    return -xp.log1p(-xp.maximum(unit, jnp.finfo(unit.dtype).eps / 4))


def _exponential(unit, dtype, rate):
    return (_positive_exponential(unit) / rate).astype(dtype)


def _geometric(unit, dtype, log_of_failure):
    xp = namespace(unit)
    return xp.maximum(xp.ceil(_positive_exponential(unit) / -log_of_failure), 1).astype(dtype)


def _log_normal(unit, dtype, mean, std):
    exponent = mean + std * draw.normal.value(unit, unit.dtype)
    return namespace(unit).exp(exponent).astype(dtype)


UNIFORM = Distribution(_uniforms, _unit, "uniform")
CAUCHY = Distribution(_cauchy, _unit, "cauchy")
EXPONENTIAL = Distribution(_exponential, _unit, "exponential")
GEOMETRIC = Distribution(_geometric, _unit, "geometric")
LOG_NORMAL = Distribution(_log_normal, at_least_single, "log_normal")
TRUNCATED_NORMAL = Distribution(
    _truncated_normals, lambda _: np.dtype(np.float32), "truncated_normal"
)
