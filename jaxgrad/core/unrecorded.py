"""Values computed while grad mode is off, where JAX differentiates. They have tangents but pass no
cotangent on, as an operator on dual tensors does under `no_grad`.

A tensor that is written to while grad mode is off keeps its history. So the cotangent of its new
value arrives at the old one.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

from ..late import LateModule

jax_core = LateModule("jax.extend.core")


@functools.cache
def unrecorded_p():
    """The primitive, with its rules."""
    primitive = jax_core.Primitive("jaxgrad_unrecorded")
    primitive.def_impl(lambda value, *old: value)
    primitive.def_abstract_eval(lambda value, *old: value)
    ad.primitive_jvps[primitive] = _jvp
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, lambda context, value, *old: [value])
    return primitive


def unrecorded(value, old=None):
    """An array whose cotangent goes to `old`, of the same shape and dtype, or is lost."""
    operands = [value] if old is None else [value, old]
    is_traced = any(isinstance(operand, jax.core.Tracer) for operand in operands)
    is_needed = is_traced and jnp.issubdtype(value.dtype, jnp.inexact)
    return unrecorded_p().bind(*operands) if is_needed else value


def with_derivatives_of(value, old):
    """An array with the tangents and cotangents of `old`, of the same shape and dtype."""
    operands = value, old
    is_traced = any(isinstance(operand, jax.core.Tracer) for operand in operands)
    is_needed = is_traced and jnp.issubdtype(value.dtype, jnp.inexact)
    return _with_derivatives_of(*operands) if is_needed else value


@jax.custom_jvp
def _with_derivatives_of(value, old):
    return value


@_with_derivatives_of.defjvp
def _tangent_of_old(primals, tangents):
    return primals[0], tangents[1]


def _jvp(primals, tangents):
    value = unrecorded_p().bind(*primals)
    if all(isinstance(tangent, ad.Zero) for tangent in tangents):
        return value, tangents[0]
    return value, unrecorded_p().bind(*map(ad.instantiate_zeros, tangents))


def _transpose(cotangent, *operands):
    return [
        None,
        *[cotangent if ad.is_undefined_primal(operand) else None for operand in operands[1:]],
    ]


def _batch(arrays, dims):
    size = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    moved = [
        jnp.broadcast_to(a, (size, *a.shape)) if d is None else jnp.moveaxis(a, d, 0)
        for a, d in zip(arrays, dims, strict=True)
    ]
    return unrecorded_p().bind(*moved), 0
