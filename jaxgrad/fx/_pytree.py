"""The leaves of arguments by a structure that is known, as torch.fx._pytree."""

from __future__ import annotations

from collections.abc import Callable

from ..names.not_provided import names_of
from ..utils._pytree import TreeSpec as TreeSpec
from ..utils._pytree import tree_flatten as tree_flatten

__getattr__, __dir__ = names_of(__name__)

# by the class of a container the functions that give its children
SUPPORTED_NODES: dict[type, Callable] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, Callable | None] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable,
    flatten_fn_exact_match_spec: Callable | None = None,
) -> None:
    """Let `tree_flatten_spec` take containers of a class apart.

    flatten_fn_spec: gives the children of a container and its structure;
    flatten_fn_exact_match_spec: says whether both are of one structure.

    >>> from jaxgrad.fx._pytree import register_pytree_flatten_spec
    >>> register_pytree_flatten_spec(frozenset, lambda items, spec: sorted(items))
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree, spec) -> list:
    """Return the leaves of nested containers in the order of a structure.

    Raises TypeError for a container that is not registered, ValueError or KeyError for one that
    lacks what the structure has.

    >>> from jaxgrad.fx._pytree import tree_flatten_spec
    >>> from jaxgrad.utils import _pytree
    >>> _, spec = _pytree.tree_flatten({"a": 1, "b": [2, 3]})
    >>> tree_flatten_spec({"b": [5, 6], "a": 4}, spec)
    [4, 5, 6]
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type not in SUPPORTED_NODES:
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it: call "
            "torch.fx._pytree.register_pytree_flatten_spec"
        )
    children = SUPPORTED_NODES[spec.type](pytree, spec)
    is_same = SUPPORTED_NODES_EXACT_MATCH[spec.type]
    if is_same is not None and not is_same(pytree, spec):
        raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
    leaves = []
    for child, inner in zip(children, spec.children(), strict=False):
        leaves += tree_flatten_spec(child, inner)
    return leaves


def _items(value, spec):
    return list(value[: spec.num_children])


def _same_length(value, spec):
    return len(value) == spec.num_children


def _values(value, spec):
    return [value[key] for key in spec.context]


register_pytree_flatten_spec(dict, _values, _same_length)
register_pytree_flatten_spec(list, _items, _same_length)
register_pytree_flatten_spec(tuple, _items, _same_length)
