"""Gradients as programs that JAX exports, serialises and loads again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxgrad as torch

W = jnp.array([[1.0, 2.0], [0.5, -1.0]])
X = jnp.array([[0.3, 0.1], [-0.4, 0.7], [1.0, 0.2]])


def loss(w, x):
    return ((x @ w).tanh() ** 2).sum()


def by_backward(w, x):
    w = w.detach().requires_grad_()
    loss(w, x).backward()
    return w.grad


def plain(w, x):
    return (jnp.tanh(x @ w) ** 2).sum()


def loaded(function, *args, **options):
    exported = export.export(jax.jit(torch.to_jax(function)))(*args)
    return export.deserialize(exported.serialize(**options))


@pytest.mark.row("S08")
@pytest.mark.parametrize(
    "gradient",
    [
        by_backward,
        pytest.param(torch.func.grad(loss), marks=pytest.mark.slow),
        pytest.param(torch.jit(by_backward), marks=pytest.mark.slow),
    ],
)
def test_a_gradient_that_is_loaded_again(gradient):
    np.testing.assert_allclose(loaded(gradient, W, X).call(W, X), jax.grad(plain)(W, X), rtol=1e-6)


@pytest.mark.row("S08")
@pytest.mark.slow
def test_a_gradient_that_is_differentiated_once_it_is_loaded():
    again = loaded(torch.func.grad(loss), W, X, vjp_order=1)
    wanted = jax.grad(lambda w: (jax.grad(plain)(w, X) * W).sum())(W)
    result = jax.grad(lambda w: (again.call(w, X) * W).sum())(W)
    np.testing.assert_allclose(result, wanted, rtol=1e-5)
    weight = torch.tensor(np.array(W), requires_grad=True)
    gradient = torch.from_jax(again.call)(weight, torch.tensor(np.array(X)))
    gradient.backward(torch.tensor(np.array(W)))
    np.testing.assert_allclose(weight.grad.numpy(), wanted, rtol=1e-5)
    with pytest.raises(ValueError, match="No VJP is available"):
        once = loaded(torch.func.grad(loss), W, X)
        jax.grad(lambda w: once.call(w, X).sum())(W)


@pytest.mark.row("S08")
@pytest.mark.slow
def test_a_gradient_for_any_number_of_rows():
    (rows,) = export.symbolic_shape("rows")
    again = loaded(torch.func.grad(loss), W, jax.ShapeDtypeStruct((rows, 2), X.dtype))
    for count in (1, 3):
        np.testing.assert_allclose(
            again.call(W, X[:count]), jax.grad(plain)(W, X[:count]), rtol=1e-6
        )
