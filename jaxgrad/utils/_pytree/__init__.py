"""Trees of Python containers, as torch.utils._pytree.

Nodes are tuples, lists, dicts, named tuples, `OrderedDict`, `defaultdict`, `deque`, `Size`, and
what `register_pytree_node` adds; all else, None too, is a leaf. Dicts keep the order of their keys.
`jax.tree` sorts dicts by key instead, and takes None for a node without leaves.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...names.missing import MissingName
from ._nodes import SUPPORTED_NODES as SUPPORTED_NODES
from ._nodes import GetAttrKey as GetAttrKey
from ._nodes import MappingKey as MappingKey
from ._nodes import NodeDef as NodeDef
from ._nodes import SequenceKey as SequenceKey
from ._nodes import _register_pytree_node as _register_pytree_node
from ._nodes import _type_of
from ._nodes import is_constant_class as is_constant_class
from ._nodes import is_namedtuple as is_namedtuple
from ._nodes import is_namedtuple_class as is_namedtuple_class
from ._nodes import is_namedtuple_instance as is_namedtuple_instance
from ._nodes import register_constant as register_constant
from ._nodes import register_dataclass as register_dataclass
from ._nodes import register_pytree_node as register_pytree_node
from ._nodes import tree_is_leaf as tree_is_leaf
from ._structure import _LEAF
from ._structure import LeafSpec as LeafSpec
from ._structure import PyTreeSpec as PyTreeSpec
from ._structure import TreeSpec as TreeSpec
from ._text import treespec_dumps as treespec_dumps
from ._text import treespec_loads as treespec_loads
from ._text import treespec_pprint as treespec_pprint

PyTree = Context = DumpableContext = Any
FlattenFn = UnflattenFn = ToDumpableContextFn = FromDumpableContextFn = Callable
FlattenFunc = UnflattenFunc = FlattenWithKeysFunc = Callable

_is_leaf = tree_is_leaf

# ---- flattening


def tree_iter(tree, is_leaf: Callable | None = None) -> Iterator:
    """Iterate over the leaves of a tree.

    >>> list(jaxgrad.utils._pytree.tree_iter({"b": [1, None], "a": 3}))
    [1, None, 3]
    """
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    children, _ = SUPPORTED_NODES[_type_of(tree)].flatten_fn(tree)
    for child in children:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf: Callable | None = None) -> list:
    """The leaves of a tree.

    >>> jaxgrad.utils._pytree.tree_leaves({"b": [1, None], "a": 3})
    [1, None, 3]
    """
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf: Callable | None = None) -> TreeSpec:
    """The structure of a tree.

    >>> jaxgrad.utils._pytree.tree_structure([1, (2, 3)])
    TreeSpec(list, None, [*,
      TreeSpec(tuple, None, [*,
        *])])
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten(tree, is_leaf: Callable | None = None) -> tuple[list, TreeSpec]:
    """The leaves of a tree, and its structure.

    is_leaf: tells which nodes are leaves.

    >>> leaves, spec = jaxgrad.utils._pytree.tree_flatten({"b": (1, 2), "a": 3})
    >>> leaves, jaxgrad.utils._pytree.tree_unflatten("xyz", spec)
    ([1, 2, 3], {'b': ('x', 'y'), 'a': 'z'})
    """
    leaves: list = []
    return leaves, _flatten(tree, is_leaf, leaves)


def _flatten(tree, is_leaf, leaves) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = _type_of(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec):
    """The tree of a structure and leaves. Raises ValueError for another number of leaves,
    TypeError if `treespec` is no structure.

    >>> spec = jaxgrad.utils._pytree.tree_structure({"b": (1, 2), "a": 3})
    >>> jaxgrad.utils._pytree.tree_unflatten([4, 5, 6], spec)
    {'b': (4, 5), 'a': 6}
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec "
            f"but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def arg_tree_leaves(*args, **kwargs) -> list:
    """The leaves of the arguments.

    >>> jaxgrad.utils._pytree.arg_tree_leaves([1, 2], 3, last=(4,))
    [1, 2, 3, 4]
    """
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def _broadcast_to_and_flatten(tree, treespec: TreeSpec, is_leaf: Callable | None = None):
    """The leaves of a tree, each as often as `treespec` has leaves in its place; None where the
    structures do not fit.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    try:
        children = treespec._children_in(tree) if not treespec.is_leaf() else None
    except ValueError:
        return None
    if children is None:
        return None
    parts = [
        _broadcast_to_and_flatten(child, spec, is_leaf)
        for child, spec in zip(children, treespec.children_specs, strict=True)
    ]
    return None if any(part is None for part in parts) else [one for part in parts for one in part]


# ---- mapping


def tree_map(func: Callable, tree, *rests, is_leaf: Callable | None = None):
    """The tree of `func(leaf, *others)` for each leaf, with the parts of other trees in its place.

    Raises ValueError for other trees that have another structure.

    >>> jaxgrad.utils._pytree.tree_map(lambda x, y: x + y, {"a": 1, "b": 2}, {"b": 3, "a": 4})
    {'a': 5, 'b': 5}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *map(spec.flatten_up_to, rests)))


def tree_map_(func: Callable, tree, *rests, is_leaf: Callable | None = None):
    """Call `func` as `tree_map` does, drop its results, and return the tree itself.

    >>> x = jaxgrad.ones(2)
    >>> jaxgrad.utils._pytree.tree_map_(lambda x: x.mul_(3), {"x": x})
    {'x': tensor([3., 3.])}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *map(spec.flatten_up_to, rests), strict=True):
        func(*arguments)
    return tree


