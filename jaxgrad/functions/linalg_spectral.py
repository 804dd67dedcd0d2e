"""Linear algebra: functions of eigenvalues and singular values, and powers of matrices."""

from __future__ import annotations

import math
import operator

from .. import ops
from ..core import dtypes
from ..core.device import contiguous_format
from ..frontend import factories
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from .out import takes_exact_out, takes_out


@api_boundary
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant of square matrices.

    input: (..., n, n), floating point or complex. Returns (...): NaN for a negative determinant,
    -inf for 0. Raises RuntimeError for other shapes and dtypes.

    >>> jaxgrad.logdet(jaxgrad.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(0.)
    """
    _check_square("logdet", input)
    sign, logarithm = ops.linalg_slogdet(input)
    if input.is_complex():
        return sign.log() + logarithm
    return ops.where(sign == -1.0, math.nan, logarithm)


@takes_exact_out
def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return the n-th power of square matrices, by squaring.

    A: (..., m, m), for a negative `n` floating point or complex; n: an integer; 0 gives identity
    matrices, a negative one powers of the inverse. Returns (..., m, m). Raises RuntimeError for
    other shapes, and for a singular matrix with a negative `n`.

    >>> jaxgrad.linalg.matrix_power(jaxgrad.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    _check_square("linalg.matrix_power", A)
    if n == 0:
        identity = factories.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        power = ops.where(factories.ones((), dtype=dtypes.bool), identity, A)  # its gradient is 0
        return power.contiguous()
    base = ops.inverse(A) if n < 0 else A
    n, power = abs(operator.index(n)), None
    if n == 3:
        return base @ base @ base
    while n:
        n, bit = divmod(n, 2)
        if bit:
            power = base if power is None else power @ base
        if n:
            base = base @ base
    return power.clone(memory_format=contiguous_format) if power is A else power


@takes_out
def matrix_rank(A: Tensor, tol=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """Return how many singular values of matrices are not 0.

    A: (..., m, n), floating point or complex; tol, atol: numbers or tensors: singular values up to
    it count as 0; rtol: those up to it times the largest, by default max(m, n) roundings if no
    other tolerance is given; hermitian: whether matrices are Hermitian; then only the lower
    triangle is read. Returns (...), int64, without a gradient. Raises RuntimeError for other
    shapes and dtypes.

    >>> jaxgrad.linalg.matrix_rank(jaxgrad.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    if A.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions. It "
            f"has shape {list(A.shape)}"
        )
    if A.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "This function doesn't handle types other than float and double: matrix_rank got "
            f"{A.dtype!r}"
        )
    for name, tolerance in (("atol", tol), ("atol", atol), ("rtol", rtol)):
        _check_real("torch.linalg.matrix_rank", name, tolerance)
    matrix = A.detach()
    values = ops.linalg_eigvalsh(matrix).abs() if hermitian else ops.linalg_svdvals(matrix)
    if values.numel() == 0:
        return ops.sum(values, -1).to(dtypes.int64)
    if tol is not None:
        atol, rtol = tol, 0.0
    limit = values.amax(-1) * _relative(A, atol, rtol)
    if atol is not None:
        limit = ops.maximum(limit, atol if isinstance(atol, Tensor) else limit * 0 + atol)
    return (values > limit.unsqueeze(-1)).sum(-1)


def _check_real(caller, name, tolerance):
    if isinstance(tolerance, Tensor) and tolerance.is_complex():
        raise RuntimeError(
            f"{caller}: {name} tensor of complex type is not supported. Got "
            f"{tolerance.dtype.scalar_type}: take its .real or .abs()"
        )


def _relative(matrix, atol, rtol):
    """The relative tolerance where `rtol` is not given."""
    if rtol is not None:
        return rtol
    usual = dtypes.finfo(matrix.dtype).eps * max(matrix.shape[-2:])
    if isinstance(atol, Tensor):
        return ops.where(atol > 0, 0.0, usual)
    return 0.0 if atol else usual


