"""Arrays and loops inside of a `shard_map`, where JAX knows over which devices each array varies.

JAX wants what a loop carries to vary alike before and after each round. Constants do not vary, so
the state that a loop begins with is cast to what its body makes of it.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax


def varies(array) -> bool:
    """Whether an array varies over the devices of a shard_map that checks it."""
    return bool(_varying(array))


def alike(arrays) -> list:
    """The arrays, all varying over the device axes of a shard_map over which one of them varies.

    So the transpose of an array that the devices share is summed over the devices.
    """
    everywhere = frozenset().union(*map(_varying, arrays))
    return [_cast(array, everywhere) for array in arrays] if everywhere else arrays


def _cast(array, axes):
    missing = tuple(sorted(axes - _varying(array)))
    return lax.pcast(array, missing, to="varying") if missing else array


def operand(shape, like):
    """What `jax.linear_transpose` takes for an array of a shape that has the dtype of another, and
    varies as it does.
    """
    if not varies(like):
        return jax.ShapeDtypeStruct(shape, like.dtype)
    return alike([jnp.zeros(shape, like.dtype), like])[0]


def scan(step, init, xs, reverse: bool = False):
    """`jax.lax.scan` of a step, also where it makes the state vary over more devices."""

    def once(state):
        return step(state, jax.tree.map(lambda x: x[0], xs))[0]

    return lax.scan(step, _settled(once, init), xs, reverse=reverse)


def fori_loop(lower, upper, body, init):
    """`jax.lax.fori_loop` of a body, also where it makes the state vary over more devices."""
    return lax.fori_loop(lower, upper, body, _settled(lambda state: body(lower, state), init))


def while_loop(condition, body, init):
    """`jax.lax.while_loop` of a body, also where it makes the state vary over more devices."""
    return lax.while_loop(condition, body, _settled(body, init))


def cond(predicate, one, other, *operands):
    """`jax.lax.cond` of two functions, also where their results vary over different devices."""
    if not is_inside():
        return lax.cond(predicate, one, other, *operands)
    kinds = [_varying_results(function, *operands) for function in (one, other)]
    axes = [first | second for first, second in zip(*kinds, strict=True)]
    branches = [functools.partial(_results_over, axes, function) for function in (one, other)]
    return lax.cond(predicate, *branches, *operands)


def is_inside() -> bool:
    """Whether this is a trace inside of a shard_map."""
    return bool(jax.sharding.get_abstract_mesh().manual_axes)


def _settled(body, state):
    """The state, varying over all devices over which it varies after some rounds of a body."""
    if not is_inside():
        return state
    while True:
        after = _varying_results(body, state)
        varying = [_varying(array) for array in jax.tree.leaves(state)]
        if all(new <= old for old, new in zip(varying, after, strict=True)):
            return state
        state = _over(after, state)


def _varying(value) -> frozenset:
    return jax.typeof(value).manual_axis_type.varying


def _varying_results(function, *operands) -> list[frozenset]:
    results = jax.make_jaxpr(function)(*operands).out_avals
    return [kind.manual_axis_type.varying for kind in results]


def _results_over(axes, function, *operands):
    return _over(axes, function(*operands))


def _over(axes, tree):
    """The arrays of a tree, each varying over some axes too."""
    arrays, structure = jax.tree.flatten(tree)
    return structure.unflatten(map(_cast, arrays, axes))
