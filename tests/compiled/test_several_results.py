"""Results of a compiled call that share nothing are differentiated apart, as those of a function
that is not compiled: a pass from one frees what it has read, and nothing else. The oracle is the
same function uncompiled, whose operators have oracles of their own, and closed forms.
"""

import gc
import weakref

import pytest

import jaxgrad as torch
from jaxgrad import func

SECOND_TIME = "backward through the graph a second time"


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def shared(x):
    y = x * x
    return (y * x).sum(), (y * 5 * x).sum(), (x * 3).sum(), (x**5).sum()


GRADIENTS = [lambda x: 3 * x**2, lambda x: 15 * x**2, lambda x: 3, lambda x: 5 * x**4]


@pytest.mark.parametrize("wrap", [lambda f: f, torch.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("order", [(0, 2, 3, 2), (3, 0), (2, 2, 1), (1, 3), (2, 3, 2, 0)])
def test_passes_from_one_result_after_another(wrap, order):
    x = leaf(2.0, 3.0)
    results = wrap(shared)(x)
    for number in order:
        x.grad = None
        results[number].backward()
        assert x.grad.tolist() == [GRADIENTS[number](2.0), GRADIENTS[number](3.0)]


@pytest.mark.parametrize("wrap", [lambda f: f, torch.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("order", [(0, 0), (0, 1), (1, 0), (3, 3), (2, 3, 0, 1)])
def test_second_pass_through_what_is_freed(wrap, order):
    x = leaf(2.0, 3.0)
    results = wrap(shared)(x)
    *before, last = order
    for number in before:
        results[number].backward()
    gradient = x.grad.tolist()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        results[last].backward()
    assert x.grad.tolist() == gradient


def test_passes_from_all_results_at_once():
    x = leaf(2.0, 3.0)
    torch.autograd.backward(torch.jit(shared)(x))
    assert x.grad.tolist() == [sum(slope(value) for slope in GRADIENTS) for value in (2.0, 3.0)]


def test_second_derivatives_of_one_result():
    x = leaf(2.0, 3.0)
    results = torch.jit(shared)(x)
    (first,) = torch.autograd.grad(results[3], x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [20 * 2.0**3, 20 * 3.0**3]
    (first,) = torch.autograd.grad(results[2], x, create_graph=True)
    assert first.tolist() == [3.0, 3.0]


def test_results_of_a_mapped_function():
    x = leaf(2.0, 3.0)
    cube, fifth = func.vmap(lambda x: (x * x * x, x**5))(x)
    cube.sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]
    fifth.sum().backward()
    assert x.grad.tolist() == [12.0 + 80, 27.0 + 405]


@pytest.mark.slow
def test_a_state_that_grows_beside_a_result_that_is_freed():
    """The result saves `v`, the state saves nothing: its graph lasts, though that of the result is
    freed at each call.
    """
    weight, v = leaf(2.0), leaf(3.0)

    def program(buffer, step):
        buffers, gradients = [], []
        for _ in range(4):
            x = leaf(1.0, 5.0)
            step(x * 1, buffer).backward()
            buffers.append(buffer.tolist())
            gradients.append((v.grad.item(), weight.grad.item()))
        return buffers, gradients

    def function(x, buffer):
        (x * 2.0 * weight).sum().backward()
        result = v * v
        buffer[0] = x.select(0, 1)
        return result.sum()

    answers = []
    for step in (function, torch.jit(function)):
        weight.grad = v.grad = None
        answers.append(program(torch.zeros(2, dtype=torch.float64), step))
    assert answers[0] == answers[1]
    assert answers[0][1][-1] == (24.0, 4 * 12.0)


def test_a_graph_without_residuals_keeps_no_argument():
    """A result whose gradient reads nothing keeps none of the arrays that other results read."""

    @torch.jit
    def function(x, y):
        return (x * y).sum(), x + 1

    x, y = leaf(1.0), torch.ones(1, dtype=torch.float64)
    array = weakref.ref(torch.to_jax(y))
    product, shifted = function(x, y)
    del product, y
    gc.collect()
    assert array() is None
    shifted.sum().backward()
    assert x.grad.item() == 1


def test_a_function_that_results_share_gets_their_sum():
    """A nonlinear backward, which saves nothing: the clamp of the sum is not the sum of clamps."""

    class Clamped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad.clamp(-1.5, 1.5)

    def function(x):
        y = Clamped.apply(x)
        return (y * 4).sum(), y.sum()

    gradients = []
    for wrap in (lambda f: f, torch.jit):
        x = leaf(1.0)
        first, second = wrap(function)(x)
        torch.autograd.backward([first, second], retain_graph=True)
        gradients.append(x.grad.item())
        first.backward(retain_graph=True)
        second.backward()
        gradients.append(x.grad.item())
    assert gradients == [1.5, 4, 1.5, 4]


def test_hooks_run_in_the_pass_of_their_result():
    calls = []

    def function(x):
        y = x * 2
        y.register_hook(lambda gradient: calls.append(1) or gradient * 10)
        return y.sum(), (x * x).sum()

    x = leaf(1.0)
    hooked, plain = torch.jit(function)(x)
    calls.clear()
    plain.backward()
    assert x.grad.item() == 2
    hooked.backward()
    hooked.backward()
    assert x.grad.item() == 2 + 20 + 20
