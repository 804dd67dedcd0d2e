"""Tensors in JAX's pytrees: a tensor is a node with its array as leaf, so that `jax.tree`, optax,
equinox and orbax work on tensors. `requires_grad` is not part of the structure.
"""

from __future__ import annotations

import dataclasses
import sys

import jax

from .mode import is_grad_enabled
from .tensor import Tensor, check_no_tangent, placeholder, wrap

LOST = (
    "a JAX function was given a tensor that requires grad, and its gradient would be lost: call "
    "jaxgrad's operator of that name, make an operator of the function by "
    "jaxgrad.from_jax(function), or pass tensor.detach()"
)


def _flatten(tensor):
    # tree functions call this from a frame of JAX, jitted functions without one
    caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
    if caller != "jax" and tensor._requires_grad and is_grad_enabled():
        raise TypeError(LOST)
    return (check_no_tangent(tensor, "a JAX tree")._array,), None


def _unflatten(_, children):
    (array,) = children
    # JAX unflattens with placeholders and shardings too
    return wrap(array) if isinstance(array, jax.Array) else placeholder(array)


jax.tree_util.register_pytree_node(Tensor, _flatten, _unflatten)


# ---- dataclasses of tensors


def flatten(value) -> tuple[list, object]:
    """The leaves of a pytree and its structure. Tensors are leaves; instances of dataclasses that
    contain tensors are nodes.
    """
    leaves, structure = jax.tree.flatten(value, is_leaf=is_tensor)
    if any(map(_is_record, leaves)):
        return jax.tree.flatten(_opened(value), is_leaf=is_tensor)
    return leaves, structure


def is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def _is_record(value) -> bool:
    """Whether a value is an instance of a dataclass that contains tensors."""
    if not hasattr(type(value), "__dataclass_fields__"):
        return False
    leaves = jax.tree.leaves(_fields(value), is_leaf=is_tensor)
    return any(isinstance(leaf, Tensor | jax.Array) or _is_record(leaf) for leaf in leaves)


def _fields(value) -> dict:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _opened(value):
    return jax.tree.map(
        lambda leaf: _Record(leaf) if _is_record(leaf) else leaf, value, is_leaf=is_tensor
    )


class _Record:
    """Wraps an instance of a dataclass as a node, so that its class needs no registration."""

    def __init__(self, value):
        self.value = value


def _flatten_record(record):
    fields = _fields(record.value)
    return tuple(map(_opened, fields.values())), (type(record.value), tuple(fields))


def _make(kind_and_names, values):
    kind, names = kind_and_names
    given = dict(zip(names, values, strict=True))
    later = [field.name for field in dataclasses.fields(kind) if not field.init]
    made = kind(**{name: value for name, value in given.items() if name not in later})
    for name in later:
        # past `__setattr__`, since the dataclass may be frozen
        object.__setattr__(made, name, given[name])
    return made


jax.tree_util.register_pytree_node(_Record, _flatten_record, _make)
