"""torch.utils._pytree, against what PyTorch answers."""

import collections
import dataclasses
from collections import OrderedDict, defaultdict, deque

import jax
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

Point = collections.namedtuple("Point", "x y", module="points")

TREES = (
    {"b": [1, (2, None)], "a": 3},
    Point(1, [2]),
    OrderedDict(b=1, a=2),
    defaultdict(list, a=1),
    deque([1, [2]], maxlen=3),
    [],
    {},
    None,
    {1, 2},
    "ab",
)


def shown(tree):
    """`repr` of a tree, in which an OrderedDict is written as Python 3.11 writes it."""
    is_ordered = type(tree) is OrderedDict
    return f"OrderedDict({[*tree.items()]!r})" if is_ordered else repr(tree)


@as_torch
def test_leaves_and_structures(torch):
    pytree = torch.utils._pytree
    answers = []
    for tree in TREES:
        leaves, spec = pytree.tree_flatten(tree)
        counts = spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf()
        again = shown(pytree.tree_unflatten(leaves, spec))
        answers.append([repr(leaves), repr(spec), *counts, again])
    return answers


@as_torch
def test_mapping_of_trees(torch):
    pytree = torch.utils._pytree
    seen = []
    return [
        shown(tree)
        for tree in (
            pytree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}),
            pytree.tree_map(lambda a, b: (a, b), OrderedDict(a=1), {"a": [2]}),
            pytree.tree_map(lambda x: x, [1, [2]], is_leaf=lambda x: x == [2]),
            pytree.tree_map_(seen.append, [1, (2,)]),
            seen,
            pytree.tree_map_only(int, lambda x: x + 1, [1, "a", 2.0]),
            pytree.tree_map_only((int, float), lambda x: x + 1, [1, "a", 2.0]),
            pytree.tree_map_only(lambda x: x == 1, lambda x: x + 1, [1, "a", 2.0]),
            pytree.tree_any(lambda x: x > 1, [1, 2]),
            pytree.tree_all(lambda x: x > 1, [1, 2]),
            pytree.tree_all_only(int, lambda x: x > 1, [2, "2", 3]),
            pytree.tree_any_only(str, lambda x: x == "2", [2, "2", 3]),
            pytree.tree_leaves({"b": 1, "a": (2, None)}),
            list(pytree.tree_iter([1, [2]])),
            pytree.arg_tree_leaves(1, [2], a=3),
            pytree.tree_is_leaf([1]),
            pytree.tree_is_leaf(3),
            pytree._broadcast_to_and_flatten([1, 2], pytree.tree_structure([[0, 0], 0])),
            pytree._broadcast_to_and_flatten([1, 2], pytree.tree_structure([0, 0, 0])),
            pytree.is_namedtuple(Point),
            pytree.is_namedtuple_instance((1, 2)),
        )
    ]


@as_torch("""
    [["['a'][0]", 1], ["['a'][1].x", 2], ["['a'][1].y", 3], ['[5][0]', 4]]
    True
    [[1, 1, 3], [[2, 2, 4]]]
    2
""")
def test_paths_of_trees(torch):
    pytree = torch.utils._pytree
    tree = {"a": [1, Point(2, 3)], 5: deque([4])}
    pairs, spec = pytree.tree_flatten_with_path(tree)
    texts = [[pytree.keystr(path), leaf] for path, leaf in pairs]
    mapped = pytree.tree_map_with_path(lambda path, x, y: [len(path), x, y], [1, [2]], [3, [4]])
    return [texts, spec == pytree.tree_structure(tree), mapped, pytree.key_get(tree, pairs[1][0])]


@as_torch
def test_structures_compare_and_are_written(torch):
    pytree = torch.utils._pytree
    spec = pytree.tree_structure(TREES[0])
    same = pytree.tree_structure({"b": [0, (0, 0)], "a": 0})
    other = pytree.tree_structure({"a": 0, "b": [0, (0, 0)]})
    texts = [
        pytree.treespec_dumps(pytree.tree_structure(tree))
        for tree in (TREES[0], OrderedDict(a=1), deque([1]), defaultdict(list, a=1))
    ]
    read = [
        pytree.treespec_loads(text) == pytree.tree_structure(tree)
        for text, tree in zip(texts[:2], (TREES[0], OrderedDict(a=1)), strict=True)
    ]
    return [
        [spec == same, hash(spec) == hash(same), spec == other, spec != other],
        texts,
        read,
        pytree.treespec_pprint(spec),
        [repr(child) for child in spec.children()],
        spec.flatten_up_to({"a": [3], "b": ["x", ("y", "z")]}),
    ]


