"""Norms, products and traces: errors, and derivatives at zeros."""

import jax
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

REFUSED = [
    (
        "torch.linalg.vector_norm(tensor([1, 2]))",
        RuntimeError,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
    ),
    (
        "torch.linalg.vector_norm(zeros(2).double(), dtype=torch.float32)",
        RuntimeError,
        "linalg.vector_norm: the dtype of the input (Double) should be convertible without",
    ),
    (
        "torch.linalg.vector_norm(tensor([1.0]), dtype=torch.complex64)",
        RuntimeError,
        "linalg.vector_norm: dtype should be real for real inputs, but got ComplexFloat",
    ),
    (
        "torch.linalg.vector_norm(zeros(0), inf)",
        RuntimeError,
        "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation",
    ),
    (
        "torch.linalg.norm(zeros(2, 2), 'nuc', dtype=torch.complex64)",
        RuntimeError,
        "linalg.matrix_norm: dtype should be real for real inputs, but got ComplexFloat",
    ),
    (
        "torch.linalg.matrix_norm(zeros(2, 2), 3)",
        RuntimeError,
        "linalg.matrix_norm: Order 3 not supported.",
    ),
    (
        "torch.linalg.matrix_norm(zeros(2, 2), dim=(0, -2))",
        RuntimeError,
        "linalg.matrix_norm: dims must be different. Got (0, 0)",
    ),
    (
        "torch.linalg.norm(zeros(2, 2, 2), 2)",
        RuntimeError,
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.",
    ),
    (
        "torch.linalg.norm(zeros(2), out=zeros(2, dtype=torch.float64))",
        RuntimeError,
        "linalg.norm expected out tensor dtype Float but got: Double",
    ),
    (
        "torch.linalg.multi_dot([zeros(2, 2)] * 2, out=zeros(0, dtype=torch.float64))",
        RuntimeError,
        "multi_dot(): expected out tensor to have dtype",
    ),
    (
        "torch.linalg.householder_product(zeros(3, 3), tensor([1, 1, 1]))",
        RuntimeError,
        "tau dtype Long does not match input dtype Float",
    ),
    ("torch.linalg.matrix_norm(zeros(3, 0), -2)", IndexError, "to have non-zero size"),
    ("torch.linalg.matrix_norm(zeros(0, 3), -inf)", IndexError, "to have non-zero size"),
    ("torch.linalg.matrix_norm(zeros(2, 3, 0), -1)", IndexError, "to have non-zero size"),
    ("torch.renorm(zeros(2), 2, 0, 1.0)", RuntimeError, "renorm: input needs at least 2 dimens"),
    ("torch.renorm(zeros(2, 2), 2, 0, -0.7)", RuntimeError, "renorm: expected maxnorm to be >= 0"),
    ("torch.cross(zeros(2), zeros(2))", RuntimeError, "no dimension of size 3 in input"),
    ("torch.cross(zeros(1), zeros(3))", RuntimeError, "no dimension of size 3 in input"),
    (
        "torch.cross(zeros(5, 3), zeros(3, 5))",
        RuntimeError,
        "linalg.cross: inputs dimension 1 must have length 3. Got 3 and 5",
    ),
    (
        "torch.cross(zeros(2, 3), zeros(2, 3, 4))",
        RuntimeError,
        "linalg.cross: inputs must have the same number of dimensions.",
    ),
    (
        "torch.linalg.matrix_rank(zeros(2, 2), rtol=tensor(1j))",
        RuntimeError,
        "torch.linalg.matrix_rank: rtol tensor of complex type is not supported. Got ComplexFloat",
    ),
    (
        "torch.linalg.cross(zeros(2, 3), zeros(3))",
        RuntimeError,
        "linalg.cross: inputs must have the same number of dimensions.",
    ),
    ("torch.trace(zeros(2))", RuntimeError, "trace: expected a matrix, but got tensor with dim 1"),
]

ANSWERS = [
    ("torch.linalg.vector_norm(tensor([300.0, 300.0], dtype=torch.float16))", "float16", 424.25),
    ("torch.linalg.vector_norm(tensor([nan, 1.0]), -inf)", "float32", nan := float("nan")),
    ("torch.linalg.matrix_norm(zeros(0, 2), inf)", "float32", 0.0),
    ("torch.linalg.matrix_norm(zeros(0, 2), -1)", "float32", 0.0),
    ("torch.norm(zeros(2, 2, dtype=torch.complex64), dim=1, keepdim=True)", "float32", [[0], [0]]),
    ("torch.linalg.vector_norm(tensor([1.0, 2.0]), nan)", "float32", nan),
    ("torch.trace(tensor([[2, 1]], dtype=torch.int8))", "int64", 2),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


ORDERS = [0, 0.5, 1, 1.5, 2, 3, 4, float("inf"), -float("inf")]


@pytest.mark.slow
@pytest.mark.parametrize("p", ORDERS)
def test_derivatives_of_norms_at_zero_are_zero_and_finite(p):
    """As PyTorch's: 0. The second derivative exists at no zero vector, and must not be NaN."""
    for point in ([0.0, 0.0], [0.0, 1.0], [0j, 0j], [0j, 1j]):
        x = jaxgrad.tensor(point, requires_grad=True)
        (first,) = jaxgrad.autograd.grad(ops.norm(x, p), x, create_graph=True)
        second = [0, 0]
        if first.requires_grad:
            (second,) = jaxgrad.autograd.grad(first.abs().square().sum(), x)
        derivatives = numpy.asarray([first.tolist(), numpy.asarray(second).tolist()])
        assert numpy.isfinite(derivatives).all() and derivatives[0, 0] == 0
        count("derivatives at zero")


@pytest.mark.slow
def test_fourth_derivative_of_an_even_norm_at_zero():
    """(1 + x**4) ** (1/4) is 1 + x**4 / 4 + ..."""

    def norm(x):
        return ops.linalg_vector_norm(jax.numpy.stack([x, jax.numpy.ones_like(x)]), 4)

    assert jax.grad(jax.grad(jax.grad(jax.grad(norm))))(0.0) == pytest.approx(6)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0])
def test_derivatives_of_backward_operators(p):
    """PyTorch has none. All inputs are independent."""
    random = numpy.random.RandomState(0)
    x1, x2, grad = (
        jaxgrad.tensor(random.uniform(-1, 1, shape), requires_grad=True)
        for shape in ((3, 2), (2, 2), (3, 2))
    )
    distance = (jaxgrad.cdist(x1, x2, p).detach() + 0.5).requires_grad_()

    def of_cdist(grad, x1, x2, distance):
        return ops._cdist_backward(grad, x1, x2, p, distance)

    def of_pdist(grad, x, distance):
        return ops._pdist_backward(grad, x, p, distance)

    assert jaxgrad.autograd.gradcheck(of_cdist, (grad, x1, x2, distance))
    pairs = [tensor.detach()[:, 0].clone().requires_grad_() for tensor in (grad, distance)]
    assert jaxgrad.autograd.gradcheck(of_pdist, (pairs[0], x1, pairs[1]))


def test_distance_of_booleans():
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        jaxgrad.dist(jaxgrad.tensor([True]), jaxgrad.tensor([False]))
