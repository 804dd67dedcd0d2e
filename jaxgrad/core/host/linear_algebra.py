"""Rules of primitives of linear algebra, by the routines of LAPACK that XLA calls on a CPU.

The signs of eigenvectors and of factors depend on the routine. The same ones are called here, in
the same precision, so that the results of a program agree before and after it is compiled.
"""

from __future__ import annotations

import math

import numpy

from ...late import LateModule
from .equation import NotOnHostError, rule

blas = LateModule("scipy.linalg.blas")
lapack = LateModule("scipy.linalg.lapack")

_PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# what LAPACK calls the routines for complex matrices
_COMPLEX_NAMES = {
    "orgqr": "ungqr",
    "ormqr": "unmqr",
    "syevd": "heevd",
    "sytrd": "hetrd",
    "sytrd_lwork": "hetrd_lwork",
}


def _routine(name, dtype, module=lapack):
    prefix = _PREFIXES.get(dtype.name)
    if prefix is None:
        raise NotOnHostError(f"{name} of {dtype}")
    return getattr(module, prefix + (_COMPLEX_NAMES.get(name, name) if prefix in "cz" else name))


def _workspace(name, dtype, *extents, **options) -> int:
    """The extent of the memory with which a routine is fastest."""
    *sizes, _ = _routine(f"{name}_lwork", dtype)(*extents, **options)
    # single precision may have rounded it down
    return int(numpy.nextafter(numpy.real(sizes[0]), numpy.inf)) + 1


def _in_columns(matrix):
    """A copy in the order of LAPACK, which the routine may overwrite."""
    return numpy.array(matrix, order="F")


def _batched(equation, ranks, function):
    """Apply a function of matrices and vectors to a batch of them.

    ranks: those of its operands. It gives a list of arrays, or None if they are all NaN.
    """
    outputs, count = equation.outputs, len(equation.inputs[0].shape) - ranks[0]
    cores = [form.shape[count:] for form in equation.inputs]
    if all(0 in form.shape for form in outputs):
        return lambda *operands: [numpy.empty(*form) for form in outputs]
    if any(0 in core for core in cores):
        raise NotOnHostError(f"{equation.name} of an empty matrix")
    if not count:

        def of_one_matrix(*operands):
            results = function(*operands)
            if results is None:
                return [numpy.full(form.shape, numpy.nan, form.dtype) for form in outputs]
            return results

        return of_one_matrix
    size = math.prod(equation.inputs[0].shape[:count])

    def batch(*operands):
        operands = [a.reshape(size, *core) for a, core in zip(operands, cores, strict=True)]
        results = [numpy.empty(*form) for form in outputs]
        rows = [a.reshape(size, *a.shape[count:]) for a in results]
        for place in range(size):
            values = function(*[operand[place] for operand in operands])
            for position, row in enumerate(rows):
                row[place] = numpy.nan if values is None else values[position]
        return results

    return batch


def _is_finite(matrix) -> bool:
    return bool(numpy.isfinite(matrix).all())


# ---- triangular factors


@rule("cholesky")
def _cholesky(equation):
    if equation.inputs[0].dtype.name not in _PREFIXES:
        raise NotOnHostError(f"cholesky of {equation.inputs[0].dtype}")

    def factor(matrix):
        try:
            return [numpy.linalg.cholesky(matrix)]
        except numpy.linalg.LinAlgError:
            return None

    one_by_one = _batched(equation, (2,), factor)

    def cholesky(matrices):
        try:
            # the strict upper triangle is not read
            return [numpy.linalg.cholesky(matrices)]
        except numpy.linalg.LinAlgError:
            return one_by_one(matrices)

    return cholesky


@rule("cholesky_update")
def _cholesky_update(equation):
    dtype = equation.inputs[0].dtype
    if dtype.kind != "f" or dtype.name not in _PREFIXES:
        raise NotOnHostError(f"cholesky_update of {dtype}")

    def update(factor, vector):
        factor, vector = numpy.array(factor), numpy.array(vector)
        for place in range(len(vector)):
            first, second = factor[place, place], vector[place]
            if second == 0:
                continue
            # a rotation of a row and the vector makes the vector's element 0
            size = numpy.hypot(first, second)
            cosine, sine = first / size, second / size
            row = factor[place].copy()
            factor[place] = cosine * row + sine * vector
            vector = cosine * vector - sine * row
        return [factor]

    return _batched(equation, (2, 1), update)


@rule("lu")
def _lu(equation):
    dtype = equation.inputs[0].dtype
    getrf, rows = _routine("getrf", dtype), equation.inputs[0].shape[-2]

    def lu(matrix):
        packed, pivots, info = getrf(_in_columns(matrix), overwrite_a=True)
        if info < 0:
            return None
        pivots = pivots.astype(numpy.int32)
        return [packed, pivots, _permutation(pivots, rows)]

    return _batched(equation, (2,), lu)


