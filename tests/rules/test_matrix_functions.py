"""Determinants of singular matrices, exponentials of large ones, truncated pseudoinverses."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.checks import count

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
        arguments = [jnp.asarray(ranks), *map(jnp.asarray, draw((2, n, n, n)))]

        def of_each(function):
            return jax.jit(lambda: jax.vmap(lambda *a: derivatives(function, *a))(*arguments))()

        for result, expected in zip(of_each(ops.det), of_each(by_permutations), strict=True):
            numpy.testing.assert_allclose(result, expected, atol=1e-12)
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
    for inverse in (
        jaxgrad.linalg.pinv(both, atol=limits),
        jaxgrad.linalg.pinv(both, rtol=limits / 4),
        jaxgrad.linalg.pinv(both, limits / 4, hermitian=True),
    ):
        assert inverse.tolist() == [[[0.25, 0], [0, 1]], [[0.25, 0], [0, 0]]]
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
    result = jaxgrad.matrix_exp(jaxgrad.full((1, 1), 3.0, dtype=dtype)).item()
    assert math.isclose(result, math.exp(3), rel_tol=1e-5 if dtype is jaxgrad.float32 else 1e-12)


def extended(matrix):
    """The exponential in the precision that NumPy's long double has, by a Taylor series of a small
    part of the matrix less the mean of its eigenvalues.
    """
    matrix = numpy.asarray(matrix).astype(numpy.result_type(matrix, numpy.longdouble))
    identity = numpy.eye(len(matrix))
    mean = numpy.trace(matrix) / len(matrix)
    matrix = matrix - mean * identity
    size = abs(matrix).sum(-2).max(initial=0)
    halvings = max(0, math.ceil(math.log2(size)) + 2) if size else 0
    scaled = matrix / numpy.longdouble(2) ** halvings
    power = result = scaled
    for k in range(2, 24):
        power = power @ scaled / k
        result = result + power
    for _ in range(halvings):
        result = 2 * result + result @ result
    return (result + identity) * numpy.exp(mean)


DRAW = numpy.random.RandomState(7).standard_normal
TURN = numpy.array([[0.0, -1.0], [1.0, 0.0]])
EXPONENTS = {
    "zero": numpy.zeros((3, 3)),
    "one number": numpy.array([[-0.7]]),
    "a large negative number": numpy.array([[-30.0]]),
    "nilpotent": numpy.triu(10 * DRAW((5, 5)), 1),
    "not diagonalizable": numpy.array([[2.0, 1.0], [0.0, 2.0]]),
    "small": 1e-3 * DRAW((4, 4)),
    "usual": DRAW((6, 6)),
    "many rows": DRAW((40, 40)) / 6,
    "large": 9 * DRAW((3, 3)),
    "positive": 8 * abs(DRAW((3, 3))),
    "a rotation": 25 * TURN,
    "shrinking": -20 * numpy.eye(3) + DRAW((3, 3)),
    "growing and shrinking": numpy.array([[5.0, 40.0], [0.0, -30.0]]),
    "complex": 2 * DRAW((4, 4)) + 3j * DRAW((4, 4)),
}
# The error in units of rounding of the largest number, relative to the norm of the matrix, by which
# the exponential of a normal matrix multiplies the rounding of its input.
UNITS = 8


@pytest.mark.parametrize("name", EXPONENTS)
@pytest.mark.parametrize("bits", [32, 64])
def test_exponentials_are_right_to_rounding(name, bits):
    matrix = EXPONENTS[name]
    kind = f"complex{2 * bits}" if matrix.dtype.kind == "c" else f"float{bits}"
    matrix = matrix.astype(kind)
    expected, size = extended(matrix), abs(matrix).sum(0).max()
    greatest = abs(expected).max() * numpy.finfo(kind).eps
    both = jaxgrad.tensor(numpy.stack([matrix, matrix / 64])).matrix_exp()
    assert str(both.dtype) == f"torch.{kind}"
    error = abs(both[0].numpy() - expected).max()
    assert error <= UNITS * max(size, 1) * greatest
    small = extended(matrix / 64)
    assert abs(both[1].numpy() - small).max() <= UNITS * numpy.finfo(kind).eps * abs(small).max()
    count("exponentials", 2)


@pytest.mark.parametrize("name", EXPONENTS)
def test_gradients_of_exponentials(name):
    """The derivative along a direction, by the exponential of a block triangular matrix."""
    matrix, n = EXPONENTS[name], len(EXPONENTS[name])
    direction = DRAW((n, n)).astype(matrix.dtype)
    block = numpy.block([[matrix.conj().T, direction], [numpy.zeros((n, n)), matrix.conj().T]])
    expected = extended(block)[:n, n:]
    x = jaxgrad.tensor(matrix, requires_grad=True)
    (gradient,) = jaxgrad.autograd.grad(x.matrix_exp(), x, jaxgrad.tensor(direction))
    scale = abs(expected).max() * max(abs(matrix).sum(0).max(), 1)
    assert abs(gradient.numpy() - expected).max() <= 20 * numpy.finfo(float).eps * scale
    count("exponentials")


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda function: function, jaxgrad.compile])
@pytest.mark.parametrize("function", ["pinv", "lstsq", "svd", "svdvals"])
def test_no_array_of_a_tall_matrix_has_the_square_of_its_rows(function, wrap):
    """It would have four terabytes."""
    rows = 2**20
    x = jaxgrad.ones(rows, 1, requires_grad=True)
    functions = {
        "pinv": lambda x: jaxgrad.linalg.pinv(x).sum(),
        "lstsq": lambda x: jaxgrad.linalg.lstsq(x, jaxgrad.ones(rows, 1)).solution.sum(),
        "svd": lambda x: jaxgrad.linalg.svd(x, full_matrices=False).S.sum(),
        "svdvals": lambda x: jaxgrad.linalg.svdvals(x).sum(),
    }
    (gradient,) = jaxgrad.autograd.grad(wrap(functions[function])(x), x)
    # with s = sum(x) and q = sum(x ** 2) = rows they are s / q, s / q and twice sqrt(q)
    expected = -1 / rows if function in ("pinv", "lstsq") else rows**-0.5
    numpy.testing.assert_allclose(gradient.numpy(), expected, 1e-3)
    count("memory")


def test_tolerances_of_pinv_are_real():
    for role in ("rcond", "atol", "rtol"):
        tolerance = {role: jaxgrad.ones((), dtype=jaxgrad.complex64)}
        with pytest.raises(RuntimeError, match=f"{role} tensor of complex type is not supported"):
            jaxgrad.linalg.pinv(jaxgrad.eye(3), **tolerance)
