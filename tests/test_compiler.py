"""The limits of the caches: how much compiled code lives, and that results do not change."""

import functools
import gc
import math
import sys
import threading
import types
import weakref

import jax
import numpy as np
import pytest
from jax.extend.backend import get_backend
from jax.extend.core import ClosedJaxpr

import jaxgrad as torch
from jaxgrad.capture import guards
from jaxgrad.core import bounded_cache, executor

pytestmark = pytest.mark.usefixtures("nothing_compiled")


@pytest.fixture(autouse=True)
def usual_limits():
    usual = dict(bounded_cache.LIMITS)
    torch.compiler.reset()
    yield
    torch.compiler.set_cache_limits(**usual)


def executables() -> int:
    """How many executables JAX keeps."""
    gc.collect()
    return len(get_backend().live_executables())


def sine(size):
    """A forward and a backward pass of one size: 6 kernels and a sum of gradients."""
    x = torch.full((size,), 0.5, requires_grad=True)
    y = (x * x.sin()).sum()
    y.backward()
    assert np.allclose(x.grad.tolist(), [math.sin(0.5) + 0.5 * math.cos(0.5)] * size, atol=1e-6)
    return y.grad_fn.reverse.program


@pytest.mark.slow
def test_kernels_of_new_shapes_replace_those_of_old_ones():
    # a program that only the host has run counts half
    limit = 16 if executor.chosen == "compiled" else 8
    torch.compiler.set_cache_limits(kernels=limit)
    sine(2)
    before = executables()
    programs = [weakref.ref(sine(size)) for size in range(3, 11)]
    assert executables() <= before + limit
    alive = [program() is not None for program in programs]
    assert alive[-1] and sum(alive) <= 3 and alive == sorted(alive)


MEGABYTES = 10**6


@pytest.mark.slow
def test_a_limit_in_bytes_holds_for_kernels_and_programs_together():
    torch.compiler.set_cache_limits(bytes=30 * MEGABYTES)  # 21 executables
    before = executables()
    step = torch.jit(lambda x: x.sin() * 2)
    for size in range(3, 23):
        sine(size)
        assert step(torch.zeros(size)).tolist() == [0.0] * size
        assert executables() <= before + 21
    assert 1 <= len(step.traces) < 20


@pytest.mark.slow
def test_programs_of_several_functions_share_the_limit_in_bytes():
    torch.compiler.set_cache_limits(bytes=15 * MEGABYTES)  # 10 executables
    before = executables()
    steps = [torch.jit(lambda x, k=k: x * k) for k in range(20)]
    x = torch.ones(2)
    for k, step in enumerate(steps):
        assert step(x).tolist() == [k, k]
    alive = [bool(step.traces) for step in steps]
    assert executables() <= before + 11 and alive[-1] and alive == sorted(alive)
    assert steps[0](x).tolist() == [0, 0] and steps[0].count == 2


@pytest.mark.slow
def test_a_large_program_counts_more():
    x = torch.ones(2)

    def count_of(length):
        torch.compiler.reset()
        step = torch.jit(lambda x: functools.reduce(lambda y, _: y.sin() + x, range(length), x))
        step(x)
        (program,) = step.traces
        return program.weight()

    assert count_of(4).number == count_of(400).number == 1
    assert count_of(400).bytes > 3 * count_of(4).bytes


@pytest.mark.slow
def test_what_jax_keeps_for_its_own_functions_goes():
    def jaxprs():
        torch.synchronize()  # what is noted keeps its programs
        gc.collect()
        return sum(type(entry) is ClosedJaxpr for entry in gc.get_objects())

    # of operators: x.sigmoid() is traced through functions that are jitted in JAX
    torch.compiler.set_cache_limits(bytes=15 * MEGABYTES)
    for size in range(3, 20):
        torch.zeros(size).sigmoid().logsumexp(0)
    counts = [jaxprs()]
    for size in range(20, 80):
        torch.zeros(size).sigmoid().logsumexp(0)
    counts.append(jaxprs())
    assert counts[1] <= counts[0] + 120


@pytest.mark.slow
@pytest.mark.parametrize("limit", [64, math.inf])
def test_below_the_limit_everything_stays(limit):
    torch.compiler.set_cache_limits(kernels=limit)
    kernels = [sine(size).kernel for size in (3, 4)]
    gc.collect()
    assert [sine(size).kernel for size in (3, 4)] == kernels


@pytest.mark.slow
def test_what_is_in_use_stays():
    torch.compiler.set_cache_limits(kernels=32)
    kernel = sine(2).kernel
    for size in range(3, 13):
        sine(size)
        assert sine(2).kernel is kernel


@pytest.mark.slow
def test_views_and_writes_of_new_shapes():
    torch.compiler.set_cache_limits(kernels=16)
    before = executables()
    for size in range(3, 13):
        base = torch.zeros(size)
        base[1:].add_(1).t().mul_(2)
        assert base.tolist() == [0.0] + [2.0] * (size - 1)
    assert executables() <= before + 16


@pytest.mark.slow
def test_abstract_values_go_with_their_tensors():
    kept = torch.zeros(3, 5)
    gone = weakref.ref(torch.zeros(5, 3, 1, 7, 1, 3)._aval)  # a shape that no other test has
    torch.compiler.reset()
    assert gone() is None and torch.ones(3, 5)._aval is kept._aval


