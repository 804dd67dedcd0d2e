"""Tensors in JAX's pytrees: a tensor is a node with its array as leaf, so that `jax.tree`, optax,
equinox and orbax work on tensors. `requires_grad` is not part of the structure.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections import OrderedDict, defaultdict, deque

import jax

from ..core.meta_array import MetaArray
from .mode import is_grad_enabled
from .tensor import Tensor, abstract_value, check_no_tangent, held, placeholder, wrap

LOST = (
    "a JAX function was given a tensor that requires grad, and its gradient would be lost: call "
    "jaxgrad's operator of that name, make an operator of the function by "
    "jaxgrad.from_jax(function), or pass tensor.detach(). For jax.tree, is_leaf=jaxgrad.is_tensor "
    "keeps tensors whole, and under jaxgrad.no_grad() a tree gives its arrays"
)

# functions of JAX that flatten a tree and do not compute with its leaves
_LOOKING = frozenset(["tree_structure", "block_until_ready"])


def _flatten(tensor):
    if tensor._requires_grad and is_grad_enabled() and not _is_looked_at(sys._getframe(1)):
        raise TypeError(LOST)
    if abstract_value(tensor) is None:  # of a placeholder
        return (held(tensor),), None
    return (check_no_tangent(tensor, "a JAX tree")._array,), None


def _is_looked_at(frame) -> bool:
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "jax":
        if frame.f_code.co_name in _LOOKING:
            return True
        frame = frame.f_back
    return False


def _unflatten(_, children):
    (array,) = children
    # JAX unflattens with placeholders and shardings too
    return wrap(array) if isinstance(array, jax.Array | MetaArray) else placeholder(array)


jax.tree_util.register_pytree_node(Tensor, _flatten, _unflatten)

# the classes of dense tensors
_TENSORS = {Tensor}


def register_subclass(kind: type, become=None):
    """Make the instances of a subclass of `Tensor` nodes like other tensors.

    become: makes a new tensor an instance; by default it gets the class alone.
    """

    def unflatten(known, children):
        tensor = _unflatten(known, children)
        if become is None:
            tensor.__class__ = kind
        else:
            become(tensor)
        return tensor

    jax.tree_util.register_pytree_node(kind, _flatten, unflatten)
    _TENSORS.add(kind)


# ---- nodes that JAX does not have, or has in another order


class ContainsItself(ValueError):
    """A container has no leaves that end."""

    def __init__(self):
        super().__init__(
            "a list or a dict contains itself, so its leaves have no end: pass and return "
            "containers that contain others alone"
        )


# the classes of containers, whose instances are nodes, beside those of named tuples
_CONTAINERS = frozenset([tuple, list, dict, OrderedDict, defaultdict, deque])


def has_cycle(value, is_whole=None, around=()) -> bool:
    """Whether a container contains itself. On one that does, `jax.tree.flatten` runs out of stack,
    and on some versions of Python it leaves the thread without any.

    around: the containers that the value is in; is_whole: tells which values are not entered.
    """
    is_node = type(value) in _CONTAINERS or isinstance(value, tuple)
    if not is_node or (is_whole is not None and is_whole(value)):
        return False
    around = (*around, id(value))
    for part in value.values() if isinstance(value, dict) else value:
        is_node = type(part) in _CONTAINERS or isinstance(part, tuple)
        if is_node and (id(part) in around or has_cycle(part, is_whole, around)):
            return True
    return False


def flatten(value, is_whole=None) -> tuple[list, object]:
    """The leaves of a pytree and its structure, which `jax.tree.unflatten` takes.

    Tensors are leaves; instances of dataclasses that contain tensors are nodes; dicts keep the
    order of their keys. is_whole: tells which other values are leaves. Raises ContainsItself, a
    ValueError, for a container that does.
    """
    if has_cycle(value, is_whole):
        raise ContainsItself
    is_leaf = _is_leaf if is_whole is None else lambda node: _is_leaf(node) or is_whole(node)
    leaves, structure = jax.tree.flatten(value, is_leaf=is_leaf)
    for leaf in leaves:
        if type(leaf) in _TENSORS:
            continue
        if not (is_whole and is_whole(leaf)) and _is_node(leaf):
            opened = _opened(leaves, structure, is_whole)
            is_end = is_tensor if is_whole is None else lambda e: is_tensor(e) or is_whole(e)
            return jax.tree.flatten(opened, is_leaf=is_end)
    return leaves, structure


def map_leaves(function, value):
    """The pytree of `function(leaf)` for each leaf of `value`, in the order of its dicts."""
    leaves, structure = flatten(value)
    return jax.tree.unflatten(structure, map(function, leaves))


def ordered_as(structure, value):
    """A pytree with the keys of its dicts in the order of `structure`, where it differs in that
    alone; else `value` itself.
    """
    if flatten(value)[1] == structure:
        return value
    places = jax.tree.unflatten(structure, range(structure.num_leaves))
    try:
        # JAX's own order of keys is the same for both
        places, wanted = jax.tree.flatten(places)
        leaves, own_structure = jax.tree.flatten(value, is_leaf=is_tensor)
    except (TypeError, ValueError):  # keys that have no order
        return value
    if own_structure != wanted:
        return value
    leaves = dict(zip(places, leaves, strict=True))
    return jax.tree.unflatten(structure, [leaves[place] for place in range(len(leaves))])


def is_tensor(value) -> bool:
    return isinstance(value, Tensor)


# the dicts that JAX sorts by key
_SORTED = frozenset([dict, defaultdict])


def _is_leaf(value) -> bool:
    kind = type(value)
    return kind in _TENSORS or (kind in _SORTED and not is_sorted(tuple(value)))


# remembered, since a compiled function asks at each call
@functools.lru_cache(maxsize=1024)
def is_sorted(keys: tuple) -> bool:
    """Whether the keys of a dict are in the order that JAX gives them."""
    if any(map(is_tensor, keys)):
        return False  # a comparison would read their numbers
    try:
        return list(keys) == sorted(keys)
    except TypeError:  # keys that have no order
        return False


def _is_node(leaf) -> bool:
    """Whether a leaf is a dict, or an instance of a dataclass that contains tensors."""
    if type(leaf) in _SORTED:
        return True
    return _has_fields(leaf) and any(map(_has_array, _members(leaf)))


def _has_fields(value) -> bool:
    """Whether a value is an instance of a dataclass, with all of its fields."""
    fields = getattr(type(value), "__dataclass_fields__", None)
    return fields is not None and all(hasattr(value, field.name) for field in _fields(type(value)))


def _has_array(leaf) -> bool:
    if type(leaf) in _SORTED:
        return any(map(_has_array, _members(leaf)))
    return isinstance(leaf, Tensor | jax.Array) or _is_node(leaf)


def _members(value) -> list:
    """The leaves of the items of a dict, or of the fields of a dataclass."""
    return jax.tree.leaves(list(_items(value).values()), is_leaf=_is_leaf)


def _items(value) -> dict:
    if type(value) in _SORTED:
        return value
    return {field.name: getattr(value, field.name) for field in _fields(type(value))}


_fields = functools.lru_cache(maxsize=4096)(dataclasses.fields)


def _opened(leaves, structure, is_whole=None):
    """The pytree with each leaf that is a node wrapped, but for those that are whole."""
    wrapped = [
        _Wrapped(leaf, is_whole) if _is_node(leaf) and not (is_whole and is_whole(leaf)) else leaf
        for leaf in leaves
    ]
    return jax.tree.unflatten(structure, wrapped)


class _Wrapped:
    """Wraps a dict or an instance of a dataclass as a node of its own, whose children are in the
    order of the items, and whose class needs no registration.
    """

    def __init__(self, value, is_whole):
        self.value, self.is_whole = value, is_whole


def _flatten_wrapped(wrapped):
    items, is_whole = _items(wrapped.value), wrapped.is_whole
    is_leaf = _is_leaf if is_whole is None else lambda node: _is_leaf(node) or is_whole(node)
    children = [
        child
        if type(child) in _TENSORS
        else _opened(*jax.tree.flatten(child, is_leaf=is_leaf), is_whole)
        for child in items.values()
    ]
    factory = getattr(items, "default_factory", None)
    return children, (type(wrapped.value), tuple(items), factory)


def _make(known, values):
    kind, names, factory = known
    items = dict(zip(names, values, strict=True))
    if kind in _SORTED:
        return items if kind is dict else defaultdict(factory, items)
    later = [field.name for field in dataclasses.fields(kind) if not field.init]
    instance = kind(**{name: value for name, value in items.items() if name not in later})
    for name in later:
        # past `__setattr__`, since the dataclass may be frozen
        object.__setattr__(instance, name, items[name])
    return instance


jax.tree_util.register_pytree_node(_Wrapped, _flatten_wrapped, _make)
