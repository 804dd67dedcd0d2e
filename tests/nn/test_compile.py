"""`torch.compile`, and functions that cannot be traced."""

import warnings

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn


def magnitude(x, weight):
    total = (x * weight).sum()
    if total > 0:
        return total
    return -total


def test_an_if_on_data_runs_uncompiled_with_one_warning():
    compiled = torch.compile(magnitude)
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match=r"magnitude runs uncompiled.*test_compile.py:14") as told:
        for value, slope in [(3.0, 3.0), (-3.0, 3.0), (0.5, 0.5)]:
            weight.grad = None
            compiled(torch.full((2,), value), weight).backward()
            assert weight.grad.tolist() == [slope, slope]
    assert len(told) == 1 and compiled.count == 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[x > 1], [2.0, 3.0]),
        (lambda x: x.nonzero().flatten(), [0, 1, 2]),
        (lambda x: torch.ones(int(x.sum())), [1.0] * 6),
        (lambda x: torch.tensor(x.tolist()[::-1]), [3.0, 2.0, 1.0]),
        (lambda x: torch.from_numpy(np.cumsum(x.numpy())), [1.0, 3.0, 6.0]),
    ],
)
def test_what_needs_numbers_runs_uncompiled(function, expected):
    compiled = torch.jit(function, fallback=True)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert compiled(torch.tensor([1.0, 2.0, 3.0])).tolist() == expected


def test_state_changes_once_where_a_trace_comes_to_nothing():
    weight, calls = torch.ones(2), []

    @torch.compile
    def step(x):
        weight.mul_(2)
        calls.append(len(calls))
        return x[x > 1]

    with pytest.warns(UserWarning, match="runs uncompiled"):
        for number in range(1, 4):
            step(torch.tensor([1.0, 2.0]))
            assert weight.tolist() == [2.0**number] * 2 and calls == list(range(number))


def test_errors_of_the_function_are_its_own():
    @torch.compile
    def look(x):
        return {}[x.shape]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError):
            look(torch.ones(2))


def test_other_arguments_are_compiled_still():
    @torch.compile
    def scaled(x, where=False):
        return x[x > 1] if where else x * 2

    with pytest.warns(UserWarning, match="runs uncompiled"):
        scaled(torch.ones(2), where=True)
    for _ in range(3):
        assert scaled(torch.ones(2)).tolist() == [2, 2]
    assert scaled.count == 2


@pytest.mark.parametrize("make", [torch.compile, torch.jit])
def test_fullgraph_raises(make):
    compiled = (
        torch.compile(magnitude, fullgraph=True) if make is torch.compile else make(magnitude)
    )
    with pytest.raises(RuntimeError, match="needs the numbers"):
        compiled(torch.ones(2), torch.ones(2))


def test_modules_keep_their_attributes_and_names():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    compiled = torch.compile(net, mode="reduce-overhead", dynamic=False)
    x = torch.ones(4, 2)
    names = [f"_orig_mod.{name}" for name in net.state_dict()]
    assert list(compiled.state_dict()) == names and compiled._orig_mod is net
    compiled.eval()
    assert not net.training and not net[1].training
    np.testing.assert_allclose(compiled(x).detach(), net(x).detach(), rtol=1e-6)
    compiled(x).sum().backward()
    assert all(p.grad is not None for p in compiled.parameters())
    torch.optim.SGD(compiled.parameters(), lr=0.1).step()
    np.testing.assert_allclose(compiled(x).detach(), net(x).detach(), rtol=1e-6)
    with pytest.raises(AttributeError, match="nothing"):
        _ = compiled.nothing


def test_decorators():
    @torch.compile(fullgraph=True)
    def double(x):
        return x * 2

    assert double(torch.ones(2)).tolist() == [2, 2]
    assert torch.compile(magnitude, disable=True) is magnitude
    assert not torch.compiler.is_compiling() and torch.compiler.disable(magnitude) is magnitude
    assert torch.jit(lambda: torch.compiler.is_compiling())() is True


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"model": 3}, AssertionError, "A callable function is expected, but <class .int.>"),
        ({"mode": "fast"}, RuntimeError, "Unrecognized mode=fast, should be one of: default"),
        ({"mode": "default", "options": {}}, RuntimeError, "[Ee]ither mode or options"),
        ({"backend": "nothing"}, RuntimeError, "Invalid backend: 'nothing'"),
        ({"backend": print}, TypeError, "XLA compiles here"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        torch.compile(**{"model": magnitude, **arguments})
