"""Factorizations and solvers: errors, dtypes and singular matrices as in PyTorch, and derivatives
that PyTorch lacks, against finite differences."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import derivatives
from helpers.checks import count
from helpers.problems import pack, unpack
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad
from jaxgrad import ops

SINGULAR = "input matrix is singular"
NOT_POSITIVE = "The factorization could not be completed because the input is not positive-definite"

REFUSED = [
    ("torch.linalg.cholesky(-torch.eye(2))", RuntimeError, f"linalg.cholesky: {NOT_POSITIVE}"),
    (
        "torch.linalg.cholesky(torch.stack([torch.eye(2), tensor([[1.0, 2.0], [2.0, 1.0]])]))",
        RuntimeError,
        f"(Batch element 1): {NOT_POSITIVE} (the leading minor of order 2 is not",
    ),
    ("torch.linalg.cholesky_ex(-torch.eye(2), check_errors=True)", RuntimeError, NOT_POSITIVE),
    ("torch.cholesky(-torch.eye(2))", RuntimeError, f"cholesky: {NOT_POSITIVE}"),
    ("torch.linalg.cholesky(zeros(2, 3))", RuntimeError, "must be batches of square matrices"),
    ("torch.linalg.cholesky(zeros(3))", RuntimeError, "must have at least 2 dimensions"),
    (
        "torch.linalg.cholesky(tensor([[1]]))",
        RuntimeError,
        "Expected a floating point or complex tensor as input. Got Long",
    ),
    (
        "torch.linalg.cholesky(tensor([[1.0]], dtype=torch.half))",
        NotImplementedError,
        "\"cholesky_cpu\" not implemented for 'Half'",
    ),
    (
        "torch.linalg.inv(zeros(2, 2))",
        RuntimeError,
        f"linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because "
        f"the {SINGULAR}",
    ),
    ("torch.linalg.inv(tensor([[1.0]], dtype=torch.half))", RuntimeError, "Low precision dtypes"),
    ("torch.inverse(zeros(3, 2, 2))", RuntimeError, "(Batch element 0): The diagonal element 1"),
    ("torch.linalg.inv_ex(zeros(2, 2), check_errors=True)", RuntimeError, SINGULAR),
    ("torch.linalg.solve(zeros(2, 2), zeros(2))", RuntimeError, SINGULAR),
    (
        "torch.linalg.solve(torch.eye(2), zeros(3, 2))",
        RuntimeError,
        "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x2)",
    ),
    (
        "torch.linalg.solve(torch.eye(2), zeros(2, dtype=torch.float64))",
        RuntimeError,
        "Expected A and B to have the same dtype, but found A of type Float and B of type Double",
    ),
    ("torch.cholesky_inverse(zeros(2, 2))", RuntimeError, SINGULAR),
    (
        "torch.linalg.lu_factor(zeros(2, 2))",
        RuntimeError,
        "U[1,1] is zero and using it on lu_solve",
    ),
    (
        "torch.linalg.lu_solve(torch.eye(1), tensor([1]), zeros(1, 1))",
        RuntimeError,
        "pivots should be a Tensor of scalar type torch.int32",
    ),
    ("torch.linalg.qr(zeros(2, 2), mode='x')", RuntimeError, "qr received unrecognized mode 'x'"),
    (
        "torch.linalg.qr(torch.ones(3, 2, requires_grad=True), 'complete')[1].sum().backward()",
        RuntimeError,
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols",
    ),
    ("torch.linalg.lstsq(zeros(3, 2), zeros(2))", RuntimeError, "input.size(-2) should match"),
    ("torch.linalg.lstsq(zeros(3, 2), zeros(1, 3, 2))", RuntimeError, "(input.dim() - other.dim()"),
    ("torch.linalg.lstsq(zeros(3, 4, 2), zeros(4))", RuntimeError, "(input.dim() - other.dim()"),
    *[
        (f"torch.ormqr({', '.join(f'zeros({s})' for s in shapes)})", RuntimeError, words)
        for shapes, words in (
            (("1, 3, 2", "2", "3, 2"), "Expected tau to have one dimension less than input"),
            (("3, 2", "2", "1, 3, 2"), "Expected other to have the same number of dimensions"),
            (("2, 3, 2", "1, 2", "2, 3, 2"), "Expected batch dimensions of tau to be equal"),
            (("2, 3, 2", "2, 2", "3, 3, 2"), "Expected batch dimensions of other to be equal"),
        )
    ],
    (
        "torch.orgqr(zeros(2, 3), zeros(2))",
        RuntimeError,
        "must be greater than or equal to input.sh",
    ),
    ("torch.linalg.tensorinv(zeros(2, 3), ind=1)", RuntimeError, "prod(self.shape[ind:]) =="),
]

ANSWERS = [
    ("torch.linalg.cholesky_ex(-torch.eye(2)).info", "int32", 1),
    ("torch.linalg.cholesky_ex(torch.diag(tensor([1.0, 2.0, -1.0]))).info", "int32", 3),
    ("torch.linalg.inv_ex(tensor([[1.0, 1.0], [1.0, 1.0]])).info", "int32", 2),
    ("torch.linalg.solve_ex(zeros(2, 2), zeros(2)).info", "int32", 1),
    ("torch.linalg.lu_factor_ex(zeros(3, 2)).info", "int32", 1),
    ("torch.linalg.ldl_factor_ex(tensor([[0.0, 1.0], [1.0, 0.0]])).pivots", "int32", [-2, -2]),
    ("torch.linalg.ldl_factor_ex(zeros(2, 2)).info", "int32", 1),
    ("torch.linalg.lstsq(torch.ones(3, 2), torch.ones(3)).rank", "int64", 1),
    ("torch.linalg.qr(zeros(3, 0), mode='complete').Q.diagonal()", "float32", [1.0, 1.0, 1.0]),
    ("torch.lu_unpack(torch.eye(1), tensor([1]).int(), unpack_data=False).L", "float32", []),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


def test_error_of_singular_matrices_has_a_name():
    with pytest.raises(jaxgrad.linalg.LinAlgError):
        jaxgrad.linalg.inv(jaxgrad.zeros(2, 2))
    assert issubclass(jaxgrad.linalg.LinAlgError, RuntimeError)
    count("errors")


def test_a_trace_knows_no_values_and_raises_nothing():
    function = jaxgrad.jit(jaxgrad.linalg.cholesky)
    assert function(-jaxgrad.eye(2)).isnan().any()
    assert jaxgrad.jit(ops.cholesky)(-jaxgrad.eye(2)).isnan().any()
    assert not jaxgrad.jit(ops.inverse)(jaxgrad.zeros(2, 2)).isfinite().any()
    count("errors", 3)


def close(result, expected):
    numpy.testing.assert_allclose(result.numpy(), expected.numpy(), 1e-6, 1e-9)


# what the names of early PyTorch return


@pytest.mark.slow
@pytest.mark.parametrize("upper", [True, False])
def test_pstrf_exchanges_rows_by_the_greatest_pivot(upper):
    vectors = numpy.random.RandomState(0).randn(4, 2)
    matrix = jaxgrad.tensor(vectors @ vectors.T + numpy.diag([0.0, 0.0, 3.0, 9.0]))
    factor, order = ops.pstrf(matrix, upper)
    order = order.long() - 1
    square = factor.mH @ factor if upper else factor @ factor.mH
    close(square, matrix[order][:, order])
    pivots = factor.diagonal()
    assert (pivots[:-1] >= pivots[1:]).all() and order[
        0
    ].item() == matrix.diagonal().argmax().item()
    count("answers", 2)


@pytest.mark.slow
def test_pstrf_stops_at_the_rank():
    vectors = jaxgrad.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0]], dtype=jaxgrad.float64)
    matrix = vectors.mH @ vectors
    factor, order = ops.pstrf(matrix)
    assert not factor[2].any()
    order = order.long() - 1
    close(factor.mH @ factor, matrix[order][:, order])
    assert not ops.pstrf(matrix, tol=100.0).u.any()
    count("answers", 3)


@pytest.mark.slow
def test_gels_returns_what_is_left_over_below_the_solution():
    A, B = (jaxgrad.tensor(numpy.random.RandomState(seed).randn(4, 2)) for seed in (0, 1))
    result, solution = ops.gels(B, A).solution, jaxgrad.linalg.lstsq(A, B).solution
    close(result[:2], solution)
    close((result[2:] ** 2).sum(0), ((A @ solution - B) ** 2).sum(0))
    wide, right = A.mH, B[:2]
    close(ops.gels(right, wide).solution, jaxgrad.linalg.lstsq(wide, right).solution)
    count("answers", 3)


@pytest.mark.slow
def test_old_names_take_the_right_side_first():
    A = jaxgrad.tensor([[2.0, 1.0], [4.0, 4.0]], dtype=jaxgrad.float64)
    B = jaxgrad.tensor([[1.0], [3.0]], dtype=jaxgrad.float64)
    expected = jaxgrad.linalg.solve(A, B)
    LU, pivots = ops.btrifact(A)
    close(ops.gesv(B, A).solution, expected)
    close(ops.gesv(B, A).LU, LU)
    close(ops.btrifact_with_info(A).info, jaxgrad.tensor(0))
    close(ops.btrisolve(B, LU, pivots), expected)
    close(A.triu() @ ops.trtrs(B, A).solution, B)
    close(ops.potri(A), (A.triu().mH @ A.triu()).inverse())
    count("answers", 6)


def test_old_names_raise_for_a_singular_matrix():
    zeros, right = jaxgrad.zeros(2, 2), jaxgrad.ones(2, 1)
    for call in (lambda: ops.gesv(right, zeros), lambda: ops.btrifact(zeros)):
        with pytest.raises(jaxgrad.linalg.LinAlgError):
            call()
    assert ops.btrifact_with_info(zeros).info.item() == 1
    count("errors", 3)


# gradients


def test_gradient_of_cholesky_is_hermitian():
    """One triangle is read, and both have the gradient; recorded from PyTorch."""
    x = jaxgrad.tensor([[4.0, 9.0], [2.0, 5.0]], requires_grad=True)
    jaxgrad.linalg.cholesky(x).sum().backward()
    close(x.grad, jaxgrad.tensor([[0.1875, 0.125], [0.125, 0.25]]))
    count("answers")


@pytest.mark.slow
def test_gradient_is_zero_where_a_factor_is_not_read():
    for upper in (True, False):
        x = jaxgrad.tensor([[2.0, 1.0], [3.0, 4.0]], requires_grad=True)
        for call in (ops.cholesky_inverse, lambda f, u: ops.cholesky_solve(f.detach(), f, u)):
            x.grad = None
            call(x, upper).sum().backward()
            assert x.grad[(1, 0) if upper else (0, 1)] == 0 and (x.grad != 0).sum() == 3
    count("answers", 4)


@pytest.mark.slow
def test_last_pivot_may_be_zero():
    """LU and QR of a singular matrix with independent first columns have derivatives."""
    singular = numpy.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [0.0, 1.0, 1.0]])
    check_derivatives(lambda a: ops.linalg_lu(a)[1:], singular)
    assert ops.linalg_lu(jnp.asarray(singular))[2][2, 2] == 0


@pytest.mark.parametrize(
    ("call", "matrix"),
    [
        (lambda a: ops.linalg_lu(a).U, [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]),
        (lambda a: ops.linalg_lu_factor_ex(a).LU, [[0.0, 0.0], [0.0, 0.0]]),
        (lambda a: ops.linalg_qr(a).Q, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        (lambda a: ops.pstrf(a).u, [[1.0, 0.0], [0.0, 0.0]]),
        (lambda a: ops.linalg_ldl_factor_ex(a).LD, [[0.0, 0.0], [0.0, 1.0]]),
    ],
    ids=["lu", "lu_factor_ex", "qr", "pstrf", "ldl_factor_ex"],
)
def test_gradient_that_does_not_exist_raises(call, matrix):
    x = jaxgrad.tensor(matrix, requires_grad=True)
    with pytest.raises(jaxgrad.linalg.LinAlgError, match="does not exist at this value: it exists"):
        call(x).sum().backward()
    count("errors")


LARGE = 4 * numpy.eye(3)


def draw(*shape, real=False):
    random = numpy.random.RandomState(shape[0])
    numbers = random.randn(*shape)
    return numbers if real else numbers + 1j * random.randn(*shape)


def positive(matrix):
    return matrix @ matrix.conj().T + jnp.eye(len(matrix))


def indefinite(matrix):
    return matrix + matrix.conj().T


PIVOTS = numpy.array([2, 3, 3], "int32")
PAIRS = numpy.array([-3, -3, -4, -4], "int32")

DERIVATIVES = {
    "geqrf, tall": (ops.geqrf, draw(4, 2)),
    "geqrf, square": (ops.geqrf, draw(3, 3, real=True)),
    "gels, tall": (ops.gels, draw(3, 1, real=True), draw(3, 2, real=True)),
    "gesv": (lambda b, a: ops.gesv(b, a)[0], draw(3, 2), draw(3, 3) + LARGE),
    "btrifact": (lambda a: ops.btrifact(a)[0], draw(3, 3)),
    "pstrf": (lambda a: ops.pstrf(positive(a))[0], draw(3, 3)),
    "qr, mode r": (lambda a: ops.linalg_qr(a, mode="r")[1], draw(4, 3)),
    "lu without pivots": (
        lambda a: ops.linalg_lu_factor_ex(a, pivot=False)[0],
        draw(3, 3, real=True) + LARGE,
    ),
    "ldl": (lambda a: ops.linalg_ldl_factor_ex(a + a.T)[0], draw(4, 4) * (1 - numpy.eye(4))),
    "ldl, Hermitian": (
        lambda a: ops.linalg_ldl_factor_ex(indefinite(a), hermitian=True)[0],
        draw(4, 4) * (1 - numpy.eye(4)),
    ),
    "ldl_solve": (
        lambda a, b: ops.linalg_ldl_solve(a, PAIRS, b, hermitian=True),
        draw(4, 4) + 2 * numpy.eye(4),
        draw(4, 1),
    ),
    "lstsq of low rank, to its tangents": (
        lambda a, b, c: ops.linalg_lstsq(a @ b, c)[0],
        draw(3, 1, real=True),
        draw(1, 2, real=True),
        draw(3, 1, real=True),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_that_pytorch_lacks(name):
    check_derivatives(*DERIVATIVES[name])


def check_derivatives(function, *arrays):
    """Reverse and forward mode and the nestings of both against finite differences."""

    def numbers(vector):
        results = function(*unpack(vector, arrays))
        results = results if isinstance(results, list | tuple) else [results]
        return pack([r for r in results if jnp.issubdtype(r.dtype, jnp.inexact)])

    class Problem:
        pass

    Problem.function = staticmethod(numbers)
    random = numpy.random.RandomState(1)
    point = pack(arrays)
    with jax.enable_x64(True):
        size = jax.eval_shape(numbers, jnp.asarray(point)).size
        v, w, u = (random.uniform(-1, 1, n) for n in (point.size, point.size, size))

    def second_order_results(problem, point, v, w, u):
        results = derivatives.second_derivatives(problem, point, v, w, u)
        change = derivatives.slope(problem.function, point, v)
        gradient = derivatives.reverse(problem.function, point, u)
        return results | {"change": change, "part": gradient @ v, "expected part": u @ change}

    results = derivatives.traced(second_order_results, Problem, point, v, w, u)
    findings = derivatives.Findings()
    for name, expected in (
        ("tangent", "change"),
        ("part", "expected part"),
        ("reverse over reverse", "differences of reverse"),
        ("forward over reverse", "differences of reverse"),
        ("reverse over forward", "differences of reverse"),
        ("forward over forward", "differences of forward"),
    ):
        findings.close(name, results[name], results[expected], (1e-5, 1e-7), finite=True)
    count("derivatives", findings.compared)
    assert not findings, "\n".join(findings)


def test_pivots_that_are_no_rows():
    packed, right = jaxgrad.eye(2), jaxgrad.ones(2, 1)
    for pivots in ([0, 1], [1, 3]):
        pivots = jaxgrad.tensor(pivots, dtype=jaxgrad.int32)
        for call in (
            lambda p=pivots: jaxgrad.lu_unpack(packed, p),
            lambda p=pivots: jaxgrad.linalg.lu_solve(packed, p, right),
            lambda p=pivots: jaxgrad.lu_solve(right, packed, p),
            lambda p=pivots: jaxgrad.linalg.ldl_solve(packed, p, right),
        ):
            with pytest.raises(
                RuntimeError, match=r"must be between 1 and LU.size\(-2\) inclusive"
            ):
                call()
