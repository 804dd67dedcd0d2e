"""jaxgrad.func: gradients of functions, nested, against JAX."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad
import jaxgrad as torch
from jaxgrad.func import grad, grad_and_value, value_and_grad

POINT = [0.3, 1.2]


def ours(x):
    return (x.sin() * x * x).sum()


def theirs(x):
    return (jnp.sin(x) * x * x).sum()


def test_grad_and_values():
    x = torch.tensor(POINT)
    expected_value, expected = jax.value_and_grad(theirs)(jnp.array(POINT))
    np.testing.assert_allclose(grad(ours)(x).numpy(), expected, rtol=1e-6)
    gradient, value = grad_and_value(ours)(x)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(value.item(), expected_value, rtol=1e-6)
    assert not gradient.requires_grad
    assert not value.requires_grad
    value, gradient = value_and_grad(ours)(x)
    np.testing.assert_allclose(value.item(), expected_value, rtol=1e-6)
    assert x.grad is None


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", [lambda f: f, torch.jit], ids=["eager", "jit"])
def test_nested_to_third_order(wrapped):
    def nest(gradient, function, order):
        for _ in range(order):
            function = (lambda inner: lambda x: gradient(inner)(x).sum())(function)
        return function

    for order in (2, 3):
        result = wrapped(lambda x, order=order: grad(nest(grad, ours, order - 1))(x))(
            torch.tensor(POINT)
        )
        expected = jax.grad(nest(jax.grad, theirs, order - 1))(jnp.array(POINT))
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


def test_an_inner_gradient_sees_the_outer_variable():
    """Perturbation confusion: d/dx (x d/dy (x + y)) is 1."""
    result = grad(lambda x: x * grad(lambda y: x + y)(torch.tensor(1.0)))(torch.tensor(1.0))
    assert result.item() == 1
    result = grad(lambda x: grad(lambda y: x * x * y)(torch.tensor(5.0)))(torch.tensor(3.0))
    assert result.item() == 6


def test_trees_argnums_and_aux():
    def loss(params, x, scale=1.0):
        return (params["w"] * x + params["b"][0]).sum() * scale, {"x": x}

    params = {"w": torch.tensor([1.0, 2.0]), "b": [torch.tensor([0.5])]}
    x = torch.tensor([3.0, 4.0])
    gradients, aux = grad(loss, has_aux=True)(params, x, scale=2.0)
    assert gradients["w"].tolist() == [6, 8]
    assert gradients["b"][0].tolist() == [4]
    assert aux["x"] is x
    (first, second), (value, _) = grad_and_value(loss, argnums=(0, -1), has_aux=True)(params, x)
    assert second.tolist() == [1, 2]
    assert value.item() == 12
    assert set(first) == {"w", "b"}


@pytest.mark.slow
def test_jax_arrays_in_and_out():
    gradient = grad(ours)(jnp.array(POINT))
    assert isinstance(gradient, jax.Array)
    np.testing.assert_allclose(gradient, jax.grad(theirs)(jnp.array(POINT)), rtol=1e-6)
    batched = jax.vmap(grad(ours))(jnp.array([POINT, POINT]))
    np.testing.assert_allclose(batched[1], gradient, rtol=1e-6)
    hessian = jax.jacfwd(grad(ours))(jnp.array(POINT))
    np.testing.assert_allclose(hessian, jax.hessian(theirs)(jnp.array(POINT)), rtol=1e-5)


def test_unused_is_zero_and_no_grad_is_heeded():
    assert grad(lambda x, y: y.sum())(torch.ones(2), torch.ones(3)).tolist() == [0, 0]
    assert grad(lambda x: torch.tensor(1.0))(torch.ones(2)).tolist() == [0, 0]
    with torch.no_grad():
        assert grad(lambda x: (x * x).sum())(torch.ones(2)).tolist() == [2, 2]

    def partly(x):
        with torch.no_grad():
            shift = x * 5
        return (x + shift).sum()

    assert grad(partly)(torch.ones(2)).tolist() == [1, 1]


def test_the_tape_outside_goes_through():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    grad(lambda y: (y**3).sum())(x).sum().backward()
    assert x.grad.tolist() == [6, 12]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: grad(lambda x: x)(torch.ones(3)),
            RuntimeError,
            r"scalar Tensor, got tensor with 1 dims",
        ),
        (
            lambda: grad(lambda x: 1.0)(torch.ones(3)),
            RuntimeError,
            "return a Tensor, got <class 'float'>",
        ),
        (lambda: grad(lambda x: x)(1.0), ValueError, "must be Tensor, got <class 'float'>"),
        (
            lambda: grad(lambda x: x, argnums=4)(torch.ones(())),
            RuntimeError,
            "argnum=4, but only 1 pos",
        ),
        (lambda: grad(lambda x: x, argnums=())(torch.ones(())), RuntimeError, "must be non-empty"),
        (lambda: grad(lambda x: x, argnums=(0, 0))(torch.ones(())), RuntimeError, "must be unique"),
        (
            lambda: grad(lambda x: x, argnums="x")(torch.ones(())),
            RuntimeError,
            "must be int or Tuple",
        ),
        (
            lambda: grad(lambda x: x, has_aux=True)(torch.ones(())),
            RuntimeError,
            "should be a tuple",
        ),
    ],
)
def test_errors_of_transforms(call, error, words):
    with pytest.raises(error, match=words):
        call()


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


def test_reading_values_of_a_detached_tensor_inside_grad():
    def value(x):
        y = x * x
        looked_at(y.detach())
        return (y * x).sum()

    gradient = jaxgrad.func.grad(value)(jaxgrad.tensor(2.0))
    assert gradient.item() == 12
