"""Arrays of a trace made dependent on gradients: the same values, which XLA treats as different.

A recomputation from the same inputs would be merged with the first computation by XLA (common
subexpression elimination), whose results would then be kept. On a GPU or TPU
`jax.lax.optimization_barrier` prevents this. On a CPU XLA removes the barrier before it merges, so
`jax.checkpoint` saves nothing there. Here the values go through a select whose predicate depends on
the bits of a gradient and is always true.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp


def after_gradients(arrays, gradients, choose=True) -> list:
    """The arrays, dependent on the gradients. choose: False where the barrier is enough."""
    arrays, gradients = list(arrays), list(gradients)
    if not arrays:
        return arrays
    with jax.enable_x64(True):
        # a gradient may be a constant, whose bits XLA knows: then those of the arrays decide
        bits = [_bits(group) for group in (gradients, arrays)]
        bits = [pattern for pattern in bits if pattern is not None]
        if not choose or not bits:
            return _after(arrays, gradients)
        return jax.lax.platform_dependent(arrays, gradients, bits, cpu=_chosen, default=_after)


def _after(arrays, gradients, *_):
    return jax.lax.optimization_barrier((arrays, gradients))[0]


def _chosen(arrays, gradients, bits):
    always = functools.reduce(jnp.logical_and, [((pattern & 1) >> 1) == 0 for pattern in bits])
    return [jax.lax.select(_filled(always, a), a, jnp.zeros_like(a)) for a in arrays]


def _filled(flag, array):
    return jnp.broadcast_to(flag, array.shape)


def _bits(arrays):
    """The bits of one element of the first array that has elements; None where none has."""
    for array in arrays:
        array = jax.lax.stop_gradient(array)
        number = array.real if jnp.iscomplexobj(array) else array
        if number.size and jnp.issubdtype(number.dtype, jnp.floating):
            number = number.reshape(-1)[0]
            return jax.lax.bitcast_convert_type(number, f"uint{8 * number.dtype.itemsize}")
        if number.size and jnp.issubdtype(number.dtype, jnp.integer):
            return number.reshape(-1)[0]
    return None
