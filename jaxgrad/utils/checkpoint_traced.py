"""Checkpoints inside of the branches and bodies of control flow, in a trace.

There JAX derives the gradient of what the function does, and the tape that it records is not used:
so the call is one program, of which `jax.checkpoint` has JAX keep the arguments alone.
"""

from __future__ import annotations

import jax

from ..capture.control_flow import split
from ..capture.subgraph import Branch, Flow, Step, Traced, apply
from ..tape import mode
from ..tape.tensor import Tensor


def concerns() -> bool:
    """Whether this is inside of such a function."""
    return isinstance(mode.scope.get(), Branch)


def call(function, args, kwargs, policy):
    """A checkpointed call; policy: one of `jax.checkpoint_policies`."""
    values, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_tensor)
    tensors, shape = list(filter(_is_tensor, values)), []

    def inner(*given):
        given = iter(given)
        filled = [next(given) if _is_tensor(value) else value for value in values]
        args, kwargs = jax.tree.unflatten(structure, filled)
        shape[:] = jax.tree.flatten(function(*args, **kwargs), is_leaf=_is_tensor)
        return list(filter(_is_tensor, shape[0]))

    traced = Traced("checkpoint", inner, tensors, jax.tree.structure((0,) * len(tensors)), Step)
    states = [each.reserve(1) for each in traced.drawing]

    def run(*arrays):
        given, read = split(arrays, len(tensors))
        return traced.run(given, read)

    leaves = [*tensors, *traced.reads, *states]
    program = Flow("Checkpoint", leaves, jax.checkpoint(run, policy=policy))
    found = iter(apply(program, leaves, traced.structure))
    outputs, structure = shape
    filled = [next(found) if _is_tensor(value) else value for value in outputs]
    return jax.tree.unflatten(structure, filled)


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)
