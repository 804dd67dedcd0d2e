"""Comparisons, logic, bits, and tests for NaN and infinity; their results have no derivative."""

import functools

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import dtypes, promotion

# marks a family of elementwise operators, whose results have the strides of their operands
POINTWISE = True


def _order(function):
    @functools.wraps(function)
    def ordered(self, other):
        promotion.refuse(function.__name__, self, dtypes.COMPLEX)
        return function(self, other)

    return promotion.comparison(ordered)


eq = promotion.comparison(lax.eq)
ne = promotion.comparison(lax.ne)
lt = _order(lax.lt)
le = _order(lax.le)
gt = _order(lax.gt)
ge = _order(lax.ge)


def _truth(array):
    return promotion.cast(array, dtypes.bool)


def _logic(name, function):
    def logical(self, other):
        return function(*promotion.broadcast(name, _truth(self), _truth(other)))

    return logical


logical_and = _logic("logical_and", lax.bitwise_and)
logical_or = _logic("logical_or", lax.bitwise_or)
logical_xor = _logic("logical_xor", lax.bitwise_xor)


def logical_not(self):
    return lax.bitwise_not(_truth(self))


def _bits(function):
    @functools.wraps(function)
    def bitwise(*operands):
        promotion.refuse(function.__name__, operands[0], dtypes.FLOATING, dtypes.COMPLEX)
        return function(*operands)

    return promotion.common(bitwise)


bitwise_and = _bits(lax.bitwise_and)
bitwise_or = _bits(lax.bitwise_or)
bitwise_xor = _bits(lax.bitwise_xor)
bitwise_not = _bits(lax.bitwise_not)

_without_bits = promotion.without(dtypes.BOOLEAN, dtypes.FLOATING, dtypes.COMPLEX)


@promotion.common
@_without_bits
def bitwise_left_shift(self, other):
    return lax.shift_left(self, other)  # 0 if all bits are shifted out, or by a negative number


@promotion.common
@_without_bits
def bitwise_right_shift(self, other):
    if jnp.issubdtype(self.dtype, jnp.unsignedinteger):
        return lax.shift_right_logical(self, other)
    return lax.shift_right_arithmetic(self, other)


isnan = jnp.isnan
isinf = jnp.isinf
isfinite = jnp.isfinite


def _of_infinite(name, infinite):
    def tested(self):
        if jnp.iscomplexobj(self):
            raise RuntimeError(f"{name} does not support complex inputs.")
        if not jnp.issubdtype(self.dtype, jnp.inexact):
            return jnp.zeros(self.shape, bool)
        return self == infinite

    return tested


isposinf = _of_infinite("isposinf", jnp.inf)
isneginf = _of_infinite("isneginf", -jnp.inf)


def isreal(self):
    return lax.imag(self) == 0 if jnp.iscomplexobj(self) else jnp.ones(self.shape, bool)


def isclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    if self.dtype != other.dtype:
        first, second = (dtypes.from_numpy(operand.dtype) for operand in (self, other))
        raise RuntimeError(
            f"{first.scalar_type} did not match {second.scalar_type}: isclose compares tensors of "
            "one dtype; convert one of them"
        )
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:  # NaN too
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    return _isclose(*promotion.broadcast("isclose", self, other), rtol, atol, equal_nan)


def _isclose(self, other, rtol, atol, equal_nan):
    same = lax.eq(self, other) if self.shape == other.shape else self == other
    if equal_nan:
        same |= jnp.isnan(self) & jnp.isnan(other)
    wide = [promotion.cast(operand, promotion.floating_type(operand)) for operand in (self, other)]
    error = jnp.abs(wide[0] - wide[1])
    allowed = atol + jnp.abs(rtol * wide[1])
    return same | (jnp.isfinite(error) & (error <= allowed))
