"""Operators that act on each element by itself."""

import jax.numpy as jnp

from jaxgrad import promotion

conj = jnp.conj
mul = promotion.common(jnp.multiply)


@promotion.common
def add(self, other, *, alpha=1):
    return self + maybe_multiply(other, alpha)


def maybe_multiply(tensor, scalar):
    """`tensor * scalar`, without the product where the scalar is one."""
    return tensor if isinstance(scalar, int) and scalar == 1 else tensor * scalar
