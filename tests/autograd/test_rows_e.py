"""Rows of in-place operators that stand in no other file: views of Functions, `functionalize`."""

import jax
import pytest
from as_torch import as_torch, error, leaf

import jaxgrad

WORDS = "is a view and is being modified inplace. This view was created inside a custom Function"


def function(torch, make):
    class Viewing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return make(x)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Viewing


@as_torch
def test_a_view_of_a_function_in_place_E14(torch):
    found = []
    for make in (lambda x: x.view(3), lambda x: x, lambda x: x.view_as(x)):
        x = leaf(torch, 1.0, 2.0, 3.0) * 1
        y = function(torch, make).apply(x)
        found += [y._is_view(), error(y.mul_, 3.0, words=WORDS), error(y[:1].add_, 1, words=WORDS)]
    return found


@as_torch
def test_which_views_of_a_function_may_be_written_E14(torch):
    x = leaf(torch, 1.0, 2.0, 3.0)
    y = function(torch, lambda x: x * 1).apply(x)
    y.mul_(3)
    z = function(torch, lambda x: x.view(3)).apply(x * 1)
    with torch.no_grad():
        z.mul_(3)
    y.sum().backward()
    return y, z, x.grad


def written(x):
    flat = x.view(-1)
    flat.add_(1)
    return x * 2


@as_torch
def test_functionalize_returns_the_same_results_E18(torch):
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


def test_functionalize_has_nothing_to_remove_E18():
    """What JAX sees has no writes in it, with `functionalize` or without."""

    def program(array):
        x = jaxgrad.tensor(array) * 1
        x[0] = 5.0
        x.mul_(2)
        return x._array

    text = str(jax.make_jaxpr(program)(jax.numpy.ones(3)))
    assert "Ref" not in text and "swap" not in text
    assert program(jax.numpy.ones(3)).tolist() == [10, 2, 2]


def test_functionalize_takes_functions_with_names_E18():
    assert jaxgrad.func.functionalize(lambda x, k=2: x * k)(jaxgrad.ones(1), k=3).tolist() == [3]
    with pytest.raises(TypeError):
        jaxgrad.func.functionalize(lambda x: x)()