def _permutation(pivots, size):
    """The permutation that the exchanges of rows make."""
    order = [*range(size)]
    for place, other in enumerate(pivots.tolist()):
        order[place], order[other] = order[other], order[place]
    return numpy.array(order, numpy.int32)


@rule("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(equation):
    size = equation.params["permutation_size"]
    return _batched(equation, (1,), lambda pivots: [_permutation(pivots, size)])


@rule("triangular_solve")
def _triangular_solve(equation):
    params, dtype = equation.params, equation.inputs[0].dtype
    trsm = _routine("trsm", dtype, blas)
    conjugates, transposes = params["conjugate_a"], params["transpose_a"]
    # BLAS sees arrays in the order of C as their transposes
    options = {
        "side": int(params["left_side"]),
        "lower": int(not params["lower"]),
        "trans_a": (2 if conjugates else 1) if transposes else 0,
        "diag": int(params["unit_diagonal"]),
    }
    if not (conjugates and not transposes and dtype.kind == "c"):
        return _batched(equation, (2, 2), lambda a, b: [trsm(1, a.T, b.T, **options).T])
    return _batched(equation, (2, 2), lambda a, b: [trsm(1, a.conj().T, b.T, **options).T])


# ---- orthogonal factors


@rule("geqrf")
def _geqrf(equation):
    factor = _factored(equation.inputs[0])
    return _batched(equation, (2,), lambda matrix: [*factor(matrix)])


def _factored(form):
    """A function that gives the factor R with the reflectors of Q below, and their scales."""
    geqrf = _routine("geqrf", form.dtype)
    size = _workspace("geqrf", form.dtype, *form.shape[-2:]) if 0 not in form.shape else 1

    def factor(matrix):
        packed, scales, _, _ = geqrf(_in_columns(matrix), lwork=size, overwrite_a=True)
        return packed, scales

    return factor


def _orthogonal_factor(dtype):
    orgqr = _routine("orgqr", dtype)

    def product(reflectors, scales):
        columns = reflectors.shape[1]
        factor, _, _ = orgqr(_in_columns(reflectors), scales, lwork=64 * columns, overwrite_a=True)
        return factor

    return product


@rule("householder_product")
def _householder_product(equation):
    product = _orthogonal_factor(equation.inputs[0].dtype)
    return _batched(equation, (2, 1), lambda *operands: [product(*operands)])


@rule("ormqr")
def _ormqr(equation):
    params, dtype = equation.params, equation.inputs[0].dtype
    ormqr, adjoint = _routine("ormqr", dtype), "C" if dtype.kind == "c" else "T"
    side, turn = "L" if params["left"] else "R", adjoint if params["transpose"] else "N"

    def multiply(reflectors, scales, matrix):
        size = 64 * max(1, *matrix.shape)
        product, _, info = ormqr(side, turn, reflectors, scales, matrix, size)
        return None if info < 0 else [product]

    return _batched(equation, (2, 1, 2), multiply)


@rule("qr")
def _qr(equation):
    params, (shape, dtype) = equation.params, equation.inputs[0]
    rows, columns = shape[-2:]
    product = _orthogonal_factor(dtype)
    of_matrix = _pivoted(dtype) if params["pivoting"] else _factored(equation.inputs[0])
    width = rows if params["full_matrices"] else min(rows, columns)

    def qr(matrix):
        packed, scales, *pivots = of_matrix(matrix)
        reflectors = numpy.zeros((rows, width), dtype, order="F")
        reflectors[:, :columns] = packed[:, :width]
        return [product(reflectors, scales), numpy.triu(packed[:width]), *pivots]

    return _batched(equation, (2,), qr)


def _pivoted(dtype):
    geqp3 = _routine("geqp3", dtype)

    def factor(matrix):
        packed, pivots, scales, _, _ = geqp3(_in_columns(matrix), overwrite_a=True)
        return packed, scales, (pivots - 1).astype(numpy.int32)

    return factor


# ---- eigenvalues and singular values


@rule("eigh")
def _eigh(equation):
    params, (shape, dtype) = equation.params, equation.inputs[0]
    if params.get("subset_by_index") not in (None, (0, shape[-1])):
        raise NotOnHostError("eigh of some eigenvalues")
    syevd, lower = _routine("syevd", dtype), int(params["lower"])

    def eigh(matrix):
        if not _is_finite(matrix):
            return None
        values, vectors, info = syevd(_in_columns(matrix), lower=lower, overwrite_a=True)
        return None if info else [vectors, values]

    return _batched(equation, (2,), eigh)


@rule("eig")
def _eig(equation):
    params, dtype = equation.params, equation.inputs[0].dtype
    geev, complex_type = _routine("geev", dtype), equation.outputs[0].dtype
    left, right = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]

    def eig(matrix):
        if not _is_finite(matrix):
            return None
        *values, of_left, of_right, info = geev(
            _in_columns(matrix), compute_vl=left, compute_vr=right, overwrite_a=True
        )
        if info:
            return None
        sides = [*([of_left] if left else []), *([of_right] if right else [])]
        if dtype.kind == "c":
            return [values[0], *sides]
        eigenvalues = numpy.empty(len(matrix), complex_type)
        eigenvalues.real, eigenvalues.imag = values
        return [eigenvalues, *[_complex_vectors(eigenvalues, side) for side in sides]]

    return _batched(equation, (2,), eig)


