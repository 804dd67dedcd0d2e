"""What has no kernel on a platform: an error of jaxgrad's in the place of JAX's.

It comes where a program is lowered for the platform: at the call of an eager operator whose arrays
are there, at the first call of a compiled function, and from `torch.export`.
"""

from __future__ import annotations

import jax
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

no_kernel_p = Primitive("jaxgrad_no_kernel")
no_kernel_p.multiple_results = True


def without_kernel(function, *arrays, operators: str, **cures: str):
    """`function(*arrays)`, arrays of JAX and results alike.

    operators: the names of those that it serves; cures: by platform without a kernel, what to do.
    A program that is lowered for one raises NotImplementedError with both.
    """
    traced, results = jax.make_jaxpr(function, return_shape=True)(*arrays)
    avals, tree = tuple(traced.out_avals), jax.tree.structure(results)

    def refusing(platform, cure):
        message = f"{operators}: there is no kernel for the platform {platform}: {cure}"
        return lambda *arrays: tree.unflatten(_bind(arrays, avals, message))

    branches = {platform: refusing(platform, cure) for platform, cure in cures.items()}
    return lax.platform_dependent(*arrays, default=function, **branches)


def _bind(arrays, avals, message):
    return no_kernel_p.bind(*arrays, avals=tuple(avals), message=message)


@no_kernel_p.def_impl
def _impl(*arrays, avals, message):
    raise NotImplementedError(message)


@no_kernel_p.def_abstract_eval
def _abstract(*arrays, avals, message):
    return list(avals)


def _lowered(context, *operands, avals, message):
    raise NotImplementedError(message)


mlir.register_lowering(no_kernel_p, _lowered)


# The derivatives of what is never computed have its shapes alone: the branch beside it counts.


def _jvp(primals, tangents, *, avals, message):
    tangents = [ad.instantiate_zeros(tangent) for tangent in tangents]
    return _bind(primals, avals, message), _bind(tangents, avals, message)


def _transpose(cotangents, *operands, avals, message):
    cotangents = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    linear = [operand.aval for operand in operands if ad.is_undefined_primal(operand)]
    results = iter(_bind(cotangents, linear, message))
    return [next(results) if ad.is_undefined_primal(operand) else None for operand in operands]


def _batched(arrays, dims, *, avals, message):
    batch = next(
        array.shape[dim] for array, dim in zip(arrays, dims, strict=True) if dim is not None
    )
    avals = [aval.update(shape=(batch, *aval.shape)) for aval in avals]
    return _bind(arrays, avals, message), [0] * len(avals)


ad.primitive_jvps[no_kernel_p] = _jvp
ad.primitive_transposes[no_kernel_p] = _transpose
batching.primitive_batchers[no_kernel_p] = _batched
