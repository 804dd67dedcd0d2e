"""Norms, distances and contractions: errors, derivatives at zeros, orders, views."""

import jax
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops
from jaxgrad.functions import einsum

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
    ("torch.renorm(zeros(2), 2, 0, 1.0)", RuntimeError, "renorm: input needs at least 2 dimens"),
    ("torch.renorm(zeros(2, 2), 2, 0, -0.7)", RuntimeError, "renorm: expected maxnorm to be >= 0"),
    ("torch.dist(tensor([1]), tensor([2]))", RuntimeError, "norm(): input dtype should be either"),
    (
        "torch.cdist(zeros(2, 3), zeros(2, 2))",
        RuntimeError,
        "X1 and X2 must have the same number of columns. X1: 3 X2: 2",
    ),
    ("torch.cdist(zeros(2), zeros(2))", RuntimeError, "cdist only supports at least 2D tensors"),
    ("torch.pdist(zeros(2))", RuntimeError, "pdist only supports 2D tensors, got: 1D"),
    ("torch.cross(zeros(2), zeros(2))", RuntimeError, "no dimension of size 3 in input"),
    (
        "torch.linalg.cross(zeros(2, 3), zeros(3))",
        RuntimeError,
        "linalg.cross: inputs must have the same number of dimensions.",
    ),
    ("torch.trace(zeros(2))", RuntimeError, "trace: expected a matrix, but got tensor with dim 1"),
    (
        "torch.einsum('ii', zeros(2, 3))",
        RuntimeError,
        "einsum(): subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
    ),
    (
        "torch.einsum('i,i', zeros(2), zeros(3))",
        RuntimeError,
        "subscript i has size 3 for operand 1 which does not broadcast with previously seen size 2",
    ),
    (
        "torch.einsum('i,j', zeros(2))",
        RuntimeError,
        "einsum(): fewer operands were provided than specified in the equation",
    ),
    (
        "torch.einsum('i->j', zeros(2))",
        RuntimeError,
        "output subscript j does not appear in the equation for any input operand",
    ),
    (
        "torch.einsum('..i', zeros(2))",
        RuntimeError,
        "einsum(): found '.' for operand 0 that is not part of any ellipsis",
    ),
    (
        "torch.einsum(zeros(2), [52])",
        ValueError,
        "einsum(): subscript in subscript list is not within the valid range [0, 52)",
    ),
    (
        "torch.tensordot(zeros(2), zeros(3), ([0], [0]))",
        RuntimeError,
        "contracted dimensions need to match, but first has size 2 in dim 0 and second has size 3",
    ),
    (
        "torch.linalg.multi_dot([zeros(2, 3), zeros(2, 3)])",
        RuntimeError,
        "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied",
    ),
    (
        "torch.cov(zeros(2, 3), fweights=tensor([1, -2, 3]))",
        RuntimeError,
        "cov(): fweights cannot be negative",
    ),
    ("torch.linalg.vander(zeros(3), N=1)", RuntimeError, "N must be greater than 1."),
    ("torch.combinations(zeros(2, 2))", RuntimeError, "Expect a 1D vector, but got shape [2, 2]"),
]

ANSWERS = [
    ("torch.linalg.vector_norm(tensor([300.0, 300.0], dtype=torch.float16))", "float16", 424.25),
    ("torch.linalg.vector_norm(tensor([nan, 1.0]), -inf)", "float32", nan := float("nan")),
    ("torch.linalg.matrix_norm(zeros(0, 2), inf)", "float32", 0.0),
    ("torch.norm(zeros(2, 2, dtype=torch.complex64), dim=1, keepdim=True)", "float32", [[0], [0]]),
    ("torch.trace(tensor([[2, 1]], dtype=torch.int8))", "int64", 2),
    ("torch.einsum('i->', tensor([1, 2], dtype=torch.int8))", "int64", 3),
    ("torch.einsum(',->', tensor(2.0), tensor(3.0))", "float32", 6.0),
    ("torch.einsum('i,j', tensor([1, 2]), tensor([0.5]))", "float32", [[0.5], [1.0]]),
    ("torch.pdist(zeros(1, 2))", "float32", []),
    ("torch.combinations(tensor([1, 2]), 0)", "int64", []),
    ("torch.cov(tensor(2.0))", "float32", nan),
]


