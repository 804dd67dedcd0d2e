"""Calls of compiled functions that are compared with the uncompiled function."""

import ctypes
import random
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from helpers import leaks

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn, optim
from jaxgrad.compiled import verify


class Config:
    pass


hidden = 2.0


# ---- what capture does not see


def unseen():
    return sys._getframe().f_globals["hidden"]


def by_name(x):
    return x * unseen()


number = ctypes.c_double(2.0)
address = ctypes.addressof(number)


def from_memory(x):
    return x * ctypes.c_double.from_address(address).value


def change_all(monkeypatch, value):
    monkeypatch.setitem(globals(), "hidden", value)
    number.value = value


@pytest.mark.slow
@pytest.mark.parametrize("function", [by_name, from_memory])
def test_a_stale_value_is_found(function, monkeypatch):
    change_all(monkeypatch, 2.0)
    x = torch.ones(3)
    compiled, verified = (torch.jit(function, verify=number) for number in (0, 1))
    assert compiled(x).tolist() == verified(x).tolist() == [2, 2, 2]
    change_all(monkeypatch, 3.0)
    # so that the test has something to find
    assert compiled(x).tolist() != function(x).tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError) as raised:
        verified(x)
    message = str(raised.value)
    assert f"{function.__name__}, compiled by jaxgrad.jit" in message
    assert "result: largest difference 1 at [0]: 2.0 compiled, 3.0 uncompiled" in message
    assert "shape [3]" in message


def test_both_runs_draw_the_same_numbers_and_the_generator_moves_once():
    random.seed(0)
    wanted = [random.random() for _ in range(3)]
    random.seed(0)
    verified = torch.jit(lambda x: {"scaled": x * random.random()}, verify=1)
    results = [verified(torch.ones(1))["scaled"].item() for _ in range(2)]
    assert [*results, random.random()] == pytest.approx(wanted)


def test_the_message_has_the_values_that_guards_know(monkeypatch):
    change_all(monkeypatch, 2.0)
    shift = 7
    verified = torch.jit(lambda x: x * unseen() + shift, verify=1)
    verified(torch.ones(1))
    change_all(monkeypatch, 3.0)
    with pytest.raises(RuntimeError, match="traced with shift = 7"):
        verified(torch.ones(1))


def stale_branch(do):
    """A compiled function that changes state, depending on what capture does not see."""

    def function(x):
        if unseen() > 2:
            do(x)
        return x + 1

    return torch.jit(function, verify=1)


class Inner:
    pass


class Pair(NamedTuple):
    first: object
    second: object


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda m, x: m.weight.data.add_(1), "m.weight: largest difference 1"),
        (lambda m, x: m.buffer.add_(2), "m.buffer: .*compiled.*uncompiled"),
        (lambda m, x: x.mul_(3), "x: "),
        (lambda m, x: (m.weight * 2).sum().backward(), "m.weight: has_grad False.*, True"),
        (lambda m, x: m.bias.requires_grad_(False), "m.bias: requires_grad True.*, False"),
        (
            lambda m, x: torch.rand(1),
            "the default generator._state.* compiled, .* uncompiled",
        ),
        (lambda m, x: setattr(m.inner, "n", 5), "m.inner.n: 4 compiled, 5 uncompiled"),
        (lambda m, x: m.inner.__dict__.pop("n"), "m.inner.n: 4 compiled, absent uncompiled"),
        (lambda m, x: m.log.append(1.5), r"m.log\[1\]: absent compiled, 1.5 uncompiled"),
        (lambda m, x: m.table.update(a=x * 1), r"m.table\['a'\]: 1 compiled, a tensor"),
        (lambda m, x: m.names.add("b"), r"m.names\['b'\]: absent compiled, 'b' uncompiled"),
        (lambda m, x: m.numbers.fill(7), "m.numbers: largest difference 7"),
        (lambda m, x: setattr(m.slotted, "n", 2), "m.slotted.n: 1 compiled, 2 uncompiled"),
        (lambda m, x: setattr(type(m), "kind", "new"), "kind: 'old' compiled, 'new' uncompiled"),
        (lambda m, x: m.eval(), "m.training: True compiled, False uncompiled"),
        (lambda m, x: torch.set_grad_enabled(False), "the grad mode: "),
        (lambda m, x: torch.set_default_dtype(torch.float64), "the default dtype: "),
    ],
)
def test_changes_of_state_are_compared_and_undone(do, message, monkeypatch):
    class Slotted:
        __slots__ = ("n",)

    class Model(nn.Module):
        kind = "old"

        def __init__(self):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
            self.register_buffer("buffer", torch.ones(2))
            self.inner, self.slotted = Inner(), Slotted()
            self.inner.n, self.slotted.n = 4, 1
            self.log, self.table, self.names = [0.5], {"a": 1}, {"a"}
            self.numbers = np.zeros(2)

    def state():
        tensors = [*m.parameters(), *m.buffers(), x]
        return (
            [tensor.tolist() for tensor in tensors],
            [tensor.requires_grad for tensor in tensors],
            [tensor._version for tensor in tensors],
            [tensor.grad for tensor in tensors],
            dict(vars(m.inner)),
            m.slotted.n,
            list(m.log),
            dict(m.table),
            set(m.names),
            m.numbers.tolist(),
            m.kind,
            m.training,
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.get_rng_state().tolist(),
        )

    m, x = Model(), torch.zeros(2)
    change_all(monkeypatch, 2.0)
    step = stale_branch(lambda x: do(m, x))
    step(x)
    change_all(monkeypatch, 3.0)
    before = state()
    with pytest.raises(RuntimeError, match=message):
        step(x)
    assert state() == before