def _test(wanted) -> Callable:
    """Whether a leaf is of a type, of one of several, or fulfils a condition."""
    if isinstance(wanted, type | tuple | types.UnionType):
        return lambda leaf: isinstance(leaf, wanted)
    if callable(wanted):
        return wanted
    raise TypeError(
        "Argument must be a type, a tuple of types, or a callable predicate, not "
        f"{type(wanted).__name__}"
    )


def map_only(type_or_types_or_pred, /, func: Callable | None = None):
    """A function that calls `func` with leaves of some types, and gives others back; without `func`
    a decorator.

    >>> double = jaxgrad.utils._pytree.map_only(int, lambda x: 2 * x)
    >>> double(4), double("a")
    (8, 'a')
    """
    if func is None:
        return functools.partial(map_only, type_or_types_or_pred)
    is_wanted = _test(type_or_types_or_pred)
    return lambda leaf: func(leaf) if is_wanted(leaf) else leaf


def tree_map_only(type_or_types_or_pred, /, func: Callable, tree, is_leaf: Callable | None = None):
    """The tree with `func(leaf)` for leaves of a type, of one of several types, or that fulfil a
    condition.

    >>> jaxgrad.utils._pytree.tree_map_only(int, lambda x: x + 1, [1, "a", 2.0])
    [2, 'a', 2.0]
    """
    return tree_map(map_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func: Callable, tree, is_leaf: Callable | None = None):
    """Call `func` as `tree_map_only` does, drop its results, and return the tree itself.

    >>> x = jaxgrad.ones(2)
    >>> jaxgrad.utils._pytree.tree_map_only_(jaxgrad.Tensor, lambda x: x.zero_(), ["a", x])
    ['a', tensor([0., 0.])]
    """
    return tree_map_(map_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable, tree, is_leaf: Callable | None = None) -> bool:
    """Whether all leaves fulfil a condition.

    >>> jaxgrad.utils._pytree.tree_all(lambda x: x > 1, [2, (3, 1)])
    False
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable, tree, is_leaf: Callable | None = None) -> bool:
    """Whether a leaf fulfils a condition.

    >>> jaxgrad.utils._pytree.tree_any(lambda x: x > 2, [2, (3, 1)])
    True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred: Callable, tree, is_leaf: Callable | None = None) -> bool:
    """Whether all leaves of some types fulfil a condition.

    >>> jaxgrad.utils._pytree.tree_all_only(int, lambda x: x > 1, [2, ("a", 3)])
    True
    """
    return all(map(pred, filter(_test(type_or_types), tree_iter(tree, is_leaf))))


def tree_any_only(type_or_types, /, pred: Callable, tree, is_leaf: Callable | None = None) -> bool:
    """Whether a leaf of some types fulfils a condition.

    >>> jaxgrad.utils._pytree.tree_any_only(int, lambda x: x > 2, [2, ("a", 1)])
    False
    """
    return any(map(pred, filter(_test(type_or_types), tree_iter(tree, is_leaf))))


# ---- paths


def tree_leaves_with_path(tree, is_leaf: Callable | None = None) -> list[tuple]:
    """The leaves of a tree, each in a pair with its path, a tuple of keys.

    >>> jaxgrad.utils._pytree.tree_leaves_with_path({"a": [5]})
    [((MappingKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    return list(_with_paths((), tree, is_leaf))


def _with_paths(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_type_of(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_flatten_with_path(tree, is_leaf: Callable | None = None) -> tuple[list[tuple], TreeSpec]:
    """The leaves of a tree, each in a pair with its path, and the structure of the tree.

    >>> tree = jaxgrad.utils._pytree
    >>> pairs, spec = tree.tree_flatten_with_path({"a": [1, 2]})
    >>> [tree.keystr(path) for path, leaf in pairs]
    ["['a'][0]", "['a'][1]"]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree, *rests, is_leaf: Callable | None = None):
    """The tree of `func(path, leaf, *others)` for each leaf.

    >>> tree = jaxgrad.utils._pytree
    >>> tree.tree_map_with_path(lambda path, x: tree.keystr(path), {"a": [1, 2]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = zip(*pairs, strict=True) if pairs else ((), ())
    return spec.unflatten(map(func, paths, leaves, *map(spec.flatten_up_to, rests)))


def keystr(kp: tuple) -> str:
    """A path as text.

    >>> tree = jaxgrad.utils._pytree
    >>> tree.keystr((tree.MappingKey("a"), tree.SequenceKey(0), tree.GetAttrKey("x")))
    "['a'][0].x"
    """
    return "".join(map(str, kp))


def key_get(obj, kp: tuple):
    """The part of a tree at a path.

    >>> tree = jaxgrad.utils._pytree
    >>> tree.key_get({"a": [5, 6]}, (tree.MappingKey("a"), tree.SequenceKey(1)))
    6
    """
    for key in kp:
        obj = key.get(obj)
    return obj


# the functions of the types of nodes by PyTorch's names, such as `_dict_flatten`
_OF_TYPES = {
    f"_{kind.__name__.lower()}_{what}": getattr(SUPPORTED_NODES[kind], f"{what}_fn")
    for kind in (dict, list, tuple, OrderedDict)
    for what in ("flatten", "unflatten", "flatten_with_keys")
}
_get_node_type = _type_of


def __getattr__(name):
    if name not in _OF_TYPES:
        raise MissingName(__name__, name)
    return _OF_TYPES[name]
