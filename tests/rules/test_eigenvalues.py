"""Eigenvalues and singular values: derivatives where values are equal or 0, and errors."""

import functools

import jax
import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import check_refusal, refusals

import jaxgrad
from jaxgrad import ops
from jaxgrad.autograd import gradcheck

REFUSED = [
    ("torch.linalg.svd(zeros(3))", RuntimeError, "must have at least 2 dimensions"),
    (
        "torch.linalg.eigh(zeros(2, 3))",
        RuntimeError,
        "linalg.eigh: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
    (
        "torch.linalg.det(zeros(2, 2, dtype=torch.int64))",
        RuntimeError,
        "linalg.det: Expected a floating point or complex tensor as input. Got Long",
    ),
    (
        "torch.linalg.svdvals(zeros(2, 2, dtype=torch.half))",
        NotImplementedError,
        "not implemented for 'Half'",
    ),
    (
        "torch.linalg.eigh(zeros(2, 2), 'X')",
        RuntimeError,
        "Expected UPLO argument to be 'L' or 'U', but got X",
    ),
    (
        "torch.linalg.pinv(zeros(3))",
        RuntimeError,
        "expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
    ),
    ("torch.linalg.cond(zeros(2, 2), 3)", RuntimeError, "got an invalid norm type: 3"),
    ("torch.linalg.matrix_power(zeros(2, 3), 2)", RuntimeError, "2 by 3 matrices"),
    (
        "torch.lobpcg(zeros(2, 2), 1)",
        ValueError,
        "LOBPCG algorithm is not applicable when the number of A rows (=2) is smaller than 3 x the",
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


def matrix(rows, requires_grad=True):
    return jaxgrad.tensor(rows, dtype=jaxgrad.float64, requires_grad=requires_grad)


def random(*shape, complex=False):
    draw = numpy.random.RandomState(7).standard_normal
    numbers = draw(shape) + 1j * draw(shape) if complex else draw(shape)
    return jaxgrad.tensor(numbers, requires_grad=True)


def gradient(function, x):
    return jaxgrad.autograd.grad(function(x), x)[0].tolist()


# eigenvalues 1, 1, 3 and singular values 3, 1, 1; the vectors of 3 are (1, 1, 0)
EQUAL = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
ZERO = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]


def last_projector(A):
    last = jaxgrad.linalg.eigh(A).eigenvectors[..., -1:]
    return (last @ last.mH)[0, 2]


def first_left(A):
    U, _, Vh = jaxgrad.linalg.svd(A)
    return (U[:, :1] @ Vh[:1])[0, 2]


def polar_factor(A):
    U, _, Vh = jaxgrad.linalg.svd(A)
    return (U @ Vh * jaxgrad.tensor([[1, 2], [5, 3]], dtype=A.dtype)).real.sum()


def projector(A):
    equal = jaxgrad.linalg.eigh(A).eigenvectors[..., :-1]
    return -(equal @ equal.mH)[0, 2].real


def identity(A):
    vectors = jaxgrad.linalg.eigh(A).eigenvectors
    return (vectors @ vectors.mH * jaxgrad.tensor([[1, 2], [5, 3]], dtype=A.dtype)).real.sum()


EXISTING = [
    (lambda A: jaxgrad.linalg.eigvalsh(A).sum(), EQUAL, numpy.eye(3)),
    (lambda A: jaxgrad.linalg.eigh(A).eigenvalues.sum(), EQUAL, numpy.eye(3)),
    (lambda A: jaxgrad.linalg.svdvals(A).sum(), EQUAL, numpy.eye(3)),
    (lambda A: jaxgrad.linalg.svd(A).S.sum(), EQUAL, numpy.eye(3)),
    (lambda A: (jaxgrad.linalg.svd(A).S ** 2).sum(), ZERO, 2 * numpy.array(ZERO)),
    (lambda A: jaxgrad.linalg.eigvals(A).real.sum(), EQUAL, numpy.eye(3)),
    (lambda A: jaxgrad.linalg.eig(A).eigenvalues.real.sum(), EQUAL, numpy.eye(3)),
    # the vector of an eigenvalue that is alone moves by V (V^H dA v) / (3 - 1)
    (last_projector, EQUAL, [[0, 0, 0.125], [0, 0, 0.125], [0.125, 0.125, 0]]),
    (first_left, EQUAL, [[0, 0, 0.1875], [0, 0, 0.1875], [0.0625, 0.0625, 0]]),
    # functions that do not depend on the choice among all the vectors of equal values
    (polar_factor, IDENTITY, [[0, -1.5], [1.5, 0]]),
    (projector, EQUAL, [[0, 0, 0.125], [0, 0, 0.125], [0.125, 0.125, 0]]),
    (identity, IDENTITY, numpy.zeros((2, 2))),
]


@pytest.mark.parametrize(("function", "rows", "expected"), EXISTING)
def test_the_derivative_at_equal_values_that_exists(function, rows, expected):
    derivative = numpy.array(gradient(function, matrix(rows)))
    if function in (last_projector, projector):
        derivative = (derivative + derivative.T) / 2  # of a function of symmetric matrices
    numpy.testing.assert_allclose(derivative, expected, atol=1e-14)
    count("degenerate")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jaxgrad.float32, jaxgrad.float64, jaxgrad.complex128])
