"""Products of sparse matrices."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..ops.old_forms import takes_old_form
from ..tape.sparse_tensor import SparseTensor, is_sparse, sparse, values_of
from ..tape.tensor import Tensor
from . import _pattern, _refusals
from ._arithmetic import add, mul
from ._elements import coalesce, ndim_of, to_dense
from ._pattern import needed, sparse_dims
from ._shapes import t


def check_matrix(name: str, self: SparseTensor, columns=None):
    """Raise RuntimeError for a tensor that is no sparse matrix, or has other columns."""
    if self.ndim != 2 or sparse_dims(self) != 2:
        raise RuntimeError(
            f"{name}: expected a sparse matrix, with 2 sparse dimensions, but got "
            f"{sparse_dims(self)} sparse and {self.ndim - sparse_dims(self)} dense dimensions"
        )
    if columns is not None and self.shape[1] != columns[0]:
        raise RuntimeError(
            f"{name}: Expected dim 0 size {self.shape[1]}, got {columns[0]}: mat1 and mat2 shapes "
            f"cannot be multiplied ({_pattern.words(self.shape)} and {_pattern.words(columns)})"
        )


def _check_operands(name, self, other, ndim=2):
    if not is_sparse(other) and ndim_of(other) < min(ndim, 2):
        raise IndexError(
            f"{name}: Dimension out of range: expected a {ndim}-D tensor as operand, but got shape "
            f"{list(other.shape)}"
        )
    if not isinstance(other, Tensor) or other.ndim != ndim:
        shape = list(getattr(other, "shape", ()))
        raise RuntimeError(f"{name}: expected a {ndim}-D tensor as operand, but got shape {shape}")
    if self.dtype is not other.dtype:
        raise RuntimeError(
            f"{name}: mat1 dtype {self.dtype.scalar_type} does not match mat2 dtype "
            f"{other.dtype.scalar_type}: expected both operands to have the same dtype"
        )


def mm(self, mat2) -> Tensor:
    """The product of a sparse matrix and another matrix, sparse or dense."""
    if not is_sparse(self):
        return ops.t(mm(t(mat2), ops.t(self)))
    _check_operands("mm", self, mat2)
    check_matrix("mm", self, tuple(mat2.shape))
    if is_sparse(mat2):
        return _sparse_product(self, mat2)
    return ops._coo_mm(values_of(self), self._indices_held, self.shape[0], mat2)


def bmm(self, mat2) -> Tensor:
    """The products of the matrices of a sparse and of a dense batch: that of a sparse matrix with
    them as its blocks.
    """
    if not is_sparse(self) or is_sparse(mat2):
        raise RuntimeError(
            "bmm_sparse: Tensor 'mat2' must be dense, and the batch before it sparse"
        )
    _check_operands("bmm", self, mat2, 3)
    if sparse_dims(self) != 3:
        raise RuntimeError(
            f"bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {sparse_dims(self)}"
        )
    (count, rows, columns), inner = self.shape, mat2.shape[2]
    if mat2.shape[:2] != (count, columns):
        raise RuntimeError(
            f"bmm_sparse: batches of shapes {list(self.shape)} and {list(mat2.shape)} cannot be "
            "multiplied"
        )
    batch, row, column = ops.unbind(self._indices_held)
    blocks = ops.stack([batch * rows + row, batch * columns + column])
    joined = ops.reshape(mat2, (count * columns, inner))
    product = ops._coo_mm(values_of(self), blocks, count * rows, joined)
    return ops.reshape(product, (count, rows, inner))


def hspmm(mat1, mat2) -> SparseTensor:
    """The rows of a product that a sparse matrix has: a tensor with one sparse dimension."""
    if not is_sparse(mat1) or is_sparse(mat2):
        raise RuntimeError("hspmm: the first matrix must be sparse, the second one dense")
    _check_operands("hspmm", mat1, mat2)
    check_matrix("hspmm", mat1, tuple(mat2.shape))
    row, column = needed(mat1, "hspmm")
    kept, place = np.unique(row, return_inverse=True)
    within = _pattern.as_indices(np.stack([place.reshape(-1), column]))
    values = ops._coo_mm(values_of(mat1), within, len(kept), mat2)
    return sparse(values, _pattern.as_indices(kept[None]), (mat1.shape[0], mat2.shape[1]), True)


def smm(input, mat) -> SparseTensor:
    """The product of a sparse and a dense matrix, as a sparse matrix."""
    _need_sparse("smm", input)
    rows = hspmm(input, mat)
    row, columns = needed(rows, "smm"), rows.shape[1]
    indices = np.stack([np.repeat(row[0], columns), np.tile(np.arange(columns), row.shape[1])])
    values = ops.reshape(values_of(rows), (-1,))
    return sparse(values, _pattern.as_indices(indices), rows._sizes, True)


def _need_sparse(name, input):
    if not is_sparse(input):
        raise RuntimeError(f"{name}: tensor.sspaddmm(...) can only be called on sparse tensors")


def takes_old_sspaddmm(function):
    """A decorator: the function takes the numbers before the tensors that they scale too."""
    return takes_old_form(
        "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
        "-> Tensor"
    )(function)


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1) -> SparseTensor:
    """`beta * input + alpha * (mat1 @ mat2)` with a sparse `input` and a sparse `mat1`."""
    _need_sparse("sspaddmm", input)
    product = smm(mat1, mat2)
    return add(mul(input, beta), product, alpha=alpha)


def _sparse_product(self, other):
    check_matrix("mm", other)
    self, other = coalesce(self), coalesce(other)
    (row, middle), (first, column) = (
        needed(operand, "mm of sparse matrices") for operand in (self, other)
    )
    begin, end = np.searchsorted(first, middle), np.searchsorted(first, middle, side="right")
    right, left = _pattern.members(begin, end)
    sizes = self.shape[0], other.shape[1]
    kept, _, inverse = _pattern.distinct(np.stack([row[left], column[right]]), sizes)
    pairs = [_pattern.as_indices(positions) for positions in (left, right, inverse)]
    values = ops._coo_matmul(values_of(self), values_of(other), *pairs, kept.shape[1])
    return sparse(values, _pattern.as_indices(kept), sizes, True)


def mv(self, vec) -> Tensor:
    """The product of a sparse matrix and a vector."""
    if not is_sparse(self) and self.ndim == 2:
        return ops.mv(self, to_dense(vec))
    if not is_sparse(self) or is_sparse(vec):
        raise RuntimeError(
            "mv: two tensor dim should be 2 and 1, and only the first one sparse, but got "
            f"{self.layout} with {self.ndim} and {vec.layout} with {vec.ndim} dimensions"
        )
    _check_operands("mv", self, vec, 1)
    check_matrix("mv", self)
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(
            "mv: expected self.size(-1) == vec.size(-1), size mismatch, got "
            f"{_pattern.words(self.shape)} and {vec.shape[0]}"
        )
    return ops._coo_mv(values_of(self), self._indices_held, self.shape[0], vec)


def addmv(self, mat, vec, *, beta=1, alpha=1) -> Tensor:
    """`beta * self + alpha * (mat @ vec)` with a sparse matrix."""
    product = ops.mul(mv(mat, vec), alpha)
    return product if beta == 0 else ops.add(product, ops.mul(self, beta))


def matmul(self, other) -> Tensor:
    """The product of a sparse matrix with a dense or sparse matrix or a vector."""
    if not (isinstance(self, Tensor) and isinstance(other, Tensor)):
        kinds = type(self).__name__, type(other).__name__
        raise TypeError("unsupported operand type(s) for @: '{}' and '{}'".format(*kinds))
    if not ndim_of(self) or not ndim_of(other):
        raise RuntimeError("both arguments to matmul need to be at least 1D")
    if is_sparse(self) and ndim_of(other) == 1 and isinstance(other, Tensor):
        return mv(self, other)
    if ndim_of(self) == ndim_of(other) == 3:
        return bmm(self, other)
    if ndim_of(self) == 1:
        return mv(t(other) if is_sparse(other) else ops.t(other), self)
    if not is_sparse(self) and self.ndim > 2 and other.ndim == 2:
        product = mm(ops.reshape(self, (-1, self.shape[-1])), other)
        return ops.reshape(product, (*self.shape[:-1], other.shape[1]))
    return mv(self, other) if other.ndim == 1 else mm(self, other)


def linear(input, weight, bias=None) -> Tensor:
    """`input @ weight.t() + bias` with a sparse weight or input."""
    product = matmul(input, t(weight) if is_sparse(weight) else ops.t(weight))
    return product if bias is None else product + bias


def addmm(self, mat1, mat2, *, beta=1, alpha=1, operator="_coo_addmm") -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)` with a sparse `mat1`, or of sparse matrices alone."""
    if is_sparse(self) and is_sparse(mat1) and is_sparse(mat2):
        product = mul(mm(mat1, mat2), alpha)
        return product if beta == 0 else add(mul(self, beta), product)
    if is_sparse(self):
        raise RuntimeError(
            "addmm: a sparse tensor is added to the product of two sparse matrices alone; use "
            "to_dense()"
        )
    if self.ndim > 2:
        raise RuntimeError(
            f"addmm: expand of shape {list(self.shape)} to that of the product: the number of "
            "sizes provided (2) must be greater or equal to the number of dimensions in the tensor "
            f"({self.ndim})"
        )
    if is_sparse(mat2) or not is_sparse(mat1):
        product = mm(mat1, mat2)
        product = ops.mul(to_dense(product) if is_sparse(product) else product, alpha)
        return product if beta == 0 else ops.add(product, ops.mul(self, beta))
    _check_operands("addmm", mat1, mat2)
    check_matrix("addmm", mat1, tuple(mat2.shape))
    return getattr(ops, operator)(
        self, values_of(mat1), mat1._indices_held, mat1.shape[0], mat2, beta=beta, alpha=alpha
    )


def addr(self, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
    """`beta * self + alpha * outer(vec1, vec2)`, a dense matrix."""
    parts = [to_dense(part) if is_sparse(part) else part for part in (self, vec1, vec2)]
    return ops.addr(*parts, beta=beta, alpha=alpha)


def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):
    """The solution of a triangular system with a sparse matrix; the copy of it has no elements."""
    if is_sparse(self):
        raise _refusals.refusal("triangular_solve", self.layout)
    result = ops.triangular_solve(self, A.to_dense(), upper, transpose, unitriangular)
    return type(result)(result.solution, self.new_empty(0))
