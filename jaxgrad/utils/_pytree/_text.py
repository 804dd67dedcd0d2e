"""The structures of trees as text."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict

from ...core.aval import Size
from ._nodes import SUPPORTED_NODES
from ._structure import _LEAF, TreeSpec


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON, in PyTorch's format 1.

    Raises NotImplementedError for a type that was registered without `serialized_type_name`,
    ValueError for another format.

    >>> jaxgrad.utils._pytree.treespec_dumps(jaxgrad.utils._pytree.tree_structure(5))
    '[1, {"type": null, "context": null, "children_spec": []}]'
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec): Expected `treespec` to be an instance of PyTreeSpec but got "
            f"item of type {type(treespec)}."
        )
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, _described(treespec)))


def _described(spec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    name, convert = _type_name(spec.type), _written(spec.type)
    try:
        written = convert(spec.context)
    except TypeError as error:
        raise TypeError(
            f"Unable to serialize context of {name}: pass to_dumpable_context to "
            "register_pytree_node"
        ) from error
    inner = [_described(child) for child in spec.children_specs]
    return {"type": name, "context": written, "children_spec": inner}


def _written(kind):
    """The function that writes the context of nodes of a type."""
    if kind is defaultdict:
        return _factory_and_keys
    return SUPPORTED_NODES[kind].to_dumpable_context or json.dumps


def _factory_and_keys(context) -> dict:
    factory, keys = context
    return {
        "default_factory_module": getattr(factory, "__module__", None),
        "default_factory_name": getattr(factory, "__qualname__", None),
        "dict_context": keys,
    }


def _type_name(kind) -> str:
    name = SUPPORTED_NODES[kind].serialized_type_name
    if name is None and kind is Size:
        name = "torch.Size"
    if name is None and kind.__module__ not in ("builtins", "collections"):
        raise NotImplementedError(
            f"No registered serialization name for {kind} found. Please update your "
            "register_pytree_node call with a `serialized_type_name` kwarg."
        )
    return name or f"{kind.__module__}.{kind.__name__}"


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote. Raises NotImplementedError for unknown types.

    >>> tree = jaxgrad.utils._pytree
    >>> text = tree.treespec_dumps(tree.tree_structure([1, (2, 3)]))
    >>> tree.treespec_loads(text).unflatten("abc")
    ['a', ('b', 'c')]
    """
    protocol, described = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _read(described)


def _read(described) -> TreeSpec:
    if described["type"] is None:
        return _LEAF
    kinds = {_type_name(kind): kind for kind in SUPPORTED_NODES if _is_named(kind)}
    kind = kinds.get(described["type"])
    if kind is None:
        raise NotImplementedError(
            f"Deserializing `{described['type']}` in pytree is not registered."
        )
    context = described["context"]
    if kind is defaultdict:
        module, name = context["default_factory_module"], context["default_factory_name"]
        factory = None if name is None else getattr(importlib.import_module(module), name)
        context = [factory, context["dict_context"]]
    else:
        context = (SUPPORTED_NODES[kind].from_dumpable_context or json.loads)(context)
    return TreeSpec(kind, context, [_read(child) for child in described["children_spec"]])


def _is_named(kind) -> bool:
    node = SUPPORTED_NODES[kind]
    is_known = kind is Size or kind.__module__ in ("builtins", "collections")
    return bool(node.serialized_type_name) or is_known


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as the text of a tree with stars for leaves.

    >>> jaxgrad.utils._pytree.treespec_pprint(jaxgrad.utils._pytree.tree_structure({"a": [1, 2]}))
    "{'a': [*, *]}"
    """
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


class _Star:
    def __repr__(self):
        return "*"
