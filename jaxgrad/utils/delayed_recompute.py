"""Arrays of a trace as they are once gradients have arrived: the same values, which XLA takes for
others.

What is computed again from the very inputs of the first time XLA would compute once and keep.
`jax.lax.optimization_barrier` keeps the two apart on a GPU or TPU. On a CPU XLA takes the barrier
out before it looks for what is computed twice (so `jax.checkpoint` saves nothing there). There the
values go through a choice, which depends on the bits of a gradient and always falls the same way.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp


def late(arrays, gradients, choose=True) -> list:
    """The arrays after the gradients. choose: False where the barrier alone will do."""
    arrays, gradients = list(arrays), list(gradients)
    if not arrays:
        return arrays
    with jax.enable_x64(True):
        # a gradient may be a constant, whose bits XLA knows: then those of the arrays count
        bits = [_bits(each) for each in (gradients, arrays)]
        bits = [each for each in bits if each is not None]
        if not choose or not bits:
            return _after(arrays, gradients)
        return jax.lax.platform_dependent(arrays, gradients, bits, cpu=_chosen, default=_after)


def _after(arrays, gradients, *_):
    return jax.lax.optimization_barrier((arrays, gradients))[0]


def _chosen(arrays, gradients, bits):
    always = functools.reduce(jnp.logical_and, [((each & 1) >> 1) == 0 for each in bits])
    return [jax.lax.select(_filled(always, a), a, jnp.zeros_like(a)) for a in arrays]


def _filled(flag, array):
    return jnp.broadcast_to(flag, array.shape)


def _bits(arrays):
    """The bits of a number of the first of some arrays that has numbers with bits."""
    for array in arrays:
        array = jax.lax.stop_gradient(array)
        number = array.real if jnp.iscomplexobj(array) else array
        if number.size and jnp.issubdtype(number.dtype, jnp.floating):
            number = number.reshape(-1)[0]
            return jax.lax.bitcast_convert_type(number, f"uint{8 * number.dtype.itemsize}")
        if number.size and jnp.issubdtype(number.dtype, jnp.integer):
            return number.reshape(-1)[0]
    return None
