"""Samples of PyTorch's stream under `vmap`: those of all examples are drawn in one go, in their
order, as PyTorch draws them for the batch.

How many words a sample takes depends on its parameters, so a trace of one example cannot say where
those of an example begin. The draw is a primitive on the state of the generator; mapped by
`jax.vmap` it draws for all examples, and has one state after it.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.interpreters import ad, batching, mlir

from ..core.aval import types_of_trace
from ..late import LateModule
from .rejection import traced_samples
from .traced_twister import PACKED, TracedState, unpacked

jax_core = LateModule("jax.extend.core")


def samples_of_example(sampler: str, state: TracedState, numbers, parameters):
    """The samples of the traced example, float64, and the state after those of all examples.

    numbers: of the `vmap`s around whose examples draw different numbers, those of the example.
    """
    with types_of_trace():
        arrays = [state.packed(), *numbers, *map(jnp.asarray, parameters)]
        samples, state = samples_p().bind(*arrays, sampler=sampler, count=len(numbers))
        return samples, unpacked(state)


@functools.cache
def samples_p():
    """The primitive, with its rules: from a packed state, the numbers of the example, so many, and
    parameters to samples and the packed state after them.
    """
    primitive = jax_core.Primitive("jaxgrad_samples")
    primitive.multiple_results = True
    primitive.def_impl(_drawn)
    primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[primitive] = _jvp
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, mlir.lower_fun(_drawn, multiple_results=True))
    return primitive


def _drawn(state, *arrays, sampler, count):
    samples, after = traced_samples(sampler, unpacked(state), arrays[count:])
    return [samples, after.packed()]


def _abstract(state, *arrays, sampler, count):
    samples = ShapedArray(arrays[count].shape, np.dtype(np.float64))
    return [samples, ShapedArray((PACKED,), np.dtype(np.uint32))]


def _jvp(primals, tangents, **options):
    results = samples_p().bind(*primals, **options)
    return results, [ad.Zero.from_primal_value(result) for result in results]


def _batch(arrays, dims, sampler, count):
    """Draw for all examples, which stand in front; their numbers are not needed any more."""
    size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    pairs = [*zip(arrays, dims, strict=True)]
    numbers = [number for number, dim in pairs[1 : count + 1] if dim is None]
    parameters = [_in_front(*pair, size) for pair in pairs[count + 1 :]]
    results = samples_p().bind(
        arrays[0], *numbers, *parameters, sampler=sampler, count=len(numbers)
    )
    return results, (0, None)


def _in_front(array, dim, size):
    if dim is not None:
        return jnp.moveaxis(array, dim, 0)
    return jnp.broadcast_to(array, (size, *array.shape))
