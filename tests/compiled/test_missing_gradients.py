"""A pass from one result of a compiled function leaves out what only the others depend on, as
PyTorch does: a zero in place of their gradients would give NaN, or run their hooks."""

import jax
import jax.numpy as jnp
import numpy
import pytest

import jaxgrad

X = numpy.array([0.0, 4.0])


def leaf(values=X):
    return jaxgrad.tensor(values, requires_grad=True)


def infinite(x):
    return (x * x * 3).sum(), x.sqrt().sum()


def in_a_norm(x):
    return (x * x * 3).sum(), jaxgrad.linalg.vector_norm(x[:1] * 1.0)


def by_cross_entropy(x):
    return (x * x * 3).sum(), jaxgrad.nn.functional.cross_entropy(x.sqrt(), x.sqrt().detach())


@pytest.mark.slow
@pytest.mark.parametrize("function", [infinite, in_a_norm, by_cross_entropy])
def test_an_infinite_derivative_of_another_result(function):
    x, compiled = leaf(), jaxgrad.jit(function)
    for _ in range(2):
        (gradient,) = jaxgrad.autograd.grad(compiled(x)[0], x)
        numpy.testing.assert_array_equal(gradient, 6 * X)


def test_second_derivative_beside_an_infinite_one():
    x = leaf()
    first, _ = jaxgrad.jit(infinite)(x)
    (slope,) = jaxgrad.autograd.grad(first, x, create_graph=True)
    slope.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_mapped_over_examples():
    x = leaf(numpy.stack([X, X + 1]))
    first, _ = jaxgrad.func.vmap(infinite)(x)
    first.sum().backward()
    numpy.testing.assert_array_equal(x.grad, 6 * numpy.stack([X, X + 1]))


@pytest.mark.slow
def test_every_subset_of_three_results():
    """Against JAX's derivative of the results that are used."""

    def plain(x):
        return jnp.sum(x**3), jnp.sum(jnp.sin(x)), jnp.sum(x) ** 2

    def traced(x):
        return (x**3).sum(), x.sin().sum(), x.sum() ** 2

    compiled = jaxgrad.jit(traced)
    for chosen in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)):
        x = leaf()
        results = compiled(x)
        jaxgrad.autograd.backward([results[i] for i in chosen])
        with jax.enable_x64(True):
            expected = jax.grad(lambda x, c=chosen: sum(plain(x)[i] for i in c))(jnp.array(X))
        numpy.testing.assert_allclose(x.grad, expected, 1e-14)


def test_hooks_of_another_result_do_not_run():
    def function(x):
        doubled = x * 2
        doubled.register_hook(lambda gradient: gradient + 1)
        return (x * x * 3).sum(), doubled.sum()

    x = leaf()
    first, second = jaxgrad.jit(function)(x)
    first.backward(retain_graph=True)
    numpy.testing.assert_array_equal(x.grad, 6 * X)
    x.grad = None
    second.backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_function_that_clips_gradients_runs_for_those_that_are_given():
    class Clipped(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, gradient):
            return gradient.clamp(-1, 1) + 0.5

    def function(x):
        return Clipped.apply(x * 3).sum(), (Clipped.apply(x * 5) * x.sqrt()).sum()

    x = leaf()
    first, _ = jaxgrad.jit(function)(x)
    first.backward()
    assert x.grad.tolist() == [4.5, 4.5]


class Tripled(jaxgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


@pytest.mark.parametrize("jit", [jaxgrad.jit, lambda step: step], ids=["jit", "eager"])
@pytest.mark.parametrize(
    ("through", "factor"), [(lambda x: x, 1), (lambda x: x * 1.0, 1), (Tripled.apply, 3)]
)
def test_zeros_arrive_where_they_do_uncompiled(through, factor, jit):
    """A buffer that is overwritten still leads to what it kept before, as in PyTorch: a pass gives
    that zeros, and a second pass raises.
    """
    buffer, leaves = jaxgrad.zeros(2), [leaf() for _ in range(3)]

    @jit
    def step(x):
        buffer.copy_(x * x)
        return (through(buffer.flip(0)) * 2.0).sum()

    step(leaves[0])
    step(leaves[1]).backward()
    slope = [0.0, 16.0 * factor]
    assert [leaves[0].grad.tolist(), leaves[1].grad.tolist()] == [[0.0, 0.0], slope]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        step(leaves[2]).backward()