@takes_out
def cond(A: Tensor, p=None) -> Tensor:
    """Return the condition numbers of matrices.

    A: (..., m, n), square unless `p` is None, 2 or -2; floating point or complex; p: the norm, one
    of "fro", "nuc", inf, -inf, 1, -1, 2, -2 and None, which is 2. Returns (...), real: inf for
    singular matrices. Raises RuntimeError for other shapes and norms.

    >>> jaxgrad.linalg.cond(jaxgrad.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor(4.)
    """
    if A.ndim < 2:
        raise RuntimeError(
            "linalg.cond: The input tensor must have at least 2 dimensions. It has shape "
            f"{list(A.shape)}"
        )
    if p is None or p in (2, -2):
        values = ops.linalg_svdvals(A)
        if values.numel() == 0:
            return ops.sum(values.detach(), -1)
        largest, smallest = values[..., :1], values[..., -1:]
        ratio = smallest / largest if p == -2 else largest / smallest
        return ratio.squeeze(-1)
    if p not in _NORMS:
        raise RuntimeError(
            f"linalg.cond got an invalid norm type: {p}; give fro, nuc, inf, -inf, 1, -1, 2 or -2"
        )
    _check_square("linalg.cond", A)
    if A.numel() == 0:
        return ops.sum(A.detach().abs(), (-2, -1))
    if p == "nuc":
        values = ops.linalg_svdvals(A)
        return values.sum(-1) * (1 / values).sum(-1)
    inverse, info = ops.linalg_inv_ex(A)
    product = _NORMS[p](A) * _NORMS[p](inverse)
    return ops.where(info > 0, math.inf, product)


_NORMS = {
    "fro": lambda A: (A.abs() ** 2).sum((-2, -1)).sqrt(),
    "nuc": None,
    1: lambda A: A.abs().sum(-2).amax(-1),
    -1: lambda A: A.abs().sum(-2).amin(-1),
    math.inf: lambda A: A.abs().sum(-1).amax(-1),
    -math.inf: lambda A: A.abs().sum(-1).amin(-1),
}


@names_defaults
@api_boundary
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker=None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest eigenvalues of `A x = e B x`, and eigenvectors.

    A: (..., m, m), Hermitian, floating point or complex, dense or sparse: of another matrix the
    Hermitian part is taken, as PyTorch does if `A` requires grad; k: how many, by default as many
    as `X` has columns, else 1; B: like A and positive definite, by default the identity; X: a first
    guess, (..., m, n), and n: how many vectors an iteration has, at most m / 3; largest: whether
    the largest are wanted, in descending order, else the smallest in ascending order, by default
    True. They are computed by a complete decomposition, so that the other arguments, which steer
    PyTorch's iteration, have no effect. Returns (..., k) and (..., m, k). Raises ValueError for a
    larger `n`, RuntimeError for other shapes.

    >>> jaxgrad.lobpcg(jaxgrad.tensor([1.0, 2.0, 3.0]).diag())[0]
    tensor([3.])
    """
    _check_square("lobpcg", A)
    if B is not None and A.shape != B.shape:
        raise AssertionError(
            f"lobpcg: A and B must have the same shape, got {A.shape} and {B.shape}"
        )
    count = (1 if X is None else X.shape[-1]) if k is None else k
    rows, columns = A.shape[-1], X.shape[-1] if X is not None else count if n is None else n
    if rows < 3 * columns:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller "
            f"than 3 x the number of requested eigenpairs (={columns})"
        )
    A, B = _hermitian_part(A), None if B is None else _hermitian_part(B)
    if B is None:
        values, vectors = ops.linalg_eigh(A)
    else:
        # with x = L^-H y the matrix is L^-1 A L^-H
        factor, _ = ops.linalg_cholesky_ex(B)
        half = ops.linalg_solve_triangular(factor, A, upper=False)
        inner = ops.linalg_solve_triangular(factor, half.mH, upper=False)
        values, turned = ops.linalg_eigh(inner)
        vectors = ops.linalg_solve_triangular(factor.mH, turned, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]


def _hermitian_part(matrix):
    dense = matrix.to_dense()
    return (dense + dense.mH) / 2


def _check_square(name, matrix):
    if matrix.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions. It has shape "
            f"{list(matrix.shape)}"
        )
    rows, columns = matrix.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {rows} by {columns} "
            "matrices"
        )
