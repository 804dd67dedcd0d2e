"""Tensors in JAX's trees: a node that holds its array, so that `jax.tree` and what stands on it
(optax, equinox, orbax) work on tensors. `requires_grad` is no part of the structure.
"""

from __future__ import annotations

import jax

from . import avals, modes
from .tensor import Tensor, standing


def _flatten(tensor):
    return (standing(tensor, "a tree of JAX is made of")._array,), None


def _unflatten(_, children):
    (array,) = children
    made = object.__new__(Tensor)
    made._raw, made._tracked, made._nr = array, False, 0
    made._node = made._leaf = made._alias = made._counter = None
    # JAX unflattens with whatever it carries: placeholders, specifications, not arrays alone
    made._aval = avals.aval_of(array) if isinstance(array, jax.Array) else None
    if modes.born is not None:
        modes.born(made)
    return made


jax.tree_util.register_pytree_node(Tensor, _flatten, _unflatten)
