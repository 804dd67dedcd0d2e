"""Checkpoints inside of subgraphs: branches and bodies of control flow, in a trace.

There JAX derives the gradient, and the tape is not used. So the call is one program, for which
`jax.checkpoint` makes JAX save the arguments only.
"""

from __future__ import annotations

import jax

from ..capture.control_flow import split
from ..capture.subgraph import ControlFlow, CountedScope, Subgraph, SubgraphScope, apply
from ..tape import mode
from ..tape.tensor import Tensor


def concerns() -> bool:
    """Whether a subgraph is being traced."""
    return isinstance(mode.scope.get(), SubgraphScope)


def call(function, args, kwargs, policy):
    """Call a checkpointed function. policy: one of `jax.checkpoint_policies`."""
    values, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
    tensors, shape = list(filter(_is_tensor, values)), []

    def inner(*given):
        given = iter(given)
        filled = [next(given) if _is_tensor(value) else value for value in values]
        args, kwargs = jax.tree.unflatten(structure, filled)
        shape[:] = jax.tree.flatten(function(*args, **kwargs), is_leaf=_is_tensor)
        return list(filter(_is_tensor, shape[0]))

    flat = jax.tree.structure((0,) * len(tensors))
    traced = Subgraph("checkpoint", inner, tensors, flat, CountedScope)
    states = [each.reserve(1) for each in traced.draws]

    def run(*arrays):
        given, read = split(arrays, len(tensors))
        return traced.run(given, read)

    leaves = [*tensors, *traced.reads, *states]
    program = ControlFlow("Checkpoint", leaves, jax.checkpoint(run, policy=policy))
    found = iter(apply(program, leaves, traced.structure))
    outputs, structure = shape
    filled = [next(found) if _is_tensor(value) else value for value in outputs]
    return jax.tree.unflatten(structure, filled)


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)
