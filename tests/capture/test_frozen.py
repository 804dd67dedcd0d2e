"""Warnings of what a program freezes: random numbers, the time, files, the environment."""

import datetime
import functools
import importlib
import os
import queue
import random
import time
import warnings
from random import gauss
from time import perf_counter

import numpy as np
import pytest

import jaxgrad as torch

rng = np.random.default_rng(0)


class Settings:
    def __init__(self):
        self.rng = random.Random(0)

    def draw(self):
        return self.rng.random()


settings, system = Settings(), random.SystemRandom()


class Noisy(torch.nn.Module):
    def forward(self, x):
        return self.noise(x)

    def noise(self, x):
        return x * np.random.rand()


def now():
    return time.perf_counter()


def lines():
    with open(__file__) as file:
        return len(file.readlines())


noisy = Noisy()
# what a program freezes, and how the warning calls it
FROZEN = {
    "random": (lambda x: x * random.random(), "draws random numbers from random"),
    "from random import": (lambda x: x * gauss(0, 1), "draws random numbers from random"),
    "numpy.random": (lambda x: x * np.random.rand(), "draws random numbers from numpy.random"),
    "a Generator": (lambda x: x * float(rng.normal()), "draws random numbers from a Generator"),
    "an attribute": (lambda x: x * settings.rng.random(), "draws random numbers from a Random"),
    "a method": (lambda x: x * settings.draw(), "draws random numbers from a Random"),
    "a module": (noisy, "draws random numbers from numpy.random"),
    "a module in a closure": (lambda x: noisy(x), "draws random numbers from numpy.random"),
    "shuffle": (lambda x: random.shuffle([1, 2, 3]) or x * 2, "draws random numbers from random"),
    "SystemRandom": (lambda x: x * system.random(), "reads system.random"),
    "time": (lambda x: x * time.time(), "reads time.time"),
    "from time import": (lambda x: x * perf_counter(), "reads perf_counter"),
    "a helper": (lambda x: x * now(), "reads time.perf_counter"),
    "a partial": (functools.partial(lambda n, x: x * n * now(), 2), "reads time.perf_counter"),
    "environ": (lambda x: x * len(os.environ.get("HOME", "")), "reads os.environ.get"),
    "environ's items": (lambda x: x if "NO_SUCH" in os.environ else x * 2, "reads os.environ"),
    "getenv": (lambda x: x * len(os.getenv("HOME", "")), "reads os.getenv"),
    "datetime": (lambda x: x * datetime.datetime.now().second, "reads datetime.datetime.now"),
    "open": (lambda x: x * lines(), "reads open"),
    "a lambda inside": (lambda x: (lambda: x * time.time())(), "reads time.time"),
}


def told(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found]


@pytest.mark.parametrize("name", FROZEN)
@pytest.mark.unverified
def test_what_a_program_freezes_is_warned_of_once(name):
    function, what = FROZEN[name]
    compiled, x = torch.jit(function), torch.ones(2)
    (message,) = told(lambda: compiled(x))
    assert f"{what} at {__file__}:" in message
    # other programs freeze the same, and the user knows
    assert told(lambda: compiled(x)) == told(lambda: compiled(torch.ones(3))) == []


@pytest.mark.unverified
def test_the_line_is_that_of_the_draw():
    def step(x):
        x = x + 1
        return x * random.random()

    line = step.__code__.co_firstlineno + 2
    (message,) = told(lambda: torch.jit(step)(torch.ones(2)))
    assert f"{__file__}:{line}:" in message


@pytest.mark.unverified
def test_a_draw_without_a_name_is_told_too():
    (message,) = told(lambda: torch.jit(lambda x: x * sum(rolls()))(torch.ones(2)))
    assert "draws random numbers from random: those of the trace" in message


def rolls():
    yield importlib.import_module("random").random()


def test_vmap_calls_such_a_function_each_time():
    random.seed(0)
    wanted = [random.random() for _ in range(3)]
    mapped, found = torch.func.vmap(lambda x: x * random.random()), []
    random.seed(0)
    double = torch.ones(2, dtype=torch.float64)
    assert told(lambda: found.extend(mapped(double).tolist() for _ in wanted)) == []
    assert found == [[each, each] for each in wanted]
    clock = torch.func.vmap(lambda x: x * time.perf_counter_ns())
    first, second = clock(double), clock(double)
    assert first[0] < second[0]


@pytest.mark.unverified
def test_a_function_in_a_trace_is_told_of_by_the_program():
    inner = torch.jit(lambda x: x * random.random())
    (message,) = told(lambda: torch.jit(lambda x: inner(x) * 2)(torch.ones(2)))
    assert "draws random numbers from random" in message


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x * torch.rand(()),
        lambda x: x * torch.tracing.number(lambda: random.random()),
        lambda x: x * torch.tracing.number(random.random),
        lambda x: x * torch.tracing.number(time.time),
        lambda x: x * settings.__dict__.get("scale", 2),
        torch.nn.Linear(2, 2),
    ],
)
def test_what_each_call_reads_is_not_told(function):
    assert told(lambda: torch.jit(function)(torch.ones(2))) == []


def test_a_function_that_is_traced_at_each_call_freezes_nothing():
    kept = queue.SimpleQueue()  # whose contents capture cannot see

    def step(x):
        kept.put(x * random.random())
        return x

    compiled = torch.jit(step)
    assert told(lambda: (compiled(torch.ones(2)), compiled(torch.ones(2)))) == []
    assert kept.get().tolist() != kept.get().tolist()


def test_the_uncompiled_function_is_not_told_of():
    assert told(lambda: FROZEN["random"][0](torch.ones(2))) == []
    with pytest.raises(ZeroDivisionError):
        torch.jit(lambda x: random.random() / 0)(torch.ones(2))
