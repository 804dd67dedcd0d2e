"""Sparse tensors in coordinate format, as in torch.sparse.

>>> adjacency = jaxgrad.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2), requires_grad=True)
>>> jaxgrad.sparse.mm(adjacency, jaxgrad.ones(2, 1)).sum().backward()
>>> adjacency.grad
tensor(indices=tensor([[0, 1],
                       [1, 0]]),
       values=tensor([1., 1.]),
       size=(2, 2), nnz=2, layout=torch.sparse_coo)
"""

from __future__ import annotations

import functools

from ..core.device import sparse_coo as _sparse_coo
from ..core.tracebacks import shows_users_frames
from ..late import LateModule
from ..names.missing import MissingName
from ..tape.sparse_tensor import is_compressed as _is_compressed
from ..tape.sparse_tensor import is_sparse as _is_sparse
from ..tape.tensor import Tensor
from . import _compressed, _dispatch, _products, _reductions
from ._construction import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from ._construction import spdiags as spdiags

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]


@shows_users_frames
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Return the product of a sparse matrix and a matrix.

    mat1: (n, m), sparse; or dense, if mat2 is sparse. mat2: (m, p), dense or sparse, of the same
    dtype. reduce: "sum", "mean", "amax" or "amin" of the products, for a CSR `mat1`. Returns a
    dense (n, p), sparse if both are sparse. The gradient of a sparse matrix lies on its pattern.
    Raises RuntimeError for other shapes and dtypes.

    >>> jaxgrad.sparse.mm(jaxgrad.eye(2).to_sparse(), jaxgrad.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    if reduce is not None:
        return _compressed.reduced_mm(mat1, mat2, reduce)
    if not _is_sparse(mat1) or _is_sparse(mat2):
        return _dispatch.call("mm", (mat1, mat2), {}) if _is_sparse(mat2) else mat1.mm(mat2)
    return addmm(mat2.new_zeros(()), mat1, mat2, beta=0)


@shows_users_frames
def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1.0, alpha=1.0, out: Tensor | None = None
) -> Tensor:
    """Return `beta * input`, and `alpha` times the elements of `mat1 @ mat2` at its indices.

    input: (n, p), of layout `sparse_csr`. mat1: (n, m); mat2: (m, p), dense. Returns a tensor with
    the pattern of `input`. Raises RuntimeError for other layouts and shapes.

    >>> jaxgrad.sparse.sampled_addmm(
    ...     jaxgrad.eye(2).to_sparse_csr(), jaxgrad.ones(2, 3), jaxgrad.ones(3, 2)
    ... ).values()
    tensor([4., 4.])
    """
    result = _compressed.sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return result if out is None else out.copy_(result)


@shows_users_frames
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """Return `beta * mat + alpha * (mat1 @ mat2)`.

    mat: dense, broadcasts to (n, p). mat1: (n, m), sparse. mat2: (m, p), dense, of the same dtype.
    With beta=0 NaN in `mat` is ignored. Raises RuntimeError for other shapes and dtypes.

    >>> jaxgrad.sparse.addmm(jaxgrad.ones(2, 1), jaxgrad.eye(2).to_sparse(), jaxgrad.ones(2, 1))
    tensor([[2.],
            [2.]])
    """
    if not _is_sparse(mat1):
        return mat.addmm(mat1, mat2, beta=beta, alpha=alpha)
    mat1 = _compressed.as_coo(mat1) if _is_compressed(mat1) else mat1
    operator = "_coo_sparse_addmm"
    return _products.addmm(mat, mat1, mat2, beta=beta, alpha=alpha, operator=operator)


@shows_users_frames
def sum(input: Tensor, dim=None, dtype=None) -> Tensor:
    """Return the sum of a sparse tensor over dimensions.

    dim: an int or a tuple of ints; None for all. dtype: converts the tensor first. Returns a sparse
    tensor if sparse dimensions are left, else a dense one. The gradient lies on the pattern of
    `input`. Raises RuntimeError for a dense tensor, IndexError for a dimension out of range.

    >>> jaxgrad.sparse.sum(jaxgrad.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not _is_sparse(input) or _is_compressed(input):
        raise RuntimeError(
            "coalesce expected sparse coordinate tensor layout but got "
            f"{_compressed.name_of(input)}"
        )
    return _reductions.sum_in_dtype(input, dim, dtype)


@shows_users_frames
def softmax(input: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Return the softmax along a dimension over the elements that are stored.

    input: sparse, floating point; elements that are not stored count as minus infinity. dtype:
    converts it first.

    >>> jaxgrad.sparse.softmax(jaxgrad.eye(2).to_sparse(), 1).values()
    tensor([1., 1.])
    """
    return _softmax("_softmax", input, dim, dtype, "_coo_softmax")


@shows_users_frames
def log_softmax(input: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Return the logarithm of the softmax along a dimension over the elements that are stored.

    The arguments are those of `softmax`.

    >>> jaxgrad.sparse.log_softmax(jaxgrad.eye(2).to_sparse(), 1).values()
    tensor([0., 0.])
    """
    return _softmax("_log_softmax", input, dim, dtype, "_coo_log_softmax")


def _softmax(name, input, dim, dtype, operator):
    if not _is_sparse(input):
        raise NotImplementedError(
            f"Could not run 'aten::_sparse{name}' with arguments from the 'CPU' backend: the tensor"
            " is dense"
        )
    if input.layout is not _sparse_coo:
        raise NotImplementedError(
            f"Could not run 'aten::_sparse{name}' with arguments from the 'SparseCsrCPU' backend: "
            f"take x.to_sparse(), since x has the layout {input.layout}"
        )
    input = input if dtype is None else input.to(dtype)
    if not input.is_floating_point():
        _dispatch.refuse(f"_sparse{name} of {input.dtype}")
    return _reductions.softmax(input, dim, operator)


def as_sparse_gradcheck(gradcheck):
    """Return a `gradcheck` for functions that return sparse tensors, too.

    gradcheck: `autograd.gradcheck`, or a partial of it. The result takes its arguments; outputs
    are checked as dense tensors, and `masked` says which elements of sparse inputs move.

    >>> x = jaxgrad.eye(2, dtype=jaxgrad.float64).to_sparse().requires_grad_()
    >>> jaxgrad.sparse.as_sparse_gradcheck(jaxgrad.autograd.gradcheck)(lambda x: x * x, x)
    True
    """

    @functools.wraps(gradcheck)
    def check(func, inputs, **options):
        @functools.wraps(func)
        def of_dense(*arguments, **kwargs):
            outputs = func(*arguments, **kwargs)
            if isinstance(outputs, list | tuple):
                return tuple(map(_as_dense, outputs))
            return _as_dense(outputs)

        return gradcheck(of_dense, inputs, **{"masked": False} | options)

    return check


def _as_dense(output):
    return output.to_dense() if _is_sparse(output) else output


_types = LateModule("jaxgrad.sparse._types")


def __getattr__(name):
    if name == "__path__":
        return list(__spec__.submodule_search_locations)
    if name.endswith("Tensor") and name in _types.TYPES:
        return _types.TYPES[name]
    raise MissingName(__name__, name)