def _complex_vectors(values, packed):
    """Eigenvectors of a real matrix; of a conjugate pair LAPACK gives the real part in one column
    and the imaginary part in the next.
    """
    vectors = packed.astype(values.dtype)
    (first,) = numpy.nonzero(values.imag > 0)
    vectors.imag[:, first] = packed[:, first + 1]
    vectors[:, first + 1] = vectors[:, first].conj()
    return vectors


@rule("svd")
def _svd(equation):
    params, (shape, dtype) = equation.params, equation.inputs[0]
    subset, algorithm = params.get("subset_by_index"), params.get("algorithm")
    if subset not in (None, (0, min(shape[-2:]))):
        raise NotOnHostError("svd of some singular values")
    if algorithm is not None and algorithm.name != "DEFAULT":
        raise NotOnHostError(f"svd by {algorithm}")
    with_vectors, full = params["compute_uv"], params["full_matrices"]
    options = {"compute_uv": int(with_vectors), "full_matrices": int(full)}
    gesdd = _routine("gesdd", dtype)
    size = _workspace("gesdd", dtype, *shape[-2:], **options) if 0 not in shape else 1

    def svd(matrix):
        if not _is_finite(matrix):
            return None
        left, values, right, info = gesdd(
            _in_columns(matrix), lwork=size, overwrite_a=True, **options
        )
        if info:
            return None
        return [values, left, right] if with_vectors else [values]

    return _batched(equation, (2,), svd)


@rule("schur")
def _schur(equation):
    params, dtype = equation.params, equation.inputs[0].dtype
    if params["sort_eig_vals"]:
        raise NotOnHostError("schur with sorted eigenvalues")
    gees, with_vectors = _routine("gees", dtype), params["compute_schur_vectors"]

    def schur(matrix):
        if not _is_finite(matrix):
            return None
        triangle, *_, vectors, _, info = gees(
            lambda *_: 0, _in_columns(matrix), compute_v=int(with_vectors), overwrite_a=True
        )
        if info:
            return None
        return [triangle, vectors] if with_vectors else [triangle]

    return _batched(equation, (2,), schur)


# ---- condensed forms


@rule("hessenberg")
def _hessenberg(equation):
    gehrd = _routine("gehrd", equation.inputs[0].dtype)

    def hessenberg(matrix):
        if len(matrix) == 1:
            return [matrix, numpy.empty(0, matrix.dtype)]
        packed, scales, info = gehrd(_in_columns(matrix), overwrite_a=True)
        return None if info else [packed, scales]

    return _batched(equation, (2,), hessenberg)


@rule("tridiagonal")
def _tridiagonal(equation):
    dtype, lower = equation.inputs[0].dtype, int(equation.params["lower"])
    sytrd, extent = _routine("sytrd", dtype), equation.inputs[0].shape[-1]
    size = _workspace("sytrd", dtype, extent, lower=lower) if extent else 1

    def tridiagonal(matrix):
        packed, diagonal, off, scales, info = sytrd(
            _in_columns(matrix), lower=lower, lwork=size, overwrite_a=True
        )
        return None if info else [packed, diagonal, off, scales]

    return _batched(equation, (2,), tridiagonal)


@rule("tridiagonal_solve")
def _tridiagonal_solve(equation):
    if equation.params.get("perturb_singular"):
        raise NotOnHostError("tridiagonal_solve that changes a singular matrix")
    gtsv = _routine("gtsv", equation.inputs[0].dtype)

    def solve(below, diagonal, above, right):
        if len(diagonal) == 1:
            return [right / diagonal]
        *_, solution, info = gtsv(below[1:], diagonal, above[:-1], right)
        return None if info else [solution]

    return _batched(equation, (1, 1, 1, 2), solve)


@rule("symmetric_product")
def _symmetric_product(equation):
    alpha, beta = equation.params["alpha"], equation.params["beta"]
    dtype = equation.outputs[0].dtype
    if dtype.name not in _PREFIXES:
        raise NotOnHostError(f"symmetric_product of {dtype}")
    alpha, beta = dtype.type(alpha), dtype.type(beta)

    def product(matrix, added):
        return alpha * numpy.matmul(matrix, matrix.swapaxes(-1, -2)) + beta * added

    return product
