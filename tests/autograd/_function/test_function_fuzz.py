"""Random programs of Functions, hooks and in-place writes against the same programs in
jax.numpy.
"""

import hypothesis
import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import function_programs as programs
from hypothesis import HealthCheck

import jaxgrad
from jaxgrad.tape.tensor import wrap


def examples(quick, slow):
    """A test of random steps, with few examples, and with more where marked slow."""

    def decorate(check):
        def settings(count):
            return hypothesis.settings(
                max_examples=count, deadline=None, suppress_health_check=list(HealthCheck)
            )

        def test(count):
            settings(count)(hypothesis.given(programs.steps)(check))()

        marks = [quick, pytest.param(slow, marks=pytest.mark.slow)]
        return pytest.mark.parametrize("count", marks)(test)

    return decorate


def leaf():
    return jaxgrad.tensor(programs.START, dtype=jaxgrad.float64, requires_grad=True)


def compare(results, planned):
    for ours, theirs in zip(results, programs.expected(planned), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=str(planned))


@pytest.mark.slow
@examples(40, 120)
def test_random_functions_equal_jax_eager(drawn):
    planned = programs.plan(drawn)
    *results, _ = programs.derivatives(jaxgrad, planned, leaf())
    compare([result.tolist() for result in results], planned)


@pytest.mark.slow
@examples(6, 12)
def test_random_functions_equal_jax_compiled(drawn):
    planned = programs.plan(drawn)
    order = []

    @jaxgrad.jit
    def step(x):
        *results, seen = programs.derivatives(jaxgrad, planned, x)
        order.extend(seen)
        return results

    compare([result.tolist() for result in step(leaf())], planned)
    assert order == programs.derivatives(jaxgrad, planned, leaf())[3]


# a `forward` that writes to an input which is concrete where JAX traces its rule again
WRITES_TO_A_RESIDUAL = [programs.Step(0, 0, 0, 0), programs.Step(5, 1, 0, 0)]


@pytest.mark.slow
@examples(8, 20)
def test_random_functions_under_jax_transformations(drawn):
    """Tensors of tracers may be written to; hooks belong to the tape, not to JAX."""
    compare_under_jax(drawn)


def test_a_function_that_writes_to_a_residual_under_jax_transformations():
    compare_under_jax(WRITES_TO_A_RESIDUAL)


def compare_under_jax(drawn):
    planned = programs.plan(drawn, hooks=False)

    def f(x):
        return programs.run(jaxgrad, planned, wrap(x) * 1)[0]._array

    with jax.enable_x64(True):
        x, weights = jnp.array(programs.START), jnp.array(programs.WEIGHTS)

        def first(x):
            return jax.grad(lambda x: (f(x) * weights).sum())(x)

        over_reverse = jax.jvp(lambda x: (first(x) * weights).sum(), (x,), (jnp.ones(3),))[1]
        second = jax.grad(lambda x: (first(x) * weights).sum())(x)
        numpy.testing.assert_allclose(over_reverse, second.sum(), rtol=1e-9, atol=1e-9)
        results = f(x), first(x), second
    compare(results, planned)


@pytest.mark.slow
@examples(8, 20)
def test_random_functions_in_forward_mode(drawn):
    """The derivative along a tangent is the product of the tangent and the gradient."""
    planned = programs.plan(drawn, hooks=False)
    forward_ad, tangent = jaxgrad.autograd.forward_ad, [0.3, -1.0, 2.0]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(leaf(), jaxgrad.tensor(tangent, dtype=jaxgrad.float64))
        value = programs.run(jaxgrad, planned, dual * 1)[0]
        moved = forward_ad.unpack_dual(value).tangent
    derivative = numpy.dot(moved.tolist(), programs.WEIGHTS)
    gradient = numpy.asarray(programs.expected(planned)[1])
    numpy.testing.assert_allclose(derivative, gradient @ tangent, rtol=1e-9, atol=1e-9)
