"""Context managers that decorate. The expected values are PyTorch's."""

import contextlib

import pytest

import jaxgrad as torch
from jaxgrad.utils import _contextlib

events = []


class Logged(_contextlib._DecoratorContextManager):
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        events.append(f"enter {self.name}")

    def __exit__(self, *exception):
        events.append(f"exit {self.name}")

    def clone(self):
        return Logged(self.name)


def test_a_mode_of_a_user_decorates_a_generator():
    @Logged("a")
    def generate():
        events.append("first")
        yield 1
        events.append("second")

    events.clear()
    for _ in generate():
        events.append("outside")
    assert events == [
        *("enter a", "first", "exit a", "outside", "enter a", "second", "exit a"),
    ]


def test_grad_modes_are_of_these_classes():
    decorates, without_arguments = (
        _contextlib._DecoratorContextManager,
        _contextlib._NoParamDecoratorContextManager,
    )
    assert isinstance(torch.no_grad(), without_arguments)
    assert isinstance(torch.set_grad_enabled(True), decorates)
    assert not isinstance(torch.set_grad_enabled(True), without_arguments)


def test_context_decorator():
    decorated = _contextlib.context_decorator(lambda: torch.no_grad(), torch.is_grad_enabled)
    assert decorated() is False and torch.is_grad_enabled()
    kept = _contextlib.context_decorator(contextlib.nullcontext(), torch.is_grad_enabled)
    assert kept() is True
    for context in (torch.no_grad, torch.no_grad()):
        with pytest.raises(AssertionError, match="is both callable and"):
            _contextlib.context_decorator(context, torch.is_grad_enabled)
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        _contextlib.context_decorator(contextlib.nullcontext(), torch.nn.Linear)
