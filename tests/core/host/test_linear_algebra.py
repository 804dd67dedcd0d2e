"""The host executor's rules of linear algebra."""

import itertools

import jax
import numpy
import pytest
from helpers.host_rules_indexing import check_bits, check_close, check_refused, results_of
from jax import lax

TYPES = ["float32", "float64", "complex64", "complex128"]
linalg = lax.linalg


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def matrices(dtype, *shape, seed=0):
    random = numpy.random.default_rng(seed)
    values = random.standard_normal(shape)
    if numpy.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def positive(dtype, *shape):
    array = matrices(dtype, *shape)
    return array @ adjoint(array) + numpy.eye(shape[-1], dtype=dtype)


def adjoint(array):
    return array.swapaxes(-1, -2).conj()


def near(dtype, times=100):
    return times * float(numpy.finfo(dtype).eps)


def with_failures(array):
    """A batch whose second matrix has NaN."""
    array = array.copy()
    array[1, 0, 0] = numpy.nan
    return array


def check_nan(function, array):
    """Of the batch, the matrix with NaN has no result, and the others have what they have alone."""
    results = results_of(function, with_failures(array))
    for result, alone in zip(results, results_of(function, array), strict=True):
        if result.dtype.kind != "i":
            assert numpy.isnan(result[1]).any()
        numpy.testing.assert_array_equal(result[[0, 2]], alone[[0, 2]])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5, 5), (2, 0, 0), (1, 1)])
def test_cholesky(dtype, shape):
    def function(array):
        return linalg.cholesky(array, symmetrize_input=False)

    check_close(function, positive(dtype, *shape), within=near(dtype))


def test_cholesky_of_one_triangle_and_of_indefinite_matrices():
    def function(array):
        return linalg.cholesky(array, symmetrize_input=False)

    array = positive("float32", 3, 4, 4)
    check_nan(function, array)
    # the other triangle is not read
    check_close(function, numpy.tril(array), within=1e-5)
    array[1] *= -1
    check_close(function, array, within=1e-5)
    check_close(function, array[1], within=1e-5)


def test_cholesky_update():
    factor, vector = numpy.linalg.cholesky(positive("float64", 4, 4)).T, matrices("float64", 4)
    check_close(linalg.cholesky_update, factor, vector, within=1e-12)
    vector[1] = 0
    check_close(linalg.cholesky_update, factor, vector, within=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (1, 1)])
def test_lu(dtype, shape):
    check_close(lambda a: linalg.lu(a), matrices(dtype, *shape), within=near(dtype))


def test_lu_in_other_forms():
    check_close(lambda a: linalg.lu(a), numpy.zeros((3, 3), numpy.float32), within=0)
    check_nan(lambda a: linalg.lu(a), matrices("float32", 3, 4, 4))


def test_pivots():
    pivots = numpy.array([[2, 1, 4], [0, 3, 3]], numpy.int32)
    check_bits(lambda p: linalg.lu_pivots_to_permutation(p, 6), pivots)
    check_bits(lambda p: linalg.lu_pivots_to_permutation(p, 6), pivots[0])


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_triangular_solve(dtype, side, unit_diagonal):
    array = matrices(dtype, 2, 4, 4) / 2 + 2 * numpy.eye(4, dtype=dtype)
    solution = matrices(dtype, *((2, 4, 3) if side == "left" else (2, 3, 4)), seed=3)
    for lower, transposes, conjugates in itertools.product((False, True), repeat=3):
        triangle = (numpy.tril if lower else numpy.triu)(array)
        if unit_diagonal:
            triangle[:, range(4), range(4)] = 1
        applied = triangle.conj() if conjugates else triangle
        applied = applied.swapaxes(-1, -2) if transposes else applied
        (result,) = results_of(
            linalg.triangular_solve,
            array,
            applied @ solution if side == "left" else solution @ applied,
            left_side=side == "left",
            lower=lower,
            transpose_a=transposes,
            conjugate_a=conjugates,
            unit_diagonal=unit_diagonal,
        )
        numpy.testing.assert_allclose(result, solution, near(dtype, 1000), near(dtype, 1000))


def test_triangular_solve_of_singular():
    array, right = numpy.zeros((3, 3), numpy.float32), numpy.ones((3, 1), numpy.float32)
    (result,) = results_of(lambda a, b: linalg.triangular_solve(a, b, left_side=True), array, right)
    assert not numpy.isfinite(result).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (1, 1)])