def test_the_derivative_at_equal_values_of_each_matrix_of_a_batch_when_compiled(dtype):
    x = jaxgrad.tensor([IDENTITY, [[3.0, 0.0], [0.0, 3.0]]], dtype=dtype, requires_grad=True)
    compiled = jaxgrad.jit(lambda x: jaxgrad.autograd.grad(polar_factor(x), x)[0])
    expected = numpy.array([[[0, -1.5], [1.5, 0]], [[0, -0.5], [0.5, 0]]])
    atol = 10 * jaxgrad.finfo(dtype).eps
    numpy.testing.assert_allclose(compiled(x).numpy(), expected, atol=atol)
    numpy.testing.assert_allclose(
        jaxgrad.func.vmap(jaxgrad.func.grad(polar_factor))(x.detach()).numpy(), expected, atol=atol
    )
    count("degenerate", 2)


@pytest.mark.parametrize("is_complex", [False, True])
def test_the_gradient_of_a_function_of_a_matrix_at_equal_eigenvalues(is_complex):
    """Of W and f(A) it is V (F * V^H W V) V^H, where F has the difference quotients of f."""
    vectors, _ = numpy.linalg.qr(random(3, 3, complex=is_complex).detach().numpy())
    values = numpy.array([2.0, 2.0, 0.5])
    weights = random(3, 3, complex=is_complex).detach().numpy() + 1
    weights = weights + weights.conj().T
    quotient = (numpy.exp(2) - numpy.exp(0.5)) / 1.5
    quotients = numpy.full((3, 3), quotient)
    quotients[:2, :2], quotients[2, 2] = numpy.exp(2), numpy.exp(0.5)
    adjoint = vectors.conj().T
    expected = vectors @ (quotients * (adjoint @ weights @ vectors)) @ adjoint
    A = jaxgrad.tensor((vectors * values) @ adjoint, requires_grad=True)

    def loss(A):
        L, V = jaxgrad.linalg.eigh(A)
        return ((V * L.exp()) @ V.mH * jaxgrad.tensor(weights).conj()).sum().real

    numpy.testing.assert_allclose(gradient(loss, A), expected, 1e-10)
    compiled = jaxgrad.jit(lambda A: jaxgrad.autograd.grad(loss(A), A)[0])
    numpy.testing.assert_allclose(compiled(A).numpy(), expected, 1e-10)
    count("degenerate", 2)


def test_the_gradient_of_a_product_of_all_singular_factors():
    W = numpy.array([[1.0, 2.0], [5.0, 3.0]])  # U S Vh is A itself

    def loss(A):
        U, S, Vh = jaxgrad.linalg.svd(A)
        return ((U * S) @ Vh * jaxgrad.tensor(W)).sum()

    numpy.testing.assert_allclose(gradient(loss, matrix(IDENTITY)), W, 1e-12)
    count("degenerate")


def two_functions(A):
    values, vectors = jaxgrad.linalg.eigh(A)
    weights = matrix([[1, 2], [2, 4]], False)
    exponential, square = ((vectors * f) @ vectors.mH for f in (values.exp(), values**2))
    return (exponential * weights + square * weights.flip(0)).sum()


