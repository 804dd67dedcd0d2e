"""Mapped functions that cannot be traced: they are called example by example.

A Function that computes by NumPy, or an operator of `torch.library` without a fake, needs numbers,
which a trace for one example does not have. The examples of a sparse tensor have unequal numbers of
elements.
"""

from __future__ import annotations

import itertools

import jax

from .. import ops
from ..frontend.generator import default_generator
from ..tape.pytree import flatten
from ..tape.sparse_tensor import is_sparse
from ..tape.tensor import Tensor
from .mapped_function import check_results, moved


def one_by_one(function, name, dims, out_dims, randomness, args, kwargs, is_whole=None):
    """The results of the calls for all examples, stacked in front.

    name: that of the function in messages. dims: the mapped dimension of each leaf of the
    arguments; out_dims, randomness: as for `vmap`; is_whole: as for `flatten` of the
    arguments. Raises RuntimeError without examples, and for random numbers if randomness is
    "error".
    """
    leaves, structure = flatten((args, kwargs), is_whole)
    size = next(leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None)
    if not size:
        raise RuntimeError("vmap: a function that reads numbers has no results without examples")
    before = default_generator.get_state()
    rows, examples = [], []
    for place, _ in zip(range(size), generator_states(randomness), strict=False):
        one = [
            leaf if dim is None else _example(leaf, dim, place)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        args, kwargs = jax.tree.unflatten(structure, one)
        rows.append(function(*args, **kwargs))
        check_results(name, out_dims, rows[-1])
        examples.append(one)
    if randomness == "error" and not before.equal(default_generator.get_state()):
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap"
        )
    for leaf, dim, parts in zip(leaves, dims, zip(*examples, strict=True), strict=True):
        if dim is not None and is_sparse(leaf) and any(part._version for part in parts):
            leaf.copy_(ops.stack(parts, dim))  # the examples are copies
    columns, (shape, *_) = zip(*(flatten(row, is_sparse) for row in rows), strict=True)
    stacked = map(_stacked, zip(*columns, strict=True))
    return moved(name, out_dims, jax.tree.unflatten(shape, stacked))


def _example(batch, dim, place):
    part = ops.select(batch, dim, place)
    return part.coalesce() if is_sparse(part) and batch.is_sparse else part


def _stacked(parts):
    return ops.stack(parts) if isinstance(parts[0], Tensor) else parts[0]


def generator_states(randomness):
    """Have the default generator draw the same numbers at each step, if examples do."""
    state = default_generator.get_state() if randomness == "same" else None
    for _ in itertools.count():
        yield state
        if state is not None:
            default_generator.set_state(state)
