"""The types of nodes of trees, and the keys of their children."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from ...core.aval import Size


class SequenceKey(NamedTuple):
    """The place of an element in a list, tuple or deque.

    >>> jaxgrad.utils._pytree.SequenceKey(1).get(["a", "b"])
    'b'
    """

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, tree):
        """The element of another tree at this place."""
        return tree[self.idx]


class MappingKey(NamedTuple):
    """The place of an item in a dict.

    >>> jaxgrad.utils._pytree.MappingKey("a").get({"a": 5})
    5
    """

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, tree):
        """The item of another tree at this place."""
        return tree[self.key]


class GetAttrKey(NamedTuple):
    """The place of a field in a named tuple, or of an attribute.

    >>> str(jaxgrad.utils._pytree.GetAttrKey("x"))
    '.x'
    """

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, tree):
        """The field of another tree at this place."""
        return getattr(tree, self.name)


class NodeDef(NamedTuple):
    """The facts about the nodes of one type.

    flatten_fn: gives the children of a node and the rest of it, its context. unflatten_fn: makes a
    node of both. flatten_with_keys_fn: gives the children with their keys, or None.

    >>> jaxgrad.utils._pytree.SUPPORTED_NODES[dict].flatten_fn({"b": 1, "a": 2})
    ([1, 2], ['b', 'a'])
    """

    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None = None
    serialized_type_name: str | None = None
    to_dumpable_context: Callable | None = None
    from_dumpable_context: Callable | None = None


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is one of named tuples.

    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> [jaxgrad.utils._pytree.is_namedtuple_class(kind) for kind in (Point, tuple)]
    [True, False]
    """
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj) -> bool:
    """Whether an object is a named tuple.

    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> jaxgrad.utils._pytree.is_namedtuple_instance(Point(1, 2))
    True
    """
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj) -> bool:
    """Whether an object is a named tuple, or a class of them.

    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> jaxgrad.utils._pytree.is_namedtuple(Point), jaxgrad.utils._pytree.is_namedtuple(Point(1, 2))
    (True, True)
    """
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


# ---- the types of nodes


class _NamedTuple:
    """Stands for all classes of named tuples among the types of nodes."""


_NamedTuple.__name__ = "namedtuple"


def _sequence_keys(tree):
    return [(SequenceKey(i), child) for i, child in enumerate(tree)], None


def _mapping_keys(tree):
    children, context = SUPPORTED_NODES[type(tree)].flatten_fn(tree)
    return list(zip(map(MappingKey, tree), children, strict=True)), context


def _sequence(cls, context=None):
    flatten = lambda tree: (list(tree), context)  # noqa: E731
    return NodeDef(cls, flatten, lambda children, _: cls(children), _sequence_keys)


def _mapping(cls):
    flatten = lambda tree: (list(tree.values()), list(tree))  # noqa: E731
    make = lambda children, keys: cls(zip(keys, children, strict=True))  # noqa: E731
    return NodeDef(cls, flatten, make, _mapping_keys)


SUPPORTED_NODES: dict[type, NodeDef] = {
    **{cls: _sequence(cls) for cls in (tuple, list)},
    # a size holds integers alone
    Size: NodeDef(Size, lambda tree: (list(tree), None), lambda c, _: tuple(c), _sequence_keys),
    **{cls: _mapping(cls) for cls in (dict, OrderedDict)},
    _NamedTuple: NodeDef(
        _NamedTuple,
        lambda tree: (list(tree), type(tree)),
        lambda children, cls: cls(*children),
        lambda tree: ([(GetAttrKey(n), getattr(tree, n)) for n in tree._fields], type(tree)),
    ),
    defaultdict: NodeDef(
        defaultdict,
        lambda tree: (list(tree.values()), [tree.default_factory, list(tree)]),
        lambda children, known: defaultdict(known[0], zip(known[1], children, strict=True)),
        _mapping_keys,
    ),
    deque: NodeDef(
        deque,
        lambda tree: (list(tree), tree.maxlen),
        deque,
        lambda tree: (_sequence_keys(tree)[0], tree.maxlen),
    ),
}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Make the instances of a class nodes of trees: here, in JAX, and so in `jit` and `vmap`.

    flatten_fn: gives a list of the children of an instance, and the rest of it, its context, which
    can be compared. unflatten_fn: makes an instance of children and context. flatten_with_keys_fn:
    gives the children in pairs with their keys, and the context. serialized_type_name,
    to_dumpable_context, from_dumpable_context: how `treespec_dumps` writes the class and a context.

    Raises ValueError if the class is registered already.

    >>> class Pair:
    ...     def __init__(self, *items):
    ...         self.items = items
    >>> tree = jaxgrad.utils._pytree
    >>> tree.register_pytree_node(Pair, lambda p: (p.items, None), lambda items, _: Pair(*items))
    >>> tree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )

    def flatten(tree):
        children, context = flatten_fn(tree)
        return tuple(children), _Comparable(context)

    with contextlib.suppress(ValueError):  # JAX knows it already
        jax.tree_util.register_pytree_node(
            cls, flatten, lambda context, children: unflatten_fn(list(children), context.value)
        )


