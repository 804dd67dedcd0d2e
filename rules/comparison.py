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

isnan = jnp.isnan
isinf = jnp.isinf
isfinite = jnp.isfinite