@pytest.mark.slow
def test_a_graph_keeps_what_it_needs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    torch.compiler.reset()
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [3.0, 12.0] and second.tolist() == [6.0, 12.0]


def test_a_view_is_the_same_view_after_a_reset():
    base = torch.zeros(4)
    view = base[1:3]
    torch.compiler.reset()
    base[1:3].add_(1)
    view.add_(1)
    assert base[1:3]._alias.place.call is view._alias.place.call
    assert base.tolist() == [0.0, 2.0, 2.0, 0.0]


def train(*, resets: bool):
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        if resets:
            torch.compiler.reset()
    return w.tolist()


@pytest.mark.slow
def test_training_goes_on_after_a_reset():
    assert train(resets=True) == train(resets=False)


def scaled(x, mode, rate):
    return x * rate if mode.endswith("0") else x + rate


@pytest.mark.slow
def test_programs_of_new_arguments_replace_those_of_old_ones():
    torch.compiler.set_cache_limits(programs=8)
    step, x = torch.jit(scaled), torch.tensor([1.0, 2.0])
    programs = []
    for number in range(12):
        mode = f"mode {number}"
        assert step(x, mode, 2.0).tolist() == scaled(x, mode, 2.0).tolist()
        programs.append(weakref.ref(step.traces[0]))
    gc.collect()
    alive = [program() is not None for program in programs]
    assert alive[-1] and sum(alive) <= 8 and alive == sorted(alive)
    assert len(step.traces) == sum(alive) and step.count == 12
    # an evicted one is traced again
    assert step(x, "mode 0", 2.0).tolist() == [2.0, 4.0] and step.count == 13


@pytest.mark.slow
def test_programs_in_use_and_varying_numbers_stay():
    torch.compiler.set_cache_limits(programs=8)
    step, x = torch.jit(scaled), torch.tensor([1.0, 2.0])
    step(x, "hot", 2.0)
    step(x, "hot", 3.0)
    for number in range(12):
        step(x, f"mode {number}", 2.0)
        step(x, "hot", float(number))
    assert step.count == 14


@pytest.mark.slow
def test_a_program_that_is_used_outlives_programs_of_other_states():
    class Config:
        rate = 1.0

    config, x = Config(), torch.tensor([1.0, 2.0])
    step = torch.jit(lambda x: x * config.rate)
    for number in range(1, 3 * guards.MOST_KEPT):
        config.rate = float(number)
        assert step(x).tolist() == [number, 2 * number]
        config.rate = 0.5  # the same one each time
        assert step(x).tolist() == [0.5, 1.0]
        assert step.count == number + 1
    assert len(step.traces) == guards.MOST_KEPT


@pytest.mark.slow
def test_shapes_that_are_traced_leave_nothing():
    torch.compiler.set_cache_limits(kernels=1, programs=4)
    step = torch.jit(lambda x: x.sin())
    for size in range(3, 15):
        step(torch.ones(size))
    assert len(torch.sin.operator.plans.all_values()) <= 6 and len(step.traces) <= 4


def test_reset_in_a_program_with_a_proxy_of_what_is_gone():
    proxy = weakref.proxy(lambda: None)
    torch.compiler.reset()
    assert type(proxy) is weakref.CallableProxyType


def test_reset_forgets_compiled_functions():
    step = torch.jit(lambda x: x * 3)
    assert step(torch.ones(2)).tolist() == [3.0, 3.0]
    assert len(step.traces) == 1
    torch.compiler.reset()
    assert step.traces == []
    assert step(torch.ones(2)).tolist() == [3.0, 3.0] and step.count == 2


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"kernels": "many"}, TypeError),
        ({"programs": True}, TypeError),
        ({"kernels": 0}, ValueError),
        ({"kernels": math.nan}, ValueError),
        ({"kernels": 5, "programs": -1}, ValueError),
        ({"bytes": "1 GB"}, TypeError),
        ({"bytes": 0.5}, ValueError),
    ],
)
def test_wrong_limits_set_nothing(limits, error):
    before = dict(bounded_cache.LIMITS)
    with pytest.raises(error, match=r"set_cache_limits\(\): .* must be"):
        torch.compiler.set_cache_limits(**limits)
    assert before == bounded_cache.LIMITS


@pytest.mark.slow
def test_threads_share_the_caches():
    torch.compiler.set_cache_limits(kernels=16)
    step, failures = torch.jit(scaled), []

    def work(first):
        try:
            for number in range(first, first + 4):
                sine(2 + number % 5)
                x = torch.ones(2 + number % 3)
                assert step(x, f"mode {number}", 2.0).sum().item() in (2 * len(x), 3 * len(x))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_reset_passes_functions_of_no_module(monkeypatch):
    """A function that was made by exec, and jitted with JAX, has the module None."""
    namespace = {"__name__": None}
    exec("def double(x): return 2 * x", namespace)
    double = jax.jit(namespace["double"])
    # one more module, so that functions are looked for again
    monkeypatch.setitem(sys.modules, "one_more", types.ModuleType("one_more"))
    torch.compiler.reset()
    assert double(3) == 6