MISSING = [
    (two_functions, IDENTITY, "a decomposition for each function of the matrix"),
    (lambda A: jaxgrad.linalg.eigh(A).eigenvectors[0, 1], IDENTITY, "eigenvalues does not exist"),
    (polar_factor, [[0.0, 0.0], [0.0, 0.0]], "equal or zero singular values does not exist"),
    (lambda A: jaxgrad.linalg.svd(A).U[1].sum(), ZERO, "singular values does not exist"),
    (lambda A: jaxgrad.linalg.eigvals(A)[0].real, IDENTITY, "two eigenvalues are equal"),
    (lambda A: jaxgrad.slogdet(A).logabsdet, [[1.0, 2.0], [2.0, 4.0]], "the matrix is singular"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "rows", "words"), MISSING)
def test_a_derivative_that_does_not_exist_raises(function, rows, words):
    x = matrix(rows)
    with pytest.raises(RuntimeError, match=words):
        gradient(function, x)
    whole = jaxgrad.jit(lambda x: jaxgrad.autograd.grad(function(x), x)[0])
    mapped = jaxgrad.func.vmap(jaxgrad.func.grad(function))
    for call in (whole, lambda x: gradient(jaxgrad.jit(function), x), lambda x: mapped(x[None])):
        with pytest.raises(RuntimeError, match=words):
            call(x)
    # JAX's trace has no run of ours that could raise
    by_jax = jax.jit(jax.grad(lambda array: function(jaxgrad.tensor(array))._array))
    with jax.enable_x64(True):
        assert jax.numpy.isnan(by_jax(x._array)).any()
    with jaxgrad.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match=words):
        function(jaxgrad.autograd.forward_ad.make_dual(x, matrix(rows, False).flip(-1) + 1))
    count("degenerate", 3)


def cube_by_vectors(A):
    values, vectors = jaxgrad.linalg.eigh(A)
    return ((vectors * values**3) @ vectors.mT).trace()


# of functions that have them, the cotangents do not tell what the second derivatives are
SECOND = [
    (lambda A: (jaxgrad.linalg.eigvalsh(A) ** 3).sum(), EQUAL),
    (lambda A: (jaxgrad.linalg.svdvals(A) ** 2).sum(), EQUAL),
    (cube_by_vectors, EQUAL),
]


def test_the_second_derivative_of_a_sum_over_eigenvalues():
    x = matrix(EQUAL)
    values = jaxgrad.linalg.eigh(x).eigenvalues
    (first,) = jaxgrad.autograd.grad((values**3).sum(), x, create_graph=True)
    direction = numpy.array([[1.0, 2.0, -1.0], [2.0, 0.5, 3.0], [-1.0, 3.0, 4.0]])
    (second,) = jaxgrad.autograd.grad((first * jaxgrad.tensor(direction)).sum(), x)
    # the gradient of the trace of A^3 is 3 A^2
    expected = 3 * (numpy.array(EQUAL) @ direction + direction @ numpy.array(EQUAL))
    numpy.testing.assert_allclose(second.tolist(), expected, atol=1e-12)
    count("degenerate")


@pytest.mark.slow
@pytest.mark.parametrize(("function", "rows"), SECOND)
def test_second_derivatives_at_equal_values_raise(function, rows):
    x = matrix(rows)
    (first,) = jaxgrad.autograd.grad(function(x), x, create_graph=True)
    weights = jaxgrad.arange(first.numel(), dtype=x.dtype).reshape(first.shape) ** 2
    with pytest.raises(RuntimeError, match="does not exist"):
        jaxgrad.autograd.grad((first * weights).sum(), x)
    count("degenerate")


@pytest.mark.slow
def test_the_second_derivative_of_the_polar_factor():
    # the polar factor of a 2 by 2 matrix is the rotation by atan2(a21 - a12, a11 + a22)
    x = matrix(IDENTITY)
    (first,) = jaxgrad.autograd.grad(polar_factor(x), x, create_graph=True)
    (second,) = jaxgrad.autograd.grad((first * matrix([[0, 1], [4, 9]], False)).sum(), x)
    numpy.testing.assert_allclose(second.tolist(), [[-2.25, 9.75], [-9.75, -2.25]], atol=1e-13)
    count("degenerate")


