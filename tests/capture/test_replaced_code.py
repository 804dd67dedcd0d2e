"""Code, classes and functions that are replaced between calls of a compiled function."""

import functools
import types

import pytest

import jaxgrad as torch

nn = torch.nn


ONE = torch.ones(1)


def test_code_that_is_reloaded():
    def scale(x):
        return x * 2

    def other(x):
        return x * 3

    compiled = torch.jit(lambda x: scale(x))
    assert compiled(ONE).tolist() == [2]
    scale.__code__ = other.__code__
    assert compiled(ONE).tolist() == [3]
    assert "__code__" in compiled.explain()


def test_the_code_of_a_method_and_of_the_function_itself():
    class Layer(nn.Module):
        def forward(self, x):
            return x * 2

    layer = Layer()
    compiled = torch.jit(lambda x: layer(x))
    assert compiled(ONE).tolist() == [2]
    Layer.forward.__code__ = (lambda self, x: x * 3).__code__
    assert compiled(ONE).tolist() == [3]

    def double(x):
        return x * 2

    compiled = torch.jit(double)
    assert compiled(ONE).tolist() == [2]
    double.__code__ = (lambda x: x * 3).__code__
    assert compiled(ONE).tolist() == [3]


@pytest.mark.parametrize("base", [object, nn.Module])
def test_a_class_that_is_reloaded(base):
    class Old(base):
        def scale(self, x):
            return x * 2

    class New(base):
        def scale(self, x):
            return x * 3

    held = Old()
    compiled = torch.jit(lambda x: held.scale(x))
    assert compiled(ONE).tolist() == [2]
    held.__class__ = New
    assert compiled(ONE).tolist() == [3]


def test_a_function_that_is_registered_later():
    @functools.singledispatch
    def scale(kind, x):
        return x * 2

    compiled = torch.jit(lambda x: scale(1, x))
    assert compiled(ONE).tolist() == [2]
    scale.register(int, lambda kind, x: x * 3)
    assert compiled(ONE).tolist() == [3]


def test_functions_of_a_namespace():
    tools = types.SimpleNamespace(scale=lambda x: x * 2)
    compiled = torch.jit(lambda x: tools.scale(x))
    assert compiled(ONE).tolist() == [2]
    tools.scale.__code__ = (lambda x: x * 3).__code__
    assert compiled(ONE).tolist() == [3]
