"""A tensor from outside whose graph grows at each call of a compiled function, against the function
uncompiled.
"""

import pytest
from helpers.modes import eager

import jaxgrad as torch

START = {
    "product": lambda w: w * 2,
    "sum": lambda w: w + 1,
    "exponential": lambda w: w.exp(),
    "view": lambda w: (w * 2)[:],
}


def backward_inside(w, y, x):
    y.mul_(2)
    (y * y).sum().backward()


def changed_by_a_hook(w, y, x):
    z = y * 2
    z.register_hook(lambda gradient: gradient * x)
    y.add_(z)


def changed_by_a_hook_of_its_own(w, y, x):
    y.add_(x)
    y.register_hook(lambda gradient: gradient * 2)


def changed_before_a_node(w, y, x):
    z = y * 2
    z.grad_fn.register_prehook(lambda gradients: (gradients[0] * x,))
    y.add_(z)


def changed_after_a_node(w, y, x):
    z = y * 2
    z.grad_fn.register_hook(lambda gradients, _: (gradients[0].exp(), *gradients[1:]))
    y.add_(z)


class Tripled(torch.autograd.Function):
    """A Function that saves nothing."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


STEPS = {
    "add": lambda w, y, x: y.add_(x),
    "double": lambda w, y, x: y.mul_(2),
    "scale": lambda w, y, x: y.mul_(x),
    "reuse": lambda w, y, x: y.mul_(w),
    "part": lambda w, y, x: y[:1].mul_(3),
    "backward": backward_inside,
    "hook": changed_by_a_hook,
    "own hook": changed_by_a_hook_of_its_own,
    "prehook": changed_before_a_node,
    "posthook": changed_after_a_node,
    "retain": lambda w, y, x: (y * 2).retain_grad() or y.add_(x),
    "function": lambda w, y, x: y.add_(Tripled.apply(y)),
}
PASSES = {
    "at the end": lambda y, number: y.sum().backward() if number == 3 else None,
    "each time": lambda y, number: y.sum().backward(),
    "retained": lambda y, number: (y**2).sum().backward(retain_graph=True),
}


def run(start, step, ends, compiled):
    """The gradients after each call, and how the run ends: with the tensor, or with an error."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y, gradients = start(w), []

    def call(x):
        step(w, y, x)

    grow = torch.jit(call) if compiled else call
    try:
        for number in range(4):
            grow(torch.tensor([3.0, 4.0]) + number)
            ends(y, number)
            gradients.append(None if w.grad is None else w.grad.tolist())
    except RuntimeError as error:
        return gradients, str(error).partition(" (")[0]
    return gradients, y.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("start", START.values(), ids=START)
@pytest.mark.parametrize("step", STEPS)
def test_passes_are_those_of_the_function_uncompiled(start, step):
    with eager("compiled"):  # the host rounds in other places
        for ends in PASSES.values():
            assert run(start, STEPS[step], ends, True) == run(start, STEPS[step], ends, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STEPS if name != "backward"])
def test_derivatives_of_three_orders(name):
    step = STEPS[name]

    def derivatives(compiled):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        y = w * w
        call = torch.jit(lambda x: step(w, y, x)) if compiled else lambda x: step(w, y, x)
        for number in range(3):
            call(torch.tensor([3.0, 4.0]) + number)
        (first,) = torch.autograd.grad((y**2).sum(), w, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), w, create_graph=True)
        return first.tolist(), second.tolist(), torch.autograd.grad(second.sum(), w)[0].tolist()

    assert derivatives(True) == derivatives(False)


def passes_beside(jit):
    """The gradient after passes from results on which the growing graph does not depend."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(2)

    @jit
    def step(x):
        y.add_(x.sin())
        return x * 3

    for number in range(4):
        result = step(w * 2)
        if number:
            result.sum().backward()
    return w.grad.tolist()


def test_a_pass_does_not_go_on_where_nothing_depends_on_it():
    assert passes_beside(torch.jit) == passes_beside(lambda function: function) == [18, 18]
