"""Tensors in JAX's trees: a node that holds its array, so that `jax.tree` and what stands on it
(optax, equinox, orbax) work on tensors. `requires_grad` is no part of the structure.
"""

from __future__ import annotations

import sys

import jax

from . import avals, modes
from .modes import is_grad_enabled
from .tensor import Tensor, standing

LOST = (
    "a JAX function was given a tensor that requires grad, and its gradient would be lost: call "
    "jaxgrad's operator of that name, make an operator of the function by "
    "jaxgrad.from_jax(function), or pass tensor.detach()"
)


def _flatten(tensor):
    # What works on trees calls this from a frame of JAX's, and a compiled function from none.
    caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
    if caller != "jax" and tensor._requires_grad and is_grad_enabled():
        raise TypeError(LOST)
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
