"""Functions without a kernel on a platform: the error there, and nothing else changes elsewhere."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from jax import lax

from jaxgrad.core import lacking

X = jnp.array([[0.5, -1.0, 2.0], [3.0, 0.1, 1.5]])
MESSAGE = "sines: there is no kernel for the platform tpu: take cosines"


def sines(x, y):
    return {"product": jnp.sin(x) * y, "sum": y.sum(-1)}


def checked(x, y):
    return lacking.without_kernel(sines, x, y, operators="sines", tpu="take cosines")


def same(ours, theirs):
    jax.tree.map(lambda a, b: numpy.testing.assert_array_equal(a, b), ours, theirs)


def test_results_and_derivatives_are_the_functions():
    """Its gradient, forward derivative, second derivative and batches too."""
    same(checked(X, X + 1), sines(X, X + 1))
    same(jax.vmap(checked, (0, None))(X, X[0]), jax.vmap(sines, (0, None))(X, X[0]))
    tangents = (X * 2, X - 1)
    ours, theirs = (jax.jvp(jax.jit(f), (X, X), tangents) for f in (checked, sines))
    jax.tree.map(lambda a, b: numpy.testing.assert_allclose(a, b, rtol=1e-6), ours, theirs)

    def losses(function):
        return lambda x: function(x, jnp.cos(x))["product"].sum()

    for derivative in (jax.grad, jax.hessian):
        ours, theirs = (jax.jit(derivative(losses(f)))(X) for f in (checked, sines))
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_the_error_is_that_of_the_platform():
    """Also of the derivatives."""
    traced = jax.jit(checked).trace(X, X)
    for platforms in (("cpu",), ("cuda",), ("rocm",)):
        traced.lower(lowering_platforms=platforms)
    for function in (checked, lambda x, y: jax.grad(lambda x: checked(x, y)["product"].sum())(x)):
        with pytest.raises(NotImplementedError, match=MESSAGE):
            jax.jit(function).trace(X, X).lower(lowering_platforms=("tpu",))


def test_programs_of_jax_alone_are_as_they_were():
    """A user's program raises JAX's error, and not ours."""
    traced = jax.jit(lax.linalg.eig).trace(jnp.eye(2))
    with pytest.raises(Exception, match=r"(?i)not implemented|not found|only implemented") as error:
        traced.lower(lowering_platforms=("tpu",))
    assert "linalg.eigvals" not in str(error.value)


def test_a_call_where_there_is_no_kernel():
    """With the CPU as such a platform."""

    @jax.jit
    def called(x):
        return lacking.without_kernel(jnp.sin, x, operators="sin", cpu="use cos")

    with pytest.raises(NotImplementedError, match="no kernel for the platform cpu: use cos"):
        called(X)