@pytest.mark.slow
def test_phases_of_complex_vectors():
    x, words = random(3, 3, complex=True), "in the complex case are specified up to multiplication"
    for vectors in (
        lambda A: jaxgrad.linalg.svd(A).U,
        lambda A: jaxgrad.linalg.eigh(A + A.mH).eigenvectors,
        lambda A: jaxgrad.linalg.eig(A).eigenvectors,
    ):
        with pytest.raises(RuntimeError, match=words):
            vectors(x).imag.sum().backward()
    count("degenerate", 3)


def added_columns(A):
    U, S, Vh = jaxgrad.linalg.svd(A)
    k = S.shape[-1]
    return U[:, k:] @ U[:, k:].mH, Vh[k:].mH @ Vh[k:]


@pytest.mark.slow
@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_what_full_matrices_add_has_a_gradient(shape, complex):
    x = random(*shape, complex=complex)
    assert gradcheck(added_columns, (x,), check_forward_ad=True)
    with pytest.raises(RuntimeError, match="up to a rotation"):
        U, _, Vh = jaxgrad.linalg.svd(random(1, 3) if shape == (2, 3) else random(3, 1))
        gradient_of = Vh[1, 0] if shape == (2, 3) else U[0, 1]
        gradient_of.backward()
    count("degenerate", 2)


@pytest.mark.slow
def test_names_of_early_pytorch():
    x = random(3, 3)
    values, vectors = ops.symeig(x, True, False)
    expected = jaxgrad.linalg.eigh(x)
    assert (values == expected[0]).all() and (vectors == expected[1]).all()
    assert ops.symeig(x).vectors.shape == (0,)
    assert (ops.symeig(x).values == jaxgrad.linalg.eigvalsh(x, "U")).all()
    assert gradcheck(lambda A: ops.symeig(A + A.mH, True)[1].abs(), (x,), check_forward_ad=True)
    assert gradcheck(lambda A: ops.symeig(A + A.mH)[0], (x,), check_forward_ad=True)
    count("names of early PyTorch", 5)


@pytest.mark.slow
def test_eig_of_early_pytorch():
    x = matrix([[0.1, 1.0, 0.2], [-1.0, 0.3, 0.4], [0.5, 0.2, 2.0]])
    (values, vectors), (complex_values, _) = ops.eig(x, True), jaxgrad.linalg.eig(x)
    assert (jaxgrad.view_as_complex(values) == complex_values).all()
    # A V = V D, where D has a block for each conjugate pair
    real, up = values[:, 0].diag(), values[:-1, 1].clamp(min=0).diag(1)
    product = vectors @ (real + up - up.mT)
    numpy.testing.assert_allclose((x @ vectors).tolist(), product.tolist(), atol=1e-14)
    assert (values[:, 1] != 0).sum() == 2
    assert gradcheck(lambda A: ops.eig(A)[0], (x,), check_forward_ad=True)
    single = values[:, 1].tolist().index(0)
    assert gradcheck(lambda A: ops.eig(A, True)[1][:, single].abs(), (x,), check_forward_ad=True)
    count("names of early PyTorch", 5)


@pytest.mark.slow
def test_torch_svd_without_vectors():
    x = random(3, 2)
    U, S, V = jaxgrad.svd(x, compute_uv=False)
    assert U.shape == (3, 3) and V.shape == (2, 2) and not U.any() and not V.any()
    (result,) = jaxgrad.autograd.grad(S.sum(), x)
    (expected,) = jaxgrad.autograd.grad(jaxgrad.linalg.svdvals(x).sum(), x)
    assert (result == expected).all()
    count("names of early PyTorch")