@as_torch
def test_errors_of_trees(torch):
    pytree = torch.utils._pytree
    spec = pytree.tree_structure(TREES[0])
    calls = [
        (
            lambda: pytree.tree_unflatten([1], spec),
            "`leaves` has length 1 but the spec refers to a",
        ),
        (lambda: pytree.tree_map(max, [1, 2], [3]), "Node arity mismatch; expected 2, but got 1"),
        (lambda: pytree.tree_map(max, [1], (3,)), "Node type mismatch; expected <class 'list'>"),
        (lambda: pytree.tree_map(max, {"a": 1}, {"b": 1}), "Node keys mismatch; missing key(s)"),
        (lambda: pytree.register_pytree_node(dict, 1, 2), "is already registered as pytree node"),
        (lambda: pytree.tree_map_only(3, len, []), "Argument must be a type, a tuple of types"),
    ]
    return [error(call, words=words) for call, words in calls]


class Pair:
    def __init__(self, one, two):
        self.one, self.two = one, two


def test_registered_nodes_are_nodes_of_jax_and_of_compiled_functions():
    pytree = jaxgrad.utils._pytree
    if Pair not in pytree.SUPPORTED_NODES:
        # the context is a list, which JAX alone could not hash
        pytree.register_pytree_node(
            Pair, lambda p: ([p.one, p.two], ["context"]), lambda items, _: Pair(*items)
        )
    assert pytree.tree_leaves([Pair(1, (2, 3))]) == [1, 2, 3]
    assert jax.tree.leaves(Pair(1, 2)) == [1, 2]
    double = jaxgrad.jit(lambda pair: Pair(pair.two * 2, pair.one))
    result = double(Pair(jaxgrad.ones(1), jaxgrad.ones(2)))
    assert (result.one.tolist(), result.two.tolist()) == ([2, 2], [1])
    summed = jaxgrad.vmap(lambda pair: pair.one + pair.two)(Pair(jaxgrad.ones(3), jaxgrad.ones(3)))
    assert summed.tolist() == [2, 2, 2]
    with pytest.raises(NotImplementedError, match="serialized_type_name"):
        pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2)))
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Pair(1, 2))


def test_results_of_several_tensors_are_nodes():
    result = jaxgrad.utils._pytree.tree_map(lambda x: x + 1, jaxgrad.tensor([1, 5]).max(0))
    assert (result.values.item(), result.indices.item()) == (6, 2)


# ---- classes that programs register


@dataclasses.dataclass
class Vector:
    x: object
    y: object = None
    name: str = "v"


@dataclasses.dataclass(frozen=True)
class Norm:
    name: str


def test_dataclasses():
    pytree = jaxgrad.utils._pytree
    with pytest.raises(ValueError, match=r"all dataclass fields, or others: \['y'\]"):
        pytree.register_dataclass(Vector, field_names=["x"], drop_field_names=["name"])
    with pytest.raises(ValueError, match="as it is not a dataclass"):
        pytree.register_dataclass(Point)
    pytree.register_dataclass(Vector, drop_field_names=["name"])
    # as PyTorch: a field that is None is no child
    leaves, spec = pytree.tree_flatten([Vector(1), Vector(2, 3)])
    assert leaves == [1, 2, 3] and spec.children_specs[0].context == [["x"], ["y"]]
    assert spec.unflatten("abc") == [Vector("a"), Vector("b", "c")]
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Vector(1, [2]))]
    assert paths == [".x", ".y[0]"]
    assert jaxgrad.vmap(lambda v: v.x + 1)(Vector(jaxgrad.arange(2))).tolist() == [1, 2]


def test_constants():
    pytree = jaxgrad.utils._pytree
    pytree.register_constant(Norm)
    leaves, spec = pytree.tree_flatten([Norm("l1"), 5])
    assert leaves == [5] and spec.unflatten([6]) == [Norm("l1"), 6]
    assert spec != pytree.tree_structure([Norm("l2"), 5]) and pytree.is_constant_class(Norm)
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(type("Plain", (), {}))


def test_sizes_and_texts():
    pytree = jaxgrad.utils._pytree
    spec = pytree.tree_structure(jaxgrad.Size([1, 2]))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert type(spec.unflatten("ab")) is tuple
    with pytest.raises(TypeError, match="instance of PyTreeSpec"):
        pytree.treespec_dumps(3)
    with pytest.raises(ValueError, match="Unknown protocol 99"):
        pytree.treespec_loads("[99, {}]")
