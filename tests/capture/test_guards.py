"""Each guard says why a compiled function was traced again, with names and values."""

import collections
import functools
import math
import types
from types import SimpleNamespace

import pytest

import jaxgrad as torch
from jaxgrad import nn


def test_a_tensor_given_twice_must_be_given_twice_again():
    both, x = torch.jit(lambda x, y: x * y), torch.ones(2)
    both(x, x)
    assert both(x, torch.zeros(2)).tolist() == [0, 0]
    assert "the arguments [0, 1] are not the same tensor any more" in both.explain()


def test_tensors_that_were_different_must_stay_different():
    def add_to_second(x, y):
        y.add_(1)
        return x * 1

    compiled, x = torch.jit(add_to_second), torch.zeros(2)
    assert compiled(x, torch.zeros(2)).tolist() == [0, 0]
    assert compiled(x, x).tolist() == [1, 1]
    assert "two tensors are the same one now" in compiled.explain()


def test_an_argument_that_is_also_read_by_closure_must_be_that_tensor():
    held = torch.ones(2)
    compiled = torch.jit(lambda x: x + held)
    assert compiled(held).tolist() == [2, 2]
    assert compiled(torch.zeros(2)).tolist() == [1, 1]
    assert "also reaches by itself is another tensor now" in compiled.explain()


class Holder:
    def __init__(self):
        self.held = torch.ones(2)

    def add(self, x):
        return x + self.held

    __call__ = add


class Slot:
    __slots__ = ("held",)


def method():
    return (holder := Holder()).add, holder.held


def callable_object():
    return (holder := Holder()), holder.held


def partial():
    return functools.partial(Holder.add, holder := Holder()), holder.held


def slots():
    slot = Slot()
    slot.held = torch.ones(2)
    return lambda x: x + slot.held, slot.held


def deque():
    queue = collections.deque([torch.ones(2)])
    return lambda x: x + queue[0], queue[0]


def module():
    settings = types.ModuleType("settings")
    settings.held = torch.ones(2)
    return lambda x: x + settings.held, settings.held


def layer():
    linear = nn.Linear(2, 2)
    return (lambda x: linear(x).sum(0) - linear.bias + x), linear.bias


@pytest.mark.parametrize("make", [method, callable_object, partial, slots, deque, module, layer])
def test_an_argument_that_is_also_read_from_an_object_must_be_that_tensor(make):
    function, held = make()
    compiled = torch.jit(function)
    for x in (held, torch.zeros(2), torch.ones(2) * 2, held):
        assert (compiled(x) - function(x)).abs().max().item() < 1e-6


def test_a_gradient_that_is_read_must_be_there_or_not():
    weight = torch.ones(2, requires_grad=True)
    compiled = torch.jit(lambda x: x if weight.grad is None else x + weight.grad)
    assert compiled(torch.ones(2)).tolist() == [1, 1]
    weight.grad = torch.ones(2)
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert compiled.explain().endswith("its grad was None, and is a tensor")


def test_the_mode_of_a_module_is_told_with_its_values():
    module = nn.Dropout(0.5)
    compiled = torch.jit(lambda x: module(x))
    compiled(torch.ones(2))
    module.eval()
    assert compiled(torch.ones(2)).tolist() == [1, 1]
    assert "training of a Dropout was True, and is False" in compiled.explain()


def test_the_hooks_of_nodes_beyond_captured_tensors_are_told_with_the_node():
    x = torch.tensor(2.0, requires_grad=True)
    inner = x * 3
    outer = inner.sin()

    @torch.jit
    def slope():
        return torch.autograd.grad(outer, x, retain_graph=True)[0]

    before = slope().item()
    assert slope().item() == before and slope.count == 1
    inner.grad_fn.register_hook(lambda gradients, cotangents: (gradients[0] * 10, *gradients[1:]))
    assert abs(slope().item() - before * 10) < 1e-5
    assert slope.count == 2 and "the hooks of MulBackward0" in slope.explain()


@pytest.mark.parametrize("way", ["argument", "attribute", "item", "variable"])
def test_zeros_of_both_signs_are_two_numbers(way):
    config, table, variable = SimpleNamespace(), {"k": 1.0}, 1.0
    read = {
        "argument": lambda k: k,
        "attribute": lambda k: config.k,
        "item": lambda k: table["k"],
        "variable": lambda k: (variable,)[0],
    }[way]

    def function(x, k):
        return x / read(k)

    compiled = torch.jit(function)
    for zero in (0.0, -0.0, 0.0):
        config.k = table["k"] = variable = zero
        number = zero if way == "argument" else None
        result = compiled(torch.ones(1), number).tolist()
        assert result == function(torch.ones(1), number).tolist() == [math.copysign(math.inf, zero)]
    assert compiled.count == 2


class Batches:
    def __init__(self):
        self.batches = [torch.full((2,), float(n)) for n in range(4)]
        self.first, self.scale = self.batches[0], torch.tensor(2.0)

    def double(self, x):
        return x * self.scale

    def add_first(self, x):
        return x * 2 + self.first


def test_an_argument_from_a_list_that_is_not_read_is_no_state():
    held = Batches()
    compiled = torch.jit(held.double)
    assert [compiled(x).tolist() for x in held.batches] == [[2 * n] * 2 for n in range(4)]
    assert len(compiled.traces) == 1


def test_an_argument_that_the_function_reads_too_is_another_tensor_later():
    held = Batches()
    compiled = torch.jit(held.add_first)
    for _ in range(2):
        assert [compiled(x).tolist() for x in held.batches] == [[2 * n] * 2 for n in range(4)]
    held.first = held.batches[1]
    assert [compiled(x).tolist() for x in held.batches] == [[2 * n + 1] * 2 for n in range(4)]
    held.batches[0].add_(5)  # no longer what is added
    assert compiled(held.batches[0]).tolist() == [11, 11]