@pytest.mark.slow
@pytest.mark.parametrize(
    "unused",
    [
        lambda x: jaxgrad.svd(x, compute_uv=False).U,
        lambda x: ops.symeig(x)[1],
        lambda x: ops.eig(x)[1],
    ],
)
def test_vectors_that_are_not_computed_have_a_gradient_of_zero(unused):
    x = jaxgrad.tensor([[2.0, 0.5], [0.5, 1.0]], requires_grad=True)
    unused(x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    count("names of early PyTorch")


@pytest.mark.slow
def test_lobpcg():
    x = random(6, 6)
    A = x @ x.mT
    values, vectors = jaxgrad.lobpcg(A, 2)
    expected = jaxgrad.linalg.eigvalsh(A)
    numpy.testing.assert_allclose(values.tolist(), expected.flip(0)[:2].tolist(), 1e-12)
    numpy.testing.assert_allclose((A @ vectors).tolist(), (vectors * values).tolist(), atol=1e-12)
    smallest = jaxgrad.lobpcg(A, 2, largest=False)[0]
    numpy.testing.assert_allclose(smallest.tolist(), expected[:2].tolist(), 1e-9)
    assert gradcheck(lambda x: jaxgrad.lobpcg(x @ x.mT, 2)[0], (x,))
    numpy.testing.assert_allclose(
        jaxgrad.lobpcg(A.detach().to_sparse(), 2)[0].tolist(), values.tolist(), 1e-12
    )
    count("lobpcg", 5)


@pytest.mark.slow
def test_lobpcg_reads_both_triangles():
    # PyTorch's values for this matrix, if it requires grad
    x = matrix([[2.0, 1.0, 0.5], [0.0, 3.0, -1.0], [0.25, 0.0, 1.0]])
    half = (x + x.mT) / 2
    values, _ = jaxgrad.lobpcg(x, 1)
    numpy.testing.assert_allclose(values.tolist(), [3.256360381859757], 1e-6)
    (derivative,) = jaxgrad.autograd.grad(values.sum(), x)
    (expected,) = jaxgrad.autograd.grad(jaxgrad.linalg.eigvalsh(half)[-1], half)
    numpy.testing.assert_allclose(derivative.tolist(), expected.tolist(), atol=1e-14)
    assert derivative[0, 1] == derivative[1, 0] != 0
    count("lobpcg", 3)


@pytest.mark.slow
def test_a_nan_in_the_matrix_is_no_missing_derivative():
    x = matrix([[float("nan"), 1.0], [1.0, 2.0]])
    (derivative,) = jaxgrad.autograd.grad(jaxgrad.linalg.eigh(x).eigenvectors.sum(), x)
    assert derivative.isnan().any()
    with jax.enable_x64(True):
        assert jax.numpy.isnan(jax.grad(lambda a: ops.linalg_svdvals(a).sum())(x._array)).any()
    count("degenerate", 2)


def logarithm(matrix):
    values, vectors = jaxgrad.linalg.eigh(matrix)
    return (vectors * values.log()) @ vectors.mT


@pytest.mark.parametrize(
    "function",
    [
        lambda x: logarithm(x)[0, 1],
        lambda x: jaxgrad.linalg.eigh(x).eigenvectors[0, 1] ** 2,
        lambda x: jaxgrad.linalg.svd(x).U[0, 1] ** 2,
        lambda x: jaxgrad.linalg.eig(x).eigenvectors[0, 1].abs() ** 2,
    ],
)
def test_a_choice_of_vectors_that_hides_in_the_identity_raises(function):
    """The eigenvectors of LAPACK are unit vectors there, with gradients that happen to be 0."""
    x = jaxgrad.eye(3, dtype=jaxgrad.float64, requires_grad=True)
    with pytest.raises(jaxgrad.linalg.LinAlgError, match="ill-defined"):
        function(x).backward()


def test_a_function_that_no_choice_of_vectors_changes_has_a_derivative():
    x = jaxgrad.eye(3, dtype=jaxgrad.float64, requires_grad=True)
    logarithm(x).trace().backward()
    assert (x.grad - jaxgrad.eye(3)).abs().max() < 1e-14


@pytest.mark.slow
def test_vectors_of_other_values_have_a_derivative():
    """The first singular vectors of a matrix of rank 1 by those of all near ones."""
    draw = numpy.random.default_rng(0)
    low = jaxgrad.from_numpy(numpy.outer(draw.normal(size=4), draw.normal(size=3)))

    def first(x):
        left, values, right = jaxgrad.linalg.svd(x, full_matrices=False)
        return (left[:, :1] * values[:1]) @ right[:1]

    x = low.clone().requires_grad_()
    weights = jaxgrad.from_numpy(draw.normal(size=(4, 3)))
    (first(x) * weights).sum().backward()
    step = 1e-5 * jaxgrad.from_numpy(draw.normal(size=(4, 3)))
    slope = ((first(low + step) - first(low - step)) * weights).sum() / 2
    assert abs(slope - (x.grad * step).sum()).item() < 1e-9


def test_the_power_zero_has_a_gradient_of_zeros():
    x = jaxgrad.tensor([[1.0, float("nan")], [0.0, 2.0]], requires_grad=True)
    power = jaxgrad.linalg.matrix_power(x, 0)
    assert power.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    power.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradient_of_eigenvectors_is_symmetric(is_compiled):
    """PyTorch's gradient, though one triangle is read."""
    a = jaxgrad.tensor([[2.0, 9.0], [1.0, -1.0]], dtype=jaxgrad.float64, requires_grad=True)
    weights = jaxgrad.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=jaxgrad.float64)

    def loss(a):
        return (jaxgrad.linalg.eigh(a).eigenvectors.abs() * weights).sum()

    (jaxgrad.compile(loss) if is_compiled else loss)(a).backward()
    part = 0.49541900947986545
    expected = [[-0.3302793396532435, part], [part, 0.3302793396532435]]
    numpy.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("function", ["eig", "eigvals"])