@refusals(REFUSED)
def test_refusals_are_pytorchs(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
@pytest.mark.filterwarnings("ignore:cov")
def test_answers_are_pytorchs(call, dtype, values):
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


@pytest.mark.slow
def test_second_derivative_of_distances_of_equal_rows_is_finite():
    x = jaxgrad.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=True)
    for distances in (jaxgrad.pdist(x), jaxgrad.cdist(x, x), ops._euclidean_dist(x, x)):
        (first,) = jaxgrad.autograd.grad(distances.sum(), x, create_graph=True)
        (second,) = jaxgrad.autograd.grad(first.square().sum(), x)
        assert first.tolist() == second.tolist() == [[0, 0], [0, 0]]


@pytest.mark.slow
def test_gradient_of_vander():
    x = jaxgrad.tensor([2.0, 0.0, -3.0], requires_grad=True)
    jaxgrad.vander(x, 4).sum().backward()
    assert x.grad.tolist() == [1 + 2 * 2 + 3 * 4, 1, 1 - 6 + 27]


@pytest.mark.slow
def test_gradient_of_a_covariance_with_weights():
    random = numpy.random.RandomState(0)
    x = jaxgrad.tensor(random.uniform(-1, 1, (2, 4)), requires_grad=True)
    weights = jaxgrad.tensor(random.uniform(0.5, 1, 4), requires_grad=True)
    counts = jaxgrad.tensor([1, 2, 3, 1])
    assert jaxgrad.autograd.gradcheck(
        lambda x, w: jaxgrad.cov(x, fweights=counts, aweights=w), (x, weights)
    )


def test_chain_matmul_is_deprecated():
    x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match="chain_matmul is deprecated"):
        product = jaxgrad.chain_matmul(x, x, x)
    assert (product == x @ x @ x).all()


def test_covariance_without_degrees_of_freedom_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        jaxgrad.cov(jaxgrad.tensor([[1.0, 2.0]]), correction=2)


def test_names_of_torch_and_nn_functional_are_the_same_functions():
    for name in ("bilinear", "cosine_similarity", "pairwise_distance", "pdist"):
        assert getattr(jaxgrad, name) is getattr(jaxgrad.nn.functional, name)


def test_einsum_multiplies_in_the_cheapest_order():
    def order(equation, *shapes):
        return einsum._plan(equation, shapes).order

    wide, narrow = (100, 100), (100,)
    assert order("ab,bc,cd,d->a", wide, wide, wide, narrow) == [(2, 3), (1, 2), (0, 1)]
    assert order("a,ab,bc,cd->d", narrow, wide, wide, wide) == [(0, 1), (0, 2), (0, 1)]
    many = ",".join("abcdefghijk"[n : n + 2] for n in range(10))  # more than are tried at once
    assert len(order(many + "->ak", *[(3, 3)] * 10)) == 9


def test_einsum_of_one_operand_is_a_view():
    x = jaxgrad.zeros(2, 3)
    turned, same = jaxgrad.einsum("ij->ji", x), jaxgrad.einsum("ij->ij", x)
    x[0, 1] = 5.0
    assert turned[1, 0].item() == same[0, 1].item() == 5 and same is not x


def test_einsum_of_many_operands_against_products():
    random = numpy.random.RandomState(0)
    arrays = [random.uniform(-1, 1, (3, 3)) for _ in range(10)]
    terms = ",".join("abcdefghijk"[n : n + 2] for n in range(10))
    product = jaxgrad.einsum(terms + "->ak", *map(jaxgrad.tensor, arrays))
    numpy.testing.assert_allclose(product.numpy(), numpy.linalg.multi_dot(arrays), 1e-12)


def test_out_receives_the_result():
    x, out = jaxgrad.tensor([3.0, 4.0]), jaxgrad.empty(())
    assert jaxgrad.norm(x, out=out) is out and out.item() == 5
    assert jaxgrad.linalg.vector_norm(x, 1, out=out) is out and out.item() == 7
    target = jaxgrad.empty(2, 2)
    assert jaxgrad.tensordot(x, x, 0, out=target)[1, 1].item() == 16
