"""Checkpointing: how much memory it takes, and what XLA compiles it to."""

import functools
import gc

import jax
import numpy as np
import pytest
from helpers.as_torch import leaf
from helpers.modes import eager

import jaxgrad
from jaxgrad.utils import checkpoint as CP

recomputed = functools.partial(CP.checkpoint, use_reentrant=False)


def vector(torch, *values):
    return leaf(torch, *(values or (0.5, 1.0)), dtype=torch.float64)


def close(results, wanted, tolerance=1e-14):
    assert len(results) == len(wanted)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=tolerance, atol=tolerance)


# memory


@pytest.fixture(autouse=True)
def by_xla():
    """JAX knows which of its arrays are alive, and compiled functions round as eager kernels do."""
    with eager("compiled"):
        yield


def live() -> int:
    jaxgrad.synchronize()
    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


def chain(count, size, rows):
    rng = np.random.default_rng(0)
    weights = [
        jaxgrad.tensor(rng.normal(size=(size, size)).astype("float32") / 8, requires_grad=True)
        for _ in range(count)
    ]
    layers = [functools.partial(lambda w, x: jaxgrad.tanh(x @ w), w) for w in weights]
    x = jaxgrad.tensor(rng.normal(size=(rows, size)).astype("float32"))
    # there is an array of a new tensor once it is read, and `live` counts arrays
    assert all(tensor._array.nbytes for tensor in (*weights, x))
    return weights, layers, x


def in_order(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def segments(layers, x, size):
    for start in range(0, len(layers), size):
        x = recomputed(functools.partial(in_order, layers[start : start + size]), x)
    return x


@pytest.mark.slow
def test_memory_of_a_chain_falls_as_the_square_root():
    _, layers, x = chain(100, 8, 64)
    unit, sizes = x._array.nbytes, []
    for run in (in_order, functools.partial(segments, size=10)):
        before = live()
        loss = run(layers, x).square().sum()
        sizes.append((live() - before) / unit)
        loss.backward()
        for layer in layers:
            layer.args[0].grad = None
        assert live() - before < unit  # although the loss is still alive
        del loss
    assert sizes[0] > 99
    assert sizes[1] < 13


def compiled(run, weights, x):
    @jaxgrad.jit
    def step(x):
        for w in weights:
            w.grad = None
        loss = run(x).square().sum()
        loss.backward()
        return loss.detach(), [w.grad for w in weights]

    return step


@pytest.mark.slow
def test_memory_of_a_compiled_chain_falls_as_the_square_root():
    weights, layers, x = chain(100, 16, 128)
    unit, sizes, results = x._array.nbytes, [], []
    ways = [
        functools.partial(in_order, layers),
        functools.partial(segments, layers, size=10),
        lambda x: CP.checkpoint_sequential(layers, 10, x, use_reentrant=False),
        lambda x: CP.checkpoint_sequential(
            layers, 10, x.detach().requires_grad_(), use_reentrant=True
        ),
    ]
    for way in ways:
        step = compiled(way, weights, x)
        memory = step.lower(x).compile().memory_analysis()
        sizes.append(memory.temp_size_in_bytes / unit)
        loss, gradients = step(x)
        results.append([loss, *gradients])
    assert sizes[0] > 99
    assert max(sizes[1:]) < 25
    for other in results[1:]:
        close(other, results[0], 1e-6)


# compiled


@pytest.mark.slow
def test_compiled_checkpoints_equal_eager_ones():
    x, w = vector(jaxgrad), vector(jaxgrad, 0.3, 0.7)

    def inner(x):
        return (x.cos() * w * jaxgrad.rand(2)).exp()

    def step(x):
        y = recomputed(lambda x: recomputed(inner, x.sin()).sin() * x, x).sum()
        first = jaxgrad.autograd.grad(y, [x, w], create_graph=True)
        second = jaxgrad.autograd.grad(first[0].sum(), [x, w])
        return [y.detach(), *[g.detach() for g in first], *second]

    jaxgrad.manual_seed(3)
    wanted = step(x)
    jaxgrad.manual_seed(3)
    close(jaxgrad.jit(step)(x), wanted)


def test_compiled_checkpoints_differentiated_from_outside():
    w = vector(jaxgrad, 0.3, 0.7)
    compiled = jaxgrad.jit(lambda x: recomputed(lambda x: (x * w).sin().exp(), x))
    plain = lambda x: (x * w).sin().exp()  # noqa: E731
    derivatives = []
    for f in (plain, compiled):
        x = vector(jaxgrad)
        first = jaxgrad.autograd.grad(f(x).sum(), [x, w], create_graph=True)
        second = jaxgrad.autograd.grad(first[0].sum(), [x, w])
        derivatives.append([derivative.detach() for derivative in (*first, *second)])
    close(*derivatives)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "context_fn": functools.partial(
                CP.create_selective_checkpoint_contexts, [jaxgrad.matmul]
            )
        },
    ],
    ids=["all", "selected"],
)
def test_compiled_checkpoints_compute_again_what_is_not_kept(options):
    w = jaxgrad.tensor(np.random.default_rng(0).normal(size=(16, 16)), requires_grad=True)

    def f(x):
        return ((x @ w).sin() @ w).exp().cos()

    @jaxgrad.jit
    def step(x):
        y = recomputed(f, x, **options)
        return y.detach(), jaxgrad.autograd.grad(y.sum(), [x, w])

    x = w.detach().requires_grad_()
    flops = step.lower(x).compile().cost_analysis()["flops"] / (2 * 16**3)
    assert round(flops) == (6 if options else 8)
    close(step(x)[1], jaxgrad.autograd.grad(f(x).sum(), [x, w]), 1e-12)


def test_checkpoints_compiled_inside():
    # a compiled function keeps its residuals and computes them once
    w, gradients = vector(jaxgrad, 0.3, 0.7), []
    block = jaxgrad.jit(lambda x: (x * w).sin().exp())
    for wrapped in (lambda f, x: f(x), recomputed):
        for _ in range(4):
            x = vector(jaxgrad)
            wrapped(lambda x: block(x).cos(), x).sum().backward()
        gradients.append((x.grad, w.grad))
        w.grad = None
    close(*gradients)
    assert len(block.traces) == 3


def test_writes_before_a_compiled_pass():
    w, x = vector(jaxgrad, 0.3, 0.7), vector(jaxgrad)

    def step(wrapped, x):
        y = wrapped(lambda x: (x * w).sin(), x).sum()
        with jaxgrad.no_grad():
            w.mul_(2)
        y.backward()
        gradients = x.grad, w.grad
        x.grad = w.grad = None
        return gradients

    wanted = step(lambda f, x: f(x), x)
    with jaxgrad.no_grad():
        w.mul_(0.5)
    close(jaxgrad.jit(functools.partial(step, recomputed))(x), wanted)
    assert w.tolist() == [0.6, 1.4]