def test_qr(dtype, shape, full_matrices):
    def function(array):
        return linalg.qr(array, full_matrices=full_matrices)

    check_close(function, matrices(dtype, *shape), within=near(dtype))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
def test_pivoted_qr(dtype, shape):
    array = matrices(dtype, *shape)
    check_close(lambda a: linalg.qr(a, pivoting=True), array, within=near(dtype))


def test_qr_in_other_forms():
    check_nan(linalg.qr, matrices("float32", 3, 4, 4))
    check_refused(linalg.qr, numpy.zeros((3, 0)))


@pytest.mark.parametrize("dtype", TYPES)
def test_reflectors(dtype):
    array, scales = matrices(dtype, 2, 5, 3), matrices(dtype, 2, 3)
    other = matrices(dtype, 2, 5, 4)
    check_close(linalg.householder_product, array, scales, within=near(dtype, 1e4))
    for transpose in (False, True):

        def function(array, scales, other, transpose=transpose):
            return linalg.ormqr(array, scales, other, transpose=transpose)

        check_close(function, array, scales, other, within=near(dtype, 1e4))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_eigh(dtype, lower):
    array = positive(dtype, 2, 5, 5)
    array = (numpy.tril if lower else numpy.triu)(array) + numpy.eye(5, dtype=dtype)
    check_close(
        lambda a: linalg.eigh(a, lower=lower, symmetrize_input=False),
        array,
        within=near(dtype, 1000),
    )


def test_eigh_in_other_forms():
    check_nan(lambda a: linalg.eigh(a), positive("float32", 3, 4, 4))
    check_refused(lambda a: linalg.eigh(a, subset_by_index=(0, 2)), positive("float32", 4, 4))
    check_close(lambda a: linalg.eigh(a), numpy.zeros((2, 0, 0)), within=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_eig(dtype, left, right):
    def function(array):
        return linalg.eig(array, compute_left_eigenvectors=left, compute_right_eigenvectors=right)

    check_close(function, matrices(dtype, 2, 5, 5), within=near(dtype, 1000))


def test_eig_in_other_forms():
    check_nan(lambda a: linalg.eig(a), matrices("float32", 3, 4, 4))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
def test_svd(dtype, shape, full_matrices):
    def function(array):
        return linalg.svd(array, full_matrices=full_matrices)

    check_close(function, matrices(dtype, *shape), within=near(dtype, 1000))


def test_svd_in_other_forms():
    array = matrices("float32", 3, 4, 4)
    check_close(lambda a: linalg.svd(a, compute_uv=False), array, within=1e-5)
    check_nan(lambda a: linalg.svd(a), array)
    check_refused(lambda a: linalg.svd(a, algorithm=linalg.SvdAlgorithm.QR), array)
    check_refused(lambda a: linalg.svd(a, subset_by_index=(0, 2), full_matrices=False), array)


@pytest.mark.parametrize("dtype", TYPES)
def test_schur_and_hessenberg(dtype):
    array = matrices(dtype, 2, 5, 5)
    check_close(linalg.schur, array, within=near(dtype, 1000))
    check_close(
        lambda a: linalg.schur(a, compute_schur_vectors=False), array, within=near(dtype, 1000)
    )
    check_close(linalg.hessenberg, array, within=near(dtype, 1000))
    check_close(linalg.hessenberg, array[:, :1, :1], within=0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_tridiagonal(dtype, lower):
    array = positive(dtype, 2, 5, 5)
    check_close(lambda a: linalg.tridiagonal(a, lower=lower), array, within=near(dtype, 1000))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("extent", [1, 2, 6])
def test_tridiagonal_solve(dtype, extent):
    below, above = matrices(dtype, 2, extent), matrices(dtype, 2, extent, seed=1)
    diagonal, right = matrices(dtype, 2, extent, seed=2) + 5, matrices(dtype, 2, extent, 3)
    check_close(linalg.tridiagonal_solve, below, diagonal, above, right, within=near(dtype))


def test_symmetric_product():
    array, added = matrices("float32", 2, 4, 3), positive("float32", 2, 4, 4)

    def function(array, added):
        return linalg.symmetric_product(array, added, alpha=2.0, beta=0.5, symmetrize_output=True)

    check_close(function, array, added, within=1e-5)
