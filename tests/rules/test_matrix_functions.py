"""Determinants of singular matrices, exponentials of large ones, truncated pseudoinverses."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy
import pytest
from checks import count

import jaxgrad
from jaxgrad import ops
from jaxgrad.autograd import gradcheck, gradgradcheck


def by_permutations(A):
    """The determinant by Leibniz' formula."""
    n, total = A.shape[-1], 0
    for permutation in itertools.permutations(range(n)):
        pairs = itertools.combinations(permutation, 2)
        product = (-1) ** sum(first > second for first, second in pairs)
        for row, column in enumerate(permutation):
            product = product * A[row, column]
        total = total + product
    return total


def derivatives(function, A, u, v):
    """The gradient, and second derivatives in all nestings."""
    gradient = jax.grad(function)

    def first(A):
        return jax.jvp(function, (A,), (u,))[1]

    return [
        gradient(A),
        jax.jvp(first, (A,), (v,))[1],
        jax.jvp(gradient, (A,), (v,))[1],
        jax.grad(lambda A: (gradient(A) * v).sum())(A),
        jax.grad(first)(A),
    ]


@pytest.mark.slow
def test_derivatives_of_determinants_of_singular_matrices():
    draw, n = numpy.random.RandomState(3).standard_normal, 4
    with jax.enable_x64(True):
        ranks = [draw((n, rank)) @ draw((rank, n)) for rank in range(n)]
        given = [jnp.asarray(ranks), *map(jnp.asarray, draw((2, n, n, n)))]

        def of_each(function):
            return jax.jit(lambda: jax.vmap(lambda *a: derivatives(function, *a))(*given))()

        for found, expected in zip(of_each(ops.det), of_each(by_permutations), strict=True):
            numpy.testing.assert_allclose(found, expected, atol=1e-12)
            count("singular determinants")


def test_gradient_of_a_singular_determinant_on_the_tape():
    x = jaxgrad.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    jaxgrad.det(x).backward()
    assert x.grad.tolist() == [[4.0, -2.0], [-2.0, 1.0]]  # PyTorch has zeros
    count("singular determinants")


@pytest.mark.slow
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_pseudoinverse_that_drops_more_than_rounding(shape, complex):
    draw = numpy.random.RandomState(5).standard_normal
    numbers = draw(shape) + 1j * draw(shape) if complex else draw(shape)
    x = jaxgrad.tensor(numbers, requires_grad=True)
    between = float(jaxgrad.linalg.svdvals(x.detach()).mean())

    def truncated(A):
        return jaxgrad.linalg.pinv(A, atol=between)

    assert gradcheck(truncated, (x,), check_forward_ad=True)
    assert gradgradcheck(truncated, (x,))
    count("pseudoinverses", 2)


@pytest.mark.slow
def test_tolerances_of_pseudoinverse_and_rank():
    x = jaxgrad.tensor([[4.0, 0.0], [0.0, 1.0]])
    limits = jaxgrad.tensor([0.5, 2.0])
    both = jaxgrad.stack([x, x])
    for found in (
        jaxgrad.linalg.pinv(both, atol=limits),
        jaxgrad.linalg.pinv(both, rtol=limits / 4),
        jaxgrad.linalg.pinv(both, limits / 4, hermitian=True),
    ):
        assert found.tolist() == [[[0.25, 0], [0, 1]], [[0.25, 0], [0, 0]]]
    assert jaxgrad.linalg.matrix_rank(both, limits).tolist() == [2, 1]
    assert jaxgrad.linalg.matrix_rank(both, rtol=limits / 4, hermitian=True).tolist() == [2, 1]
    count("pseudoinverses", 5)


@pytest.mark.slow
def test_exponential_of_large_and_infinite_matrices():
    turn = jaxgrad.tensor([[0.0, 200.0], [-200.0, 0.0]], dtype=jaxgrad.float64)
    cos, sin = numpy.cos(200.0), numpy.sin(200.0)
    expected = [[cos, sin], [-sin, cos]]
    numpy.testing.assert_allclose(turn.matrix_exp().tolist(), expected, atol=1e-12)
    mixed = jaxgrad.stack([turn / 200, turn])  # one matrix is squared more often
    numpy.testing.assert_allclose(mixed.matrix_exp()[1].tolist(), expected, atol=1e-12)
    infinite = jaxgrad.tensor([[float("inf"), 0.0], [0.0, 1.0]])
    assert infinite.matrix_exp().isnan().any()
    half = jaxgrad.eye(2, dtype=jaxgrad.float16).matrix_exp()
    assert half.dtype is jaxgrad.float16 and abs(half[0, 0].item() - numpy.e) < 1e-3
    count("exponentials", 4)


@pytest.mark.parametrize("dtype", [jaxgrad.float32, jaxgrad.float64])
def test_exponential_of_one_number(dtype):
    """The host runs it too, whose gathers JAX describes by arrays of no dimension."""
    found = jaxgrad.matrix_exp(jaxgrad.full((1, 1), 3.0, dtype=dtype)).item()
    assert math.isclose(found, math.exp(3), rel_tol=1e-5 if dtype is jaxgrad.float32 else 1e-12)
