"""One linear primitive of JAX for the derivative of every operator.

It maps tangents of inputs to tangents of outputs. Evaluating it runs the operator's forward
formula, transposing it the reverse formula. Both are functions of the same residuals and work under
any transformation. Its abstract value needs neither formula, so reverse mode works even if there is
no forward formula and none can be derived.

The map that `apply_tangent_map` takes has `outputs` (`jax.ShapeDtypeStruct` of each output
tangent), `select(primals, outputs)` for the residuals, `forward(saved, tangents)` and
`transpose(saved, cotangents)`. It is hashable, by identity or content. `is_reused`: whether to
compile it, since it runs again; `takes_none`: whether a missing cotangent is None instead of zeros;
`is_plain`: whether it is of an operator that is linear, and has `plain(saved, tangents)`, the
forward formula in operations that JAX transposes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from . import executor
from .bounded_cache import bounded
from .device_axes import alike

tangent_map_p = Primitive("jaxgrad_tangent_map")
tangent_map_p.multiple_results = True


def apply_tangent_map(tangent_map, primals, outputs, tangents) -> list:
    """The tangents of the outputs. Only the map's residuals among primals and outputs are kept."""
    saved = tangent_map.select(primals, outputs)
    return _bind([*saved, *tangents], tangent_map, len(saved))


def _bind(arrays, map, saved) -> list:
    return tangent_map_p.bind(*alike(arrays), map=map, saved=saved)


def _arrays(values) -> tuple:
    """Values as arrays: JAX gives literals of a jaxpr in a class without methods such as `at`."""
    return tuple(map(jnp.asarray, values))


def _forward(*arrays, map, saved):
    return tuple(map.forward(arrays[:saved], arrays[saved:]))


@tangent_map_p.def_impl
def _impl(*arrays, map, saved):
    # a map of one call would be compiled at each call
    run, arrays = _compiled(map) if map.is_reused else map.forward, _arrays(arrays)
    return tuple(run(arrays[:saved], arrays[saved:]))


@bounded()
def _compiled(map):
    return executor.compiled(map.forward, wide=False)


@tangent_map_p.def_abstract_eval
def _abstract(*arrays, map, saved):
    avals = [jax.core.ShapedArray(struct.shape, struct.dtype) for struct in map.outputs]
    like = arrays[-1]
    # inside shard_map the results vary over the devices as the tangents do
    if not like.manual_axis_type.varying:
        return avals
    mesh = like.sharding.mesh
    places = [NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim)) for aval in avals]
    return [
        aval.update(sharding=place, manual_axis_type=like.manual_axis_type)
        for aval, place in zip(avals, places, strict=True)
    ]


def _jvp(primals, tangents, *, map, saved):
    """The map is linear in its tangents, so it maps theirs too; for the residuals JAX
    differentiates the forward formula.
    """
    outputs = _bind(primals, map, saved)
    constants, linear = primals[:saved], primals[saved:]
    moving = [
        i for i in range(saved) if not isinstance(tangents[i], ad.Zero) and _inexact(constants[i])
    ]
    parts = []
    if moving:
        parts.append(_jvp_of_saved(map, constants, linear, tangents, moving))
    if any(not isinstance(tangent, ad.Zero) for tangent in tangents[saved:]):
        # the map takes all its tangents or none
        second = [ad.instantiate_zeros(tangent) for tangent in tangents[saved:]]
        parts.append(_bind([*constants, *second], map, saved))
    tangents = [sum(terms[1:], start=terms[0]) for terms in zip(*parts, strict=True)]
    return outputs, alike([*tangents, *outputs])[: len(tangents)]


def _jvp_of_saved(map, constants, linear, tangents, moving):
    constants, linear = _arrays(constants), _arrays(linear)

    def forward(*values):
        replaced = list(constants)
        for position, value in zip(moving, values, strict=True):
            replaced[position] = value
        return tuple(map.forward(tuple(replaced), linear))

    return jax.jvp(forward, [constants[i] for i in moving], [tangents[i] for i in moving])[1]


ad.primitive_jvps[tangent_map_p] = _jvp


def _transpose(cotangents, *arrays, map, saved):
    cotangents = [
        None if map.takes_none and isinstance(c, ad.Zero) else ad.instantiate_zeros(c)
        for c in cotangents
    ]
    results = map.transpose(_arrays(arrays[:saved]), cotangents)
    # zeros that a formula makes vary over no devices, and the tangents do
    present = [cotangent for cotangent in cotangents if cotangent is not None]
    results = alike([*results, *present])[: len(results)]
    # JAX asks for cotangents of the linear inputs only, and not of those that are constants here
    undefined = [ad.is_undefined_primal(array) for array in arrays[saved:]]
    return [None] * saved + [
        r if flag else None for r, flag in zip(results, undefined, strict=True)
    ]


ad.primitive_transposes[tangent_map_p] = _transpose


# compared by content, so that the compiled map of an equal batch is found
@dataclasses.dataclass(frozen=True)
class _Batched:
    """A map over a leading batch dimension of every tangent, and of the residuals whose
    `saved_axes` is 0.
    """

    map: Any
    saved_axes: tuple[int | None, ...]
    size: int

    @property
    def is_reused(self):
        return self.map.is_reused

    @property
    def takes_none(self):
        return self.map.takes_none

    @property
    def is_plain(self):
        return self.map.is_plain

    @property
    def outputs(self):
        return [jax.ShapeDtypeStruct((self.size, *o.shape), o.dtype) for o in self.map.outputs]

    def forward(self, saved, tangents):
        return jax.vmap(self.map.forward, in_axes=(self.saved_axes, 0), axis_size=self.size)(
            saved, tuple(tangents)
        )

    def plain(self, saved, tangents):
        return jax.vmap(self.map.plain, in_axes=(self.saved_axes, 0), axis_size=self.size)(
            saved, tuple(tangents)
        )

    def transpose(self, saved, cotangents):
        return jax.vmap(self.map.transpose, in_axes=(self.saved_axes, 0), axis_size=self.size)(
            saved, tuple(cotangents)
        )


def _batch(arrays, dims, *, map, saved):
    size = next(
        array.shape[dim] for array, dim in zip(arrays, dims, strict=True) if dim is not None
    )
    pairs = zip(_arrays(arrays), dims, strict=True)
    arrays = [array if dim is None else jnp.moveaxis(array, dim, 0) for array, dim in pairs]
    if map.is_plain and None in dims[saved:]:
        # of an operator that reads a shared table, JAX adds up the gradient in one array, where the
        # reverse formula makes an array for each example
        axes = tuple(None if dim is None else 0 for dim in dims)
        run = jax.vmap(map.plain, in_axes=(axes[:saved], axes[saved:]), axis_size=size)
        results = run(tuple(arrays[:saved]), tuple(arrays[saved:]))
        return results, [0] * len(results)
    # every tangent gets the batch dimension, so that the transpose of a shared one sums over it
    tangents = [
        jnp.broadcast_to(a, (size, *jnp.shape(a))) if d is None else a
        for a, d in zip(arrays[saved:], dims[saved:], strict=True)
    ]
    axes = tuple(None if dim is None else 0 for dim in dims[:saved])
    results = _bind([*arrays[:saved], *tangents], _Batched(map, axes, size), saved)
    return results, [0] * len(results)


batching.primitive_batchers[tangent_map_p] = _batch
mlir.register_lowering(tangent_map_p, mlir.lower_fun(_forward, multiple_results=True))


def _inexact(array):
    return jnp.issubdtype(array.dtype, jnp.inexact)
