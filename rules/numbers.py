"""Elementwise functions of the parts of a number: sign, exponent, divisors, angle, neighbours."""

import functools
import math

import jax.numpy as jnp
import numpy
from jax import lax

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op

# marks a family of elementwise operators, whose results have the strides of their operands
POINTWISE = True

_real = promotion.without(dtypes.COMPLEX)
_real_inexact = promotion.without(dtypes.BOOLEAN, dtypes.INTEGRAL, dtypes.COMPLEX)
_integers = promotion.without(dtypes.BOOLEAN, dtypes.FLOATING, dtypes.COMPLEX)


def _refuse_complex(name, array):
    if jnp.iscomplexobj(array):
        raise RuntimeError(f"{name} is not supported for complex tensors.")


# ---- signs and steps


@promotion.floating
@_real
def copysign(self, other):
    return lax.abs(self) * jnp.where(jnp.signbit(other), -1, 1).astype(self.dtype)


def copysign_backward(grad, self, result):
    """`grad` times the sign by which `self` was multiplied; 0 where `self` is 0."""
    kept = jnp.signbit(self) == jnp.signbit(result)
    return jnp.where(self == 0, 0, jnp.where(kept, grad, -grad))


def signbit(self):
    if jnp.iscomplexobj(self):
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if jnp.issubdtype(self.dtype, jnp.inexact):
        return jnp.signbit(self)
    return self < 0 if self.dtype != bool else jnp.zeros_like(self)


def heaviside(self, values):
    if jnp.iscomplexobj(self) or jnp.iscomplexobj(values):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype != values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: convert one of "
            f"{dtypes.from_numpy(self.dtype)} and {dtypes.from_numpy(values.dtype)}"
        )
    self, values = promotion.broadcast("heaviside", self, values)
    return jnp.where(self == 0, values, (self > 0).astype(self.dtype))


# ---- angles


@promotion.floating
@promotion.in_single
def deg2rad(self):
    _refuse_complex("deg2rad", self)
    return self * (math.pi / 180)


@promotion.floating
@promotion.in_single
def rad2deg(self):
    _refuse_complex("rad2deg", self)
    return self * (180 / math.pi)


def _check_parts(name, first, second):
    kinds = [dtypes.from_numpy(part.dtype) for part in (first, second)]
    if not all(kind in (dtypes.float16, dtypes.float32, dtypes.float64) for kind in kinds):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{kinds[0].scalar_type} and {kinds[1].scalar_type}: {name} makes complex numbers"
        )
    if kinds[0] is not kinds[1]:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0].scalar_type} but got scalar type "
            f"{kinds[1].scalar_type} for second argument: {name} takes parts of one dtype"
        )
    if kinds[0] is dtypes.float16:
        raise dtypes.HalfComplexResult
    shape = promotion.broadcast_shapes(name, first.shape, second.shape)
    return [jnp.broadcast_to(part, shape) for part in (first, second)]


def complex(real, imag):
    return lax.complex(*_check_parts("complex", real, imag))


def polar(abs, angle):
    size, angle = _check_parts("polar", abs, angle)
    return lax.complex(size * lax.cos(angle), size * lax.sin(angle))


def polar_backward_abs(grad, angle):
    """The part of `grad` along `exp(i * angle)`."""
    return op.real(grad) * op.cos(angle) + op.imag(grad) * op.sin(angle)


def polar_backward_angle(grad, result):
    """The part of `grad` along `i * result`."""
    return op.imag(grad) * op.real(result) - op.real(grad) * op.imag(result)


# ---- exponents and neighbours


def ldexp(self, other):
    """`self * 2 ** other`, without overflow of the power alone."""
    if jnp.iscomplexobj(other):
        self, other = promotion.unify(self, other)
        return self * lax.exp(other * math.log(2))
    dtype = promotion.floating_type(self, other)
    self, other = promotion.broadcast("ldexp", promotion.cast(self, dtype), other)
    if dtype.is_complex:
        return lax.complex(_ldexp(self.real, other), _ldexp(self.imag, other))
    return promotion.in_single(_ldexp)(self, other)


def _ldexp(self, exponent):
    if not jnp.issubdtype(exponent.dtype, jnp.inexact):
        wide = exponent.astype(jnp.promote_types(exponent.dtype, jnp.int32))  # which has the bounds
        return jnp.ldexp(self, jnp.clip(wide, -5000, 5000).astype(jnp.int32))
    limited = jnp.clip(exponent, -5000, 5000)
    whole = jnp.ceil(limited)  # the other factor is at most 1, so it does not overflow
    part = self * jnp.exp2(limited - whole).astype(self.dtype)
    return jnp.ldexp(part, whole.astype(jnp.int32))


def frexp(self):
    if not jnp.issubdtype(self.dtype, jnp.floating):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = jnp.frexp(self)
    return mantissa.astype(self.dtype), jnp.where(jnp.isfinite(self), exponent, 0).astype(jnp.int32)


def frexp_backward(grad, self):
    """`grad` divided by the power of two that `frexp` takes out."""
    return op.ldexp(grad, -frexp(self)[1])


nextafter = promotion.common(_real_inexact(lax.nextafter))


# ---- divisors


def _magnitudes(function):
    """`function` of the absolute values as unsigned integers, which also hold that of the least
    integer of a signed dtype: with that itself the loop of JAX's `gcd` would never end.
    """

    @functools.wraps(function)
    def computed(self, other):
        unsigned = numpy.dtype(f"uint{8 * self.dtype.itemsize}")
        sizes = (jnp.abs(operand).astype(unsigned) for operand in (self, other))
        return function(*sizes).astype(self.dtype)

    return computed


gcd = promotion.common(_integers(_magnitudes(jnp.gcd)))
lcm = promotion.common(_integers(_magnitudes(jnp.lcm)))