_register_pytree_node = register_pytree_node


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make the instances of a dataclass nodes of trees, whose children are fields that are not
    None.

    field_names: the fields, by default those of the constructor; needed for a class that is no
    dataclass. drop_field_names: those that nodes lose. serialized_type_name: as for
    `register_pytree_node`. Raises ValueError for other names than those of the fields.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> tree = jaxgrad.utils._pytree
    >>> tree.register_dataclass(Point)
    >>> tree.tree_map(lambda x: 2 * x, Point(1, 2)).y
    4
    """
    names = _field_names(cls, field_names, set(drop_field_names or ()))

    def flatten(obj):
        values = {name: getattr(obj, name) for name in names}
        present = [name for name in names if values[name] is not None]
        absent = [name for name in names if values[name] is None]
        return [values[name] for name in present], [present, absent]

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    def flatten_with_keys(obj):
        values, context = flatten(obj)
        return [*zip(map(GetAttrKey, context[0]), values, strict=True)], context

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _field_names(cls, names, dropped: set[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        return names
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    fields = [name for name in fields if name not in dropped]
    if names is not None and {*names} != {*fields}:
        raise ValueError(
            "field_names does not include all dataclass fields, or others: "
            f"{sorted({*names} ^ {*fields})}. Fields that nodes lose are in drop_field_names"
        )
    return fields if names is None else names


def register_constant(cls: type) -> None:
    """Make the instances of a class nodes without children: they belong to the structure.

    Raises TypeError for a class without `__eq__` and `__hash__` of its own.

    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True)
    ... class Norm:
    ...     name: str
    >>> tree = jaxgrad.utils._pytree
    >>> tree.register_constant(Norm)
    >>> tree.tree_leaves([Norm("l2"), 1])
    [1]
    """
    for method, default in (("__eq__", object.__eq__), ("__hash__", None)):
        if getattr(cls, method) is default:
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}` "
                "implementation."
            )
    register_pytree_node(
        cls,
        lambda value: ([], value),
        lambda _, value: value,
        flatten_with_keys_fn=lambda value: ([], value),
    )
    _constants.add(cls)


_constants: set[type] = set()


def is_constant_class(cls: type) -> bool:
    """Whether `register_constant` was called with a class."""
    return cls in _constants


class _Comparable:
    """A context as JAX needs it: JAX hashes what PyTorch's code compares, such as a list."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Comparable) and self.value == other.value

    def __hash__(self):
        return hash(type(self.value))


def _type_of(tree) -> type:
    kind = type(tree)
    return _NamedTuple if kind not in SUPPORTED_NODES and is_namedtuple_class(kind) else kind


def tree_is_leaf(tree, is_leaf: Callable | None = None) -> bool:
    """Whether a value is a leaf: not a node, or one for which `is_leaf` is true.

    >>> jaxgrad.utils._pytree.tree_is_leaf(None)
    True
    """
    return (is_leaf is not None and is_leaf(tree)) or _type_of(tree) not in SUPPORTED_NODES
