"""Generators, coroutines and iterators in compiled functions."""

import asyncio
import functools

import pytest

import jaxgrad as torch
from jaxgrad import nn

# JAX warns of iterators in trees, and jaxgrad raises
pytestmark = pytest.mark.filterwarnings("ignore:Python iterable:DeprecationWarning")


def doubled_and_tripled(x):
    yield x * 2
    yield x * 3


async def doubled(x):
    await asyncio.sleep(0)
    return x * 2


async def doubled_later(x):
    await asyncio.sleep(0)
    yield x * 2


class Awaited(nn.Module):
    async def forward(self, x):
        return x * 2


class Called:
    async def __call__(self, x):
        return x * 2

    async def method(self, x):
        return x * 2


async def collected(values):
    return [value async for value in values]


@pytest.mark.parametrize(
    ("function", "kind", "results"),
    [
        (doubled_and_tripled, "a generator function", lambda values: [y.item() for y in values]),
        (doubled, "a coroutine function", lambda coro: [asyncio.run(coro).item()]),
        (Awaited(), "a coroutine function", lambda coro: [asyncio.run(coro).item()]),
        (Called(), "a coroutine function", lambda coro: [asyncio.run(coro).item()]),
        (Called().method, "a coroutine function", lambda coro: [asyncio.run(coro).item()]),
        (functools.partial(doubled), "a coroutine", lambda coro: [asyncio.run(coro).item()]),
        (
            doubled_later,
            "an asynchronous generator function",
            lambda values: [y.item() for y in asyncio.run(collected(values))],
        ),
    ],
)
def test_what_runs_after_the_call_runs_uncompiled(function, kind, results):
    with pytest.warns(UserWarning, match=f"{kind}.*compile the functions that it calls") as seen:
        compiled = torch.jit(function)
    assert seen[0].filename == __file__
    for value in (2.0, 2.0, 3.0):
        x = torch.tensor(value)
        assert results(compiled(x)) == results(function(x))
    assert compiled.count == 0 and kind in compiled.explain()
    with pytest.raises(TypeError, match=f"no program, because it is {kind}"):
        compiled.lower(torch.tensor(2.0))


def test_a_compiled_method_may_be_a_coroutine():
    with pytest.warns(UserWarning, match="coroutine function"):

        class Server:
            @torch.jit
            async def answer(self, x):
                return x * 2

    server = Server()
    assert [asyncio.run(server.answer(torch.tensor(2.0))).item() for _ in range(2)] == [4, 4]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: (x * i for i in range(3)), "the result is a generator"),
        (lambda x: {"a": [map(abs, [x])]}, r"the result\['a'\]\[0\] is a map"),
        (lambda x: zip([x], [x], strict=True), "the result is a zip"),
        (lambda x: doubled(x), "the result is a coroutine"),
        (lambda x: doubled_later(x), "the result is an async_generator"),
    ],
)
def test_an_iterator_as_result_is_refused(result, message):
    @torch.jit
    def function(x):
        state.add_(1)
        return result(x)

    state = torch.zeros(())
    for _ in range(2):
        with pytest.raises(TypeError, match=message + ".*return a list or a tuple"):
            function(torch.tensor(2.0))
    assert function.traces == [] and state.item() == 0


def test_an_iterator_as_argument_is_refused_unread():
    total = torch.jit(lambda xs, scale=1: sum(xs) * scale)
    x = torch.tensor(2.0)
    iterator = iter([x, x])
    for _ in range(2):
        with pytest.raises(TypeError, match=r"argument xs is a list_iterator.*pass a list"):
            total(iterator)
    with pytest.raises(TypeError, match="argument scale is a generator"):
        total([x], scale=(tensor for tensor in [x]))
    with pytest.raises(TypeError, match=r"argument xs\['a'\] is a map"):
        total.lower({"a": map(abs, [x])})
    assert list(iterator) == [x, x] and total.count == 0
    assert total([x, x]).item() == 4 and total(range(3)) == 3
