"""func.functionalize returns the function's results: a write records a new value anyway."""

import jax
import pytest
from helpers import leaks
from helpers.as_torch import as_torch, error, leaf

import jaxgrad


@pytest.fixture(autouse=True)
def no_graph_is_left(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        yield


def written(x):
    flat = x.view(-1)
    flat.add_(1)
    return x * 2


@pytest.mark.row("E18")
@as_torch
def test_functionalize_returns_the_same_results(torch):
    x, f = torch.ones(2), torch.func.functionalize
    first, second = f(written)(x), f(written, remove="mutations_and_views")(x)
    words = "functionalize(f, remove='mutations'): received invalid argument for remove=x"
    y = leaf(torch, 1.0, 2.0)
    cubed = torch.func.grad(f(lambda x: (x * 1).mul_(x).mul_(x).sum()))(y.detach())
    return (
        first,
        second,
        x,
        cubed,
        f(written).__name__,
        error(lambda: f(written, remove="x"), words=words),
    )


@pytest.mark.row("E18")
def test_functionalize_has_nothing_to_remove():
    """JAX's program has no writes, with `functionalize` or without."""

    def program(array):
        x = jaxgrad.tensor(array) * 1
        x[0] = 5.0
        x.mul_(2)
        return x._array

    text = str(jax.make_jaxpr(program)(jax.numpy.ones(3)))
    assert "Ref" not in text and "swap" not in text
    assert program(jax.numpy.ones(3)).tolist() == [10, 2, 2]


@pytest.mark.row("E18")
def test_functionalize_takes_functions_with_names():
    assert jaxgrad.func.functionalize(lambda x, k=2: x * k)(jaxgrad.ones(1), k=3).tolist() == [3]
    with pytest.raises(TypeError):
        jaxgrad.func.functionalize(lambda x: x)()
