"""The first calls of compiled functions, which NumPy makes (compiled/host_calls.py)."""

import jax
import numpy as np
import pytest
from helpers import checks
from helpers.modes import eager

import jaxgrad as torch
from jaxgrad.compiled import host_calls
from jaxgrad.core import executor


def training(seed=0):
    """A compiled step with momentum, dropout, buffers and a list in Python; and its state."""
    torch.manual_seed(seed)
    layers = torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5)
    model = torch.nn.Sequential(*layers, torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    calls = []

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        calls.append(1)
        return loss.detach()

    def state():
        momenta = [kept["momentum_buffer"] for kept in optimizer.state.values()]
        tensors = [*model.state_dict().values(), *momenta, *[p.grad for p in model.parameters()]]
        return [*[tensor.numpy() for tensor in tensors], np.array(calls)]

    return step, state, optimizer


def batches(count):
    return np.random.default_rng(0).standard_normal((count, 16, 3)).astype(np.float32)


def host_of(function):
    return function.traces[0].host  # of the program that was used last


def let_xla_take_over(function, start, end):
    """Let XLA compile the program of a function after `start` calls, and run it after `end`."""
    host = host_of(function)
    host.start, host.end = start, end


def test_a_training_goes_on_as_by_xla_when_it_takes_over():
    results = {}
    for mode in ("auto", "compiled"):
        with eager("deferred,compiled" if mode == "compiled" else "deferred"):
            step, state, optimizer = training()
            losses = []
            for number, batch in enumerate(batches(12)):
                losses.append(step(torch.from_numpy(batch)).item())
                if mode == "auto" and number == 0:
                    let_xla_take_over(step, 3, 5)
                if mode == "auto":
                    assert (host_of(step) is None) == (number >= 5)
                optimizer.param_groups[0]["lr"] *= 0.9
            results[mode] = [np.array(losses), *state()]
            assert step.count == 1
    for ours, expected in zip(*results.values(), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=2e-4, atol=1e-6)
        checks.count("host kernels")


def test_the_first_calls_compile_nothing(compilations):
    weight = torch.tensor([1.0, 2.0], requires_grad=True)

    @torch.jit
    def step(x):
        loss = (weight.sin() * x).sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad)
        weight.grad = None
        return loss.detach()

    expected = np.array([1.0, 2.0])
    for _ in range(3):
        x = np.array([3.0, 5.0], np.float32)
        assert step(torch.from_numpy(x)).item() == pytest.approx((np.sin(expected) * x).sum())
        expected = expected - np.cos(expected) * x
        np.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-5)
    assert compilations == [] and host_of(step).calls == 3


def test_arrays_that_the_user_holds_stay():
    held = torch.ones(3)
    array, view = held._array, held.detach()
    add = torch.jit(lambda: held.add_(1))
    add()
    first = held.numpy()
    add()
    assert (array.tolist(), first.tolist()) == ([1] * 3, [2] * 3)
    assert held.tolist() == view.tolist() == [3] * 3


def test_xla_makes_calls_that_are_long_or_watched():
    big = torch.jit(lambda x: x @ x)
    big(torch.ones(512, 512))  # a call takes as long as a hundredth of a compilation
    assert host_of(big) is None
    small = torch.jit(lambda x: x * 2)
    small(torch.ones(2))
    assert host_of(small).calls == 1
    with torch.profiler.profile() as profile:
        assert small(torch.ones(2)).tolist() == [2, 2]
    assert host_of(small) is None
    assert any("jaxgrad.jit" in event.key for event in profile.key_averages())


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: jax.numpy.sin(x._array), id="an array of JAX"),
        pytest.param(lambda x: jax.debug.print("{}", x._array[0]) or x * 1, id="an effect"),
    ],
)
def test_xla_makes_calls_that_give_or_do_more(function):
    compiled = torch.jit(function)
    np.testing.assert_allclose(np.asarray(compiled(torch.zeros(2))), [0, 0])
    assert host_of(compiled) is None


def test_donated_arguments_are_deleted():
    double = torch.jit(lambda x: x * 2, donate=0)
    x = torch.ones(3)
    assert double(x).tolist() == [2] * 3
    with pytest.raises(RuntimeError, match="deleted"):
        x.tolist()


def test_the_model_of_cost_decides(monkeypatch):
    chain = torch.jit(lambda x: x.sin().cos().exp().tanh())
    chain(torch.ones(10_000))
    monkeypatch.setattr(host_calls, "FEWEST", 1e6)
    other = torch.jit(lambda x: x.sin().cos().exp().tanh())
    other(torch.ones(10_000))
    assert host_of(chain).end > host_of(chain).start > 100 and host_of(other) is None
    monkeypatch.setattr(executor, "chosen", "host")
    always = torch.jit(lambda x: x.sin().cos().exp().tanh())
    for _ in range(3):
        result = always(torch.ones(1000))
        host_of(always).end = 0
    np.testing.assert_allclose(result.numpy(), np.tanh(np.exp(np.cos(np.sin(1.0)))), rtol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_result_is_differentiated_from_outside(compilations, kind):
    values = np.array([0.5, 1.0, 2.0], kind)
    function = torch.jit(lambda x: (x.sin() * x).sum())
    for _ in range(2):
        x = torch.from_numpy(values.copy()).requires_grad_()
        (gradient,) = torch.autograd.grad(function(x), x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), x)
        sin, cos = np.sin(values), np.cos(values)
        np.testing.assert_allclose(gradient.detach().numpy(), sin + values * cos, rtol=1e-5)
        np.testing.assert_allclose(second.numpy(), 2 * cos - values * sin, rtol=1e-5)
    assert compilations == [] and host_of(function).calls == 2


def test_the_graph_of_a_call_of_the_host_outlives_the_host():
    weight = torch.tensor([1.0, 3.0], requires_grad=True)
    function = torch.jit(lambda x: (weight * x).square().sum())
    x = torch.tensor([2.0, 5.0])
    before = function(x)
    let_xla_take_over(function, 0, 1)
    after = function(x)
    assert host_of(function) is None
    for loss in (before, after):
        weight.grad = None
        loss.backward()
        np.testing.assert_allclose(weight.grad.numpy(), 2 * np.array([4.0, 75.0]), rtol=1e-6)