def test_named_tuples_are_compared_by_their_elements():
    holder = Inner()
    holder.pair = Pair(0.5, torch.ones(3))

    def function(x):
        unseen = ctypes.c_double.from_address(address)
        unseen.value += growth
        holder.pair = Pair(0.5, x * unseen.value)

    growth, number.value = 0, 2.0
    step = torch.jit(function, verify=1)
    step(torch.ones(3))
    assert holder.pair.first == 0.5 and holder.pair.second.tolist() == [2, 2, 2]
    growth = 1
    with pytest.raises(RuntimeError, match=r"holder.pair\[1\]: largest difference 1"):
        step(torch.ones(3))


@pytest.mark.slow
def test_a_graph_that_grows_and_is_used_up_is_no_difference():
    weight, buffer = torch.tensor([1.0, 2.0], requires_grad=True), torch.zeros(2)

    def function(x):
        buffer.copy_((x * weight).sin())
        return (weight**2).sum()

    step = torch.jit(function, verify=1)
    for _ in range(3):
        step(torch.ones(2)).backward()
    assert weight.grad.tolist() == [6, 12]


def test_gradients_of_results_are_compared(monkeypatch):
    """The value of the result is right, and its gradient stale."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * unseen()

    change_all(monkeypatch, 2.0)
    weight = torch.ones(2, requires_grad=True)
    function = torch.jit(lambda: Scaled.apply(weight), verify=1)
    function()
    change_all(monkeypatch, 3.0)
    with pytest.raises(RuntimeError, match="gradient of the results by weight: largest diff"):
        function()


def test_an_exception_of_the_uncompiled_function_is_found(monkeypatch):
    def function(x):
        if unseen() > 2:
            raise ValueError("too large")
        return x

    change_all(monkeypatch, 2.0)
    verified = torch.jit(function, verify=1)
    verified(torch.ones(1))
    change_all(monkeypatch, 3.0)
    message = "raised: nothing compiled, ValueError uncompiled"
    with pytest.raises(RuntimeError, match=message) as raised:
        verified(torch.ones(1))
    assert isinstance(raised.value.__cause__, ValueError)


def test_an_exception_of_both_is_that_of_the_function():
    def function(x):
        weight.add_(1)
        raise ValueError("always")

    weight = torch.zeros(())
    with pytest.raises(ValueError, match="always"):
        torch.jit(function, verify=1)(torch.ones(1))
    assert weight.item() == 0


# ---- what is right passes, and does what it does unverified


def train(verify):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1)
    )
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2)

    @torch.jit(verify=verify)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    losses = [step(torch.rand(6, 3), torch.rand(6, 1)).item() for _ in range(5)]
    return losses, [tensor.tolist() for tensor in model.state_dict().values()], step.count


@pytest.mark.slow
def test_verified_steps_are_the_same_steps():
    assert train(1) == train(2) == train(0)


def test_what_a_function_and_a_set_hold_is_put_back(monkeypatch):
    class Config:
        calls = 0

    def make(name):
        monkeypatch.setitem(globals(), name, 0)
        kept, order, number = {Config()}, {"a": 1, "b": 2}, 0

        def step(x, seen=[], *, last={}):  # noqa: B006
            nonlocal number
            number += 1
            globals()[name] += 1
            seen.append(len(seen))
            (config,) = kept
            config.calls += 1
            last["x"] = step.count = config.calls
            order["a"] = order.pop("a")
            return x * sum(seen) * config.calls

        return step, lambda: [
            number,
            globals()[name],
            step.__defaults__,
            step.__kwdefaults__,
            step.count,
            [config.calls for config in kept],
            list(order.items()),
        ]

    (function, expected), (verified, state) = make("calls"), make("verified_calls")
    compiled = torch.jit(verified, verify=1)
    for _ in range(4):
        assert compiled(torch.ones(2)).tolist() == function(torch.ones(2)).tolist()
        assert state() == expected()


def test_views_writes_and_histories_are_put_back():
    base = torch.zeros(4)
    part, source = base[1:], torch.ones(2, requires_grad=True)
    outer = source * 3

    @torch.jit(verify=1)
    def step(x):
        part.add_(x)
        (outer * outer).sum().backward(retain_graph=True)
        return outer * x

    for _ in range(2):
        result = step(torch.tensor(2.0))
    assert base.tolist() == [0, 4, 4, 4] and source.grad.tolist() == [36, 36]
    result.sum().backward()
    assert source.grad.tolist() == [42, 42]


def test_hooks_of_the_uncompiled_run_are_removed():
    weight = torch.ones(2, requires_grad=True)

    @torch.jit(verify=1)
    def step():
        weight.grad = None
        weight.register_hook(lambda grad: grad * 2)
        weight.sum().backward()

    for _ in range(3):
        step()
        assert weight.grad.tolist() == [2, 2]
    weight.sum().backward()
    assert weight.grad.tolist() == [3, 3]


def test_rounding_is_no_difference():
    torch.manual_seed(0)
    x = torch.rand(64, 64)
    torch.jit(lambda x: ((x @ x).softmax(1) @ x).mean(), verify=1)(x)
    torch.jit(lambda x: x.sin().sum(), verify=1)(x.to(torch.bfloat16))


@pytest.mark.parametrize("read", [time.perf_counter, random.random, lambda: random.random()])
def test_numbers_that_each_call_reads_are_the_same_for_both_runs(read):
    function = torch.jit(lambda x: x * torch.tracing.number(read), verify=1)
    x = torch.ones(2, dtype=torch.float64)
    first, *others = (function(x)[0].item() for _ in range(4))
    assert first not in others and function.count == 1


def test_a_number_that_the_function_changes_before_it_reads_it_is_found():
    """A program reads its numbers before all else."""
    state = {"n": 0}

    def function(x):
        state["n"] += 1
        return x * torch.tracing.number(lambda: state["n"])

    verified = torch.jit(function, verify=1)
    with pytest.raises(RuntimeError, match=r"result: largest difference 1: 0\.0 compiled"):
        verified(torch.tensor(1.0))


# JAX warns of iterators in trees, and jaxgrad raises
@pytest.mark.filterwarnings("ignore:Python iterable:DeprecationWarning")
def test_what_is_refused_is_not_used_up():
    function = torch.jit(lambda xs: sum(xs), verify=1)
    iterator = iter([torch.ones(1)])
    with pytest.raises(TypeError, match="list_iterator"):
        function(iterator)
    assert len(list(iterator)) == 1


def test_a_result_that_is_refused_is_closed():
    async def doubled(x):
        return x * 2

    # a coroutine that is never awaited warns
    with pytest.raises(TypeError, match="the result is a coroutine"):
        torch.jit(lambda x: doubled(x), verify=1)(torch.ones(1))


def test_a_view_that_is_written_to():
    """Its gradient passes the node that the view had, or goes through it."""

    def gradient(wrapped):
        weight = torch.tensor([1.0, 2.0], requires_grad=True)
        view = (weight * 2)[:]
        step = wrapped(lambda: view[:1].mul_(3))
        step(), step()
        view.sum().backward()
        return weight.grad.tolist()

    assert gradient(torch.jit(verify=1)) == gradient(lambda function: function) == [18, 2]


def test_a_graph_that_the_function_uses_up():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    outer = weight.exp()

    @torch.jit(verify=1)
    def step():
        outer.mul_(2)
        outer.sum().backward()

    step()
    np.testing.assert_allclose(weight.grad.numpy(), 2 * np.exp([1, 2]), rtol=1e-6)
    with pytest.raises(RuntimeError, match="second time"):
        outer.sum().backward()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_error_of_the_comparison_changes_nothing(error, monkeypatch):
    weight = torch.zeros(2)
    step = torch.jit(lambda: weight.add_(1), verify=1)
    step()

    def fail(*_):
        raise error

    monkeypatch.setattr(verify.Outcome, "differences", fail)
    with pytest.raises(error):
        step()
    assert weight.tolist() == [1, 1]


def test_threads_wait_for_both_runs():
    total, totals = torch.zeros(()), []

    @torch.jit(verify=1)
    def step():
        total.add_(1)

    def work():
        for _ in range(5):
            step()
            totals.append(total.item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # a thread may read after others have added theirs
    assert total.item() == len(totals) == max(totals) == 20 and min(totals) >= 1


def test_a_verified_call_keeps_no_graph(monkeypatch):
    with leaks.no_graph_is_left(monkeypatch):
        weight = torch.ones(2, requires_grad=True)
        outer = weight * 3
        result = torch.jit(lambda x, y: x * y, verify=1)(outer, torch.ones(2))
        result.sum().backward()
        assert weight.grad.tolist() == [3, 3]
        del weight, outer, result


# ---- which calls are verified


def runs_of(verify, calls):
    """How often the function runs in Python, by call."""
    seen, runs = [], ctypes.c_long(0)  # in memory, which capture does not see
    place = ctypes.addressof(runs)

    def function(x):
        ctypes.c_long.from_address(place).value += 1
        return x * 2

    compiled = torch.jit(function, verify=verify)
    for _ in range(calls):
        runs.value = 0
        compiled(torch.ones(1))
        seen.append(runs.value)
    return seen


def test_every_nth_call_is_verified(monkeypatch):
    monkeypatch.delenv("JAXGRAD_JIT_VERIFY", raising=False)
    # the trace runs the function once, at the first call
    assert runs_of(None, 4) == runs_of(0, 4) == [1, 0, 0, 0]
    assert runs_of(1, 4) == [2, 1, 1, 1]
    assert runs_of(3, 5) == [2, 0, 0, 1, 0]
    monkeypatch.setenv("JAXGRAD_JIT_VERIFY", "2")
    assert runs_of(None, 4) == [2, 0, 1, 0]
    assert runs_of(0, 4) == [1, 0, 0, 0]


def test_functions_inside_run_uncompiled_too(monkeypatch):
    change_all(monkeypatch, 2.0)
    inner = torch.jit(by_name, verify=1)
    outer = torch.jit(lambda x: inner(x) + 1, verify=1)
    assert outer(torch.ones(1)).item() == 3 and inner.count == 0
    change_all(monkeypatch, 3.0)
    with pytest.raises(RuntimeError, match="result: largest difference 1"):
        outer(torch.ones(1))


@pytest.mark.parametrize("interval", [-1, 1.5, True, "1"])
def test_an_interval_is_a_number_of_calls(interval):
    with pytest.raises(ValueError, match=r"verify=.*number of calls"):
        torch.jit(abs, verify=interval)


def test_the_variable_is_a_number_of_calls(monkeypatch):
    monkeypatch.setenv("JAXGRAD_JIT_VERIFY", "often")
    with pytest.raises(ValueError, match="JAXGRAD_JIT_VERIFY='often'"):
        torch.jit(abs)


def test_state_beside_a_numpy_array_is_put_back():
    """The walk over the state must not go on into the copies of the array."""
    scale = np.array([1.0, 2.0])
    weight = torch.ones(2, requires_grad=True)
    adam = optim.Adam([weight], lr=0.5)

    def step(x):
        adam.zero_grad()
        (weight * x * scale).sum().backward()
        adam.step()
        return weight.detach()

    verified = torch.jit(step, verify=1)
    for number in range(3):
        verified(torch.ones(2))
        assert adam.state[weight]["step"].item() == number + 1
    # a step of Adam along a constant gradient is as long as the learning rate
    assert np.allclose(weight.tolist(), [-0.5, -0.5])
