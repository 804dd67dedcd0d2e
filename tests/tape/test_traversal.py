"""The traversal of the graph of nodes, on graphs whose paths are known."""

import itertools
import random

import pytest

import jaxgrad as torch
from jaxgrad.tape.node import AccumulateGrad
from jaxgrad.tape.traversal import in_backward_order, nodes_from, search


def diamond():
    """The nodes of `sum(sin(y) + cos(y))` with `y = exp(x)`, by name."""
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    sine, cosine = y.sin(), y.cos()
    total = (sine + cosine).sum()
    tensors = {"exp": y, "sin": sine, "cos": cosine, "sum": total}
    return {name: tensor.grad_fn for name, tensor in tensors.items()}


def test_each_node_comes_once():
    nodes = list(nodes_from([diamond()["sum"]]))
    names = sorted(node.name() for node in nodes)
    assert names == sorted(
        ["SumBackward0", "AddBackward0", "SinBackward0", "CosBackward0", "ExpBackward0"]
        + ["AccumulateGrad"]
    )


def test_a_root_that_another_root_leads_to_comes_once():
    nodes = diamond()
    traversal = list(nodes_from([nodes["exp"], nodes["sin"], nodes["exp"]]))
    assert sorted(node.name() for node in traversal) == [
        "AccumulateGrad",
        "ExpBackward0",
        "SinBackward0",
    ]


def test_a_node_that_is_not_entered_hides_what_is_behind_it():
    nodes = diamond()
    traversal = set(nodes_from([nodes["sum"]], lambda node: node is not nodes["sin"]))
    assert nodes["sin"] not in traversal and nodes["exp"] in traversal  # by way of cos
    assert set(nodes_from([nodes["sin"]], lambda node: node is not nodes["exp"])) == {nodes["sin"]}


def test_no_node_comes_before_one_that_leads_to_it_in_backward_order():
    order = in_backward_order([diamond()["sum"]])
    positions = {node: position for position, node in enumerate(order)}
    edges = [(node, target) for node in order for target, _ in node.edges]
    assert len(edges) == 6 and all(positions[a] < positions[b] for a, b in edges)
    assert type(order[-1]) is AccumulateGrad


@pytest.mark.slow
def test_a_deep_graph():
    x = y = torch.ones((), requires_grad=True)
    for _ in range(20_000):
        y = -y
    assert sum(1 for _ in nodes_from([y.grad_fn])) == 20_001
    del x, y


@pytest.mark.parametrize("seed", range(20))
def test_search_finds_the_transitive_closure(seed):
    """The oracle is Warshall's algorithm."""
    generator, count = random.Random(seed), 12
    edges = {i: generator.sample(range(count), generator.randrange(3)) for i in range(count)}
    reached = {(i, j) for i in edges for j in edges[i]} | {(i, i) for i in edges}
    for middle, i, j in itertools.product(range(count), repeat=3):
        if (i, middle) in reached and (middle, j) in reached:
            reached.add((i, j))
    for start in edges:
        closure = list(search([start], edges.__getitem__))
        assert len(closure) == len(set(closure))
        assert set(closure) == {j for i, j in reached if i == start}