def test_eigenvalues_of_infinite_elements_are_refused(function):
    matrix = jaxgrad.tensor([[1.0, 2.0], [float("nan"), 4.0]])
    with pytest.raises(RuntimeError, match="input tensor should not contain infs or NaNs"):
        getattr(jaxgrad.linalg, function)(matrix)


def test_out_of_eigenvalues_of_another_dtype():
    matrix, integers = jaxgrad.eye(2), jaxgrad.empty(0, dtype=jaxgrad.int32)
    wide = jaxgrad.empty(0, dtype=jaxgrad.complex128)
    assert jaxgrad.linalg.eigvals(matrix, out=wide) is wide and wide.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="but got eigenvalues with dtype Int"):
        jaxgrad.linalg.eig(matrix, out=(integers, integers))
    with pytest.raises(RuntimeError, match="but got eigenvectors with dtype Int"):
        jaxgrad.linalg.eig(matrix, out=(wide, integers))


def test_the_tangent_of_singular_values_beside_their_vectors():
    matrix = numpy.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]])
    direction = numpy.array([[0.3, -1.0], [2.0, 0.7], [1.0, 0.1]])
    step = 1e-6
    ahead, behind = (
        numpy.linalg.svd(matrix + sign * step * direction, compute_uv=False) for sign in (1, -1)
    )
    _, tangent = jaxgrad.func.jvp(
        lambda a: ops._svd_of_values(a).S,
        (jaxgrad.tensor(matrix),),
        (jaxgrad.tensor(direction),),
    )
    numpy.testing.assert_allclose(tangent.numpy(), (ahead - behind) / (2 * step), atol=1e-8)


NAN_IN_SECOND = [[[1.0, 2.0], [3.0, 4.0]], [[1.0, float("nan")], [2.0, 3.0]]]


@pytest.mark.parametrize("name", ["linalg.svd", "linalg.svdvals", "svd"])
def test_singular_values_refuse_nan(name):
    function = functools.reduce(getattr, name.split("."), jaxgrad)
    batch = jaxgrad.tensor(NAN_IN_SECOND)
    words = "The algorithm failed to converge because the input matrix contained non-finite values"
    with pytest.raises(jaxgrad.linalg.LinAlgError, match=rf"\(Batch element 1\): {words}"):
        function(batch)
    with pytest.raises(jaxgrad.linalg.LinAlgError, match=f"linalg.svd: {words}"):
        function(batch[1])
    infinite = function(jaxgrad.tensor([[1.0, float("inf")], [3.0, 2.0]]))
    assert isinstance(infinite, (jaxgrad.Tensor, tuple))  # PyTorch gives NaN too


def test_singular_values_of_nan_in_a_compiled_function():
    values = jaxgrad.jit(jaxgrad.linalg.svdvals)(jaxgrad.tensor(NAN_IN_SECOND))
    assert values[0].isfinite().all() and values[1].isnan().all()
