"""What depends on the platform of the process: with that of a GPU forced, results are the same."""

import jax
import numpy
import pytest

import jaxgrad
from jaxgrad import nn
from jaxgrad.core import deferred, device, host_kernel
from jaxgrad.frontend import threefry

CACHES = device.may_differ, host_kernel.has_one_cpu


@pytest.fixture
def on(monkeypatch):
    """Takes the branches of a platform, and calls a function."""

    def results(platform, function):
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: platform)
            forget()
            return function()

    def forget():
        for cached in CACHES:
            cached.cache_clear()
        jaxgrad.compiler.reset()
        jax.clear_caches()

    yield results
    forget()


def draws():
    """Of sizes that NumPy draws and that XLA draws, for each distribution."""
    jaxgrad.manual_seed(3)
    return [
        *(jaxgrad.rand(5), jaxgrad.randn(3, 2), jaxgrad.randperm(6), jaxgrad.randint(0, 9, (4,))),
        *(jaxgrad.bernoulli(jaxgrad.full((6,), 0.5)), jaxgrad.rand(threefry.PIECE + 3)),
    ]


def test_random_numbers(on, monkeypatch):
    monkeypatch.setattr(threefry, "BEFORE", 0)
    for one, other in zip(on("cpu", draws), on("gpu", draws), strict=True):
        numpy.testing.assert_array_equal(one.numpy(), other.numpy())


def losses():
    """Of steps of a network, uncompiled and compiled."""
    jaxgrad.manual_seed(3)
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.Flatten(), nn.Dropout(0.3), nn.Linear(16, 2))
    optimizer = jaxgrad.optim.Adam(model.parameters())
    x, y = jaxgrad.randn(6, 2, 6), jaxgrad.arange(6) % 2

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = jaxgrad.compile(step)
    return [call().item() for call in (step, step, step, compiled, compiled)]


@pytest.mark.slow
def test_steps(on, monkeypatch):
    """Stretches of calls become one program at once, with barriers on CPUs alone."""
    monkeypatch.setattr(deferred, "REPEATS", 1)
    on_cpu, on_gpu = on("cpu", losses), on("gpu", losses)
    assert on_gpu == pytest.approx(on_cpu, rel=1e-5)
    assert on_cpu[0] != on_cpu[1] != on_cpu[4]
