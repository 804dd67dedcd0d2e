"""Checkpoints inside of subgraphs: branches and bodies of control flow, in a trace.

There JAX derives the gradient, and the tape is not used. So the call is one program, for which
`jax.checkpoint` makes JAX save the arguments only.
"""

from __future__ import annotations

import jax
import numpy as np

from ..capture.control_flow import split
from ..capture.subgraph import ControlFlow, CountedScope, Subgraph, SubgraphScope, apply
from ..tape import mode
from ..tape.pytree import flatten, is_tensor


def concerns() -> bool:
    """Whether a subgraph is being traced."""
    return isinstance(mode.scope.get(), SubgraphScope)


def call(function, args, kwargs, policy):
    """Call a checkpointed function, a loop with one run. policy: of `jax.checkpoint_policies`."""
    values, structure = flatten((args, kwargs))
    tensors, shape = list(filter(is_tensor, values)), []

    def inner(*inputs):
        inputs = iter(inputs)
        filled = [next(inputs) if is_tensor(value) else value for value in values]
        args, kwargs = jax.tree.unflatten(structure, filled)
        shape[:] = flatten(function(*args, **kwargs))
        return list(filter(is_tensor, shape[0]))

    flat = jax.tree.structure((0,) * len(tensors))
    traced = Subgraph("checkpoint", inner, tensors, flat, CountedScope)
    states = [run_draws.reserve(1) for run_draws in traced.draws]
    counts = len(tensors), len(traced.reads)

    def run(*arrays):
        arguments, read, drawn = split(arrays, *counts)
        pairs = zip(traced.draws, drawn, strict=True)
        return traced.run(
            arguments, [*read, *[draw.at(array, np.int32(0)) for draw, array in pairs]]
        )

    leaves = [*tensors, *traced.take(), *states]
    program = ControlFlow("Checkpoint", leaves, jax.checkpoint(run, policy=policy))
    results = iter(apply(program, leaves, traced.structure))
    outputs, structure = shape
    filled = [next(results) if is_tensor(value) else value for value in outputs]
    return jax.tree.unflatten(structure, filled)
