"""The check for leaked graphs notices one."""

import gc

import leaks
import pytest

import jaxgrad


def leaf():
    return jaxgrad.tensor([1.0, 2.0], requires_grad=True)


def test_a_graph_that_is_dropped_is_not_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        x = leaf()
        (x * x).sum().backward()
        del x


def test_a_graph_that_is_kept_is_left(monkeypatch):
    with (
        pytest.raises(AssertionError, match=r"2 nodes are left.*MulBackward0"),
        leaks.no_graph_is_left(monkeypatch),
    ):
        kept = leaf() * 2
    del kept


def test_a_leaf_whose_edge_is_kept_is_left(monkeypatch):
    with (
        pytest.raises(AssertionError, match=r"1 nodes are left.*AccumulateGrad"),
        leaks.no_graph_is_left(monkeypatch),
    ):
        kept = jaxgrad.autograd.graph.get_gradient_edge(leaf())
    del kept


def tie(create_graph):
    x = leaf()
    (y,) = jaxgrad.autograd.grad((x**3).sum(), x, create_graph=create_graph)
    x.grad = y if create_graph else (x * x)


def test_a_cycle_is_left_without_create_graph_alone(monkeypatch):
    gc.disable()
    try:
        with leaks.no_graph_is_left(monkeypatch):
            tie(create_graph=True)
        with (
            pytest.raises(AssertionError, match="nodes are left"),
            leaks.no_graph_is_left(monkeypatch),
        ):
            tie(create_graph=False)
    finally:
        gc.enable()


def test_what_an_exception_holds_in_a_test_is_not_left(monkeypatch):
    def body():
        y = (leaf() * 2).sum()
        with pytest.raises(ZeroDivisionError) as raised:
            y.item() / 0
        assert raised.traceback

    with leaks.no_graph_is_left(monkeypatch):
        body()
