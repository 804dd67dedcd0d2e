"""Values of complex functions along their branch cuts, where XLA takes -0 for 0."""

import jax.numpy as jnp
from jax import lax


def along(function, *, real: bool = False, conjugate: bool = False):
    """`function`, whose imaginary part has the sign of that of the argument, also of a zero.

    It has the opposite sign with `conjugate`. With `real` the real parts have equal signs too.
    Source of the signs: C99, annex G.
    """

    def signed(self):
        value = function(self)
        if not jnp.iscomplexobj(self):
            return value
        imaginary = -lax.imag(self) if conjugate else lax.imag(self)
        imaginary = _with_sign_of_zero(lax.imag(value), imaginary)
        if not real:
            return lax.complex(lax.real(value), imaginary)
        return lax.complex(_with_sign_of_zero(lax.real(value), lax.real(self)), imaginary)

    return signed


def _with_sign_of_zero(value, part):
    """`value`, with the sign of `part` where that is 0 or -0."""
    return jnp.where(part == 0, jnp.copysign(value, part), value)
