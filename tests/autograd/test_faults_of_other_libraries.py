"""Cases in which other libraries gave wrong gradients without an error."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy
import pytest

import jaxgrad


def looked_at(tensor):
    """Reads a tensor's numbers in every way and returns a Python number."""
    with contextlib.redirect_stdout(io.StringIO()):
        print(tensor, repr(tensor), f"{tensor}")
    numbers = [
        tensor.item(),
        tensor.tolist(),
        float(tensor.detach()),
        tensor.detach().numpy().item(),
    ]
    return numbers[0] + 0 * sum(numbers) + 0 * bool(tensor > 0)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_looking_at_numbers_leaves_the_gradient_as_it_is(order):
    def value(x, look):
        y = x.exp()
        seen = look(y)
        return (y * seen + x.sin() * y).sum()

    def gradients(look):
        x = jaxgrad.tensor(0.7, dtype=jaxgrad.float64, requires_grad=True)
        derivative = value(x, look)
        for _ in range(order):
            look(derivative)
            (derivative,) = jaxgrad.autograd.grad(derivative, x, create_graph=True)
        return derivative.item()

    with jax.enable_x64(True):
        number = float(jnp.exp(jnp.float64(0.7)))
        slope = jax.grad(lambda x: jnp.exp(x) * number + jnp.sin(x) * jnp.exp(x))
        expected = (slope if order == 1 else jax.grad(slope))(jnp.float64(0.7))
        numpy.testing.assert_allclose(gradients(looked_at), expected, rtol=1e-12)
    assert gradients(looked_at) == gradients(lambda tensor: tensor.item())


def test_inside_func_grad():
    def value(x):
        y = x * x
        looked_at(y.detach())
        return (y * x).sum()

    gradient = jaxgrad.func.grad(value)(jaxgrad.tensor(2.0))
    assert gradient.item() == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", [("eager", "jit", "jvp"), ("jit", "jvp", "eager"), ("jvp", "jit")]
)
def test_which_way_is_called_first_changes_nothing(order):
    """Compiling a function first must not leave forward mode without tangents."""
    forward_ad = jaxgrad.autograd.forward_ad

    def function(x):
        return (x.exp() * x).sum()

    @jaxgrad.jit
    def compiled(x):
        function(x).backward()
        return x.grad

    def eager(x):
        function(x).backward()
        return x.grad

    def jvp(x):
        with forward_ad.dual_level():
            columns = [
                function(forward_ad.make_dual(x.detach(), unit)) for unit in jaxgrad.eye(3).unbind()
            ]
            return jaxgrad.stack([forward_ad.unpack_dual(column).tangent for column in columns])

    ways = {"eager": eager, "jit": compiled, "jvp": jvp}
    values = jnp.array([0.3, -0.5, 2.0])
    expected = jax.grad(lambda x: (jnp.exp(x) * x).sum())(values)
    for way in order * 2:
        x = jaxgrad.tensor([0.3, -0.5, 2.0], requires_grad=True)
        numpy.testing.assert_allclose(ways[way](x).numpy(), expected, rtol=1e-6)


@pytest.mark.slow
def test_gradients_of_shards_averaged_are_that_of_the_whole():
    """A mean over shards of equal size, each with its own pass, averaged by a hook."""
    data = jaxgrad.arange(12.0).reshape(4, 3)
    weight = jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    averaged = weight.register_hook(lambda gradient: gradient / 4)
    for row in data:
        ((row * weight) ** 2).sum().backward()
    averaged.remove()
    whole = jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ((data * whole) ** 2).sum(1).mean().backward()
    numpy.testing.assert_allclose(weight.grad.numpy(), whole.grad.numpy(), rtol=1e-6)
    closed = 2 * (data.numpy() ** 2).mean(0) * numpy.array([1.0, 2.0, 3.0])
    numpy.testing.assert_allclose(whole.grad.numpy(), closed, rtol=1e-6)
