"""The structures of trees."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable

from ._nodes import SUPPORTED_NODES, _type_of

# dicts may stand in for each other
_MAPPINGS = (dict, OrderedDict, defaultdict)


class TreeSpec:
    """The structure of a tree.

    type: that of the root, None for a leaf. context: the rest of the root. children_specs: the
    structures of its children.

    >>> jaxgrad.utils._pytree.tree_structure({"b": [1, 2], "a": 3})
    TreeSpec(dict, ['b', 'a'], [TreeSpec(list, None, [*,
        *]),
      *])
    """

    def __init__(self, type: type | None, context, children_specs: list[TreeSpec]):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        is_leaf = type is None
        self.num_children = len(self.children_specs)
        self.num_nodes = 1 + sum(spec.num_nodes for spec in self.children_specs)
        self.num_leaves = is_leaf + sum(spec.num_leaves for spec in self.children_specs)

    def is_leaf(self) -> bool:
        """Whether this is the structure of a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable):
        """The tree of this structure with these leaves. Raises ValueError for another number."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._unflatten(iter(leaves))

    def _unflatten(self, leaves):
        if self.type is None:
            return next(leaves)
        children = [spec._unflatten(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree) -> list:
        """The parts of a tree at the leaves of this structure. Dicts may have their keys in another
        order. Raises ValueError if the tree has another structure above them.
        """
        if self.type is None:
            return [tree]
        children = self._children_in(tree)
        pairs = zip(self.children_specs, children, strict=True)
        return [part for spec, child in pairs for part in spec.flatten_up_to(child)]

    def _children_in(self, tree) -> list:
        kind = _type_of(tree)
        if self.type in _MAPPINGS and kind in _MAPPINGS:
            keys = self.context[1] if self.type is defaultdict else self.context
            if tree.keys() != set(keys):
                raise ValueError(
                    f"Node keys mismatch; missing key(s): {set(keys) - tree.keys()}; extra key(s): "
                    f"{tree.keys() - set(keys)}."
                )
            return [tree[key] for key in keys]
        if kind is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if kind is not deque and context != self.context:
            raise ValueError(
                f"Node context mismatch for {kind!r}; expected {self.context!r}, but got "
                f"{context!r}."
            )
        return children

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        mine, others = self._compared(), other._compared()
        return mine == others

    def _compared(self):
        return self.type, self.context, self.children_specs

    def __hash__(self):
        return hash((self.type, self.num_nodes, tuple(map(hash, self.children_specs))))

    def __repr__(self):
        return self._shown(0)

    def _shown(self, indent):
        if self.type is None:
            return "*"
        inner = [spec._shown(indent + 2) for spec in self.children_specs]
        listed = f",\n{' ' * (indent + 2)}".join(inner)
        return f"TreeSpec({self.type.__name__}, {self.context!r}, [{listed}])"


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf.

    >>> jaxgrad.utils._pytree.tree_structure(5) == jaxgrad.utils._pytree.LeafSpec()
    True
    """

    def __init__(self):
        super().__init__(None, None, [])

    def __hash__(self):
        return super().__hash__()


_LEAF = LeafSpec()
