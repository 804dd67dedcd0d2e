"""Functions whose results show the memory of their input, where JAX differentiates: the rule holds
for the result, and not for the input. Closed forms, of the square of a sum of both.
"""

import jax
import jax.numpy as jnp
import pytest

import jaxgrad as torch


class Same(torch.autograd.Function):
    """Its input, with a gradient of seven times."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return 7 * grad


class Flat(torch.autograd.Function):
    """A view of its input, with a gradient of seven times."""

    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return 7 * grad


class Doubled(torch.autograd.Function):
    """Writes to its input, with a gradient of seven times."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return 7 * grad


def same_and_input(x):
    z = x * 1
    return Same.apply(z) + z


def view_and_input(x):
    z = x * 1
    return Flat.apply(z) + z


def input_written_afterwards(x):
    z = x * 1
    Same.apply(z)
    return z.mul_(3) + x


def view_of_what_is_written(x):
    z = x * 1
    v = z[:]
    Doubled.apply(z)
    return v + z


# each with its value, a multiple of x, and its derivative
FUNCTIONS = {
    "same": (same_and_input, 2, 8),
    "view": (view_and_input, 2, 8),
    "written": (input_written_afterwards, 4, 4),
    "dirty": (view_of_what_is_written, 4, 14),
}

WAYS = {
    "eager": lambda function: function,
    "jit": torch.jit,
    "vmap": lambda function: torch.func.vmap(lambda x: function(x[None])[0]),
    "cond": lambda function: torch.jit(
        lambda x: torch.cond(x.sum() < 9, function, torch.neg, (x,))
    ),
    "scan": lambda function: torch.jit(
        lambda x: torch.scan(lambda n, element: (n, function(element[None])[0]), x[0], x)[1]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, way):
    function, factor, slope = FUNCTIONS[name]
    leaf = torch.tensor([1.0, -2.0], requires_grad=True)
    (WAYS[way](function)(leaf * 1) ** 2).sum().backward()
    assert leaf.grad.tolist() == [2 * factor * slope * x for x in (1.0, -2.0)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_jax(name):
    function, factor, slope = FUNCTIONS[name]
    gradient = jax.grad(lambda x: (torch.to_jax(function)(x) ** 2).sum())(jnp.array([1.0, -2.0]))
    assert gradient.tolist() == [2 * factor * slope * x for x in (1.0, -2.0)]
