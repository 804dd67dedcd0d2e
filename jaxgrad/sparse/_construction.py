"""Making sparse tensors, and the operators under their names in early PyTorch."""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import ops
from ..core import dtypes
from ..core.device import check_pinning, sparse_coo, sparse_csc, sparse_csr
from ..core.tracebacks import shows_users_frames
from ..frontend import tensor_data
from ..tape.sparse_tensor import sparse
from ..tape.tensor import Tensor, check_differentiable, is_concrete
from . import _pattern


class check_sparse_tensor_invariants:
    """Whether new sparse tensors are checked for all invariants; a context manager and decorator.

    enable: whether to check inside. Shapes and ranges of indices are checked in any case; this is
    about a wrong `is_coalesced=True`.

    >>> with jaxgrad.sparse.check_sparse_tensor_invariants():
    ...     jaxgrad.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _enabled = False

    def __init__(self, enable: bool = True):
        self.state, self.saved = enable, None

    @staticmethod
    def is_enabled() -> bool:
        """Return whether new tensors are checked."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable():
        """Check new tensors from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable():
        """Check no more."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self):
        if self.saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self.saved, check_sparse_tensor_invariants._enabled = self.is_enabled(), self.state

    def __exit__(self, *exception):
        check_sparse_tensor_invariants._enabled, self.saved = self.saved, None

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return call


@shows_users_frames
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Return a sparse tensor with these values at these indices; values at equal indices add up.

    indices: integers of shape (sparse dimensions, elements), a tensor or nested lists. values: of
    shape (elements, *dense sizes), a tensor or lists; gradients flow back to a tensor. size: the
    sizes, by default the smallest that hold the indices. `sparse_coo_tensor(size)` has no elements.
    dtype, device: those of the values. requires_grad: whether the tensor is a leaf that requires
    grad. check_invariants: whether `is_coalesced` is checked. is_coalesced: says that the indices
    are sorted and distinct.

    Raises RuntimeError for shapes that do not fit, indices out of range, and in a trace without
    `size`. In a trace indices are not checked: elements out of range are dropped.

    >>> jaxgrad.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if pin_memory:
        check_pinning("sparse_coo_tensor()")
    if values is None:
        size = indices if size is None else size
        values, indices = tensor_data.tensor([], dtype=dtype), np.zeros((len(size), 0), np.int64)
        is_coalesced = True
    held, data = _as_index_tensor(indices), values
    if not isinstance(values, Tensor):
        data = tensor_data.tensor(values, dtype=dtype)
    data = data.to(device=data.device if device is None else device, dtype=dtype or data.dtype)
    data = data if data.ndim else data.expand(1)
    if data.is_meta or held.is_meta:
        raise NotImplementedError(
            "sparse_coo_tensor: a sparse tensor on the device meta comes in no version yet: its "
            "indices must be known. Make it of data, or a dense one on meta"
        )
    size = checked(held, data, size)
    claimed = bool(is_coalesced) and (
        check_invariants
        or (check_invariants is None and check_sparse_tensor_invariants.is_enabled())
    )
    is_sorted = bool(is_coalesced) if is_coalesced is not None else held.shape[1] < 2
    tensor = sparse(ops._coo_tensor(data), held, size, is_sorted)
    if claimed and not _pattern.is_coalesced(
        _pattern.needed(tensor, "check_invariants"), size[: held.shape[0]]
    ):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        )
    if not requires_grad or tensor.requires_grad:
        return tensor
    check_differentiable(tensor)
    return tensor.requires_grad_()


def _as_index_tensor(indices) -> Tensor:
    if not isinstance(indices, Tensor):
        indices = tensor_data.tensor(indices)
    return indices.detach().long()


def checked(indices: Tensor, values: Tensor, size) -> tuple[int, ...]:
    """The sizes of a new tensor. Raises RuntimeError for parts that do not fit together."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if not values.ndim or values.shape[0] != indices.shape[1]:
        count = values.shape[0] if values.ndim else 0
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{indices.shape[1]}, nnz from values: {count}"
        )
    numbers = np.asarray(indices._array) if is_concrete(indices) else None
    least = () if numbers is None or not numbers.size else numbers.min(1)
    greatest = () if numbers is None or not numbers.size else numbers.max(1)
    for dim, index in enumerate(least):
        if index < 0:
            raise RuntimeError(f"found negative index {index} for dim {dim}")
    if size is None:
        if numbers is None:
            raise RuntimeError("sparse_coo_tensor needs a size where indices are traced")
        sizes = greatest + 1 if len(greatest) else np.zeros(indices.shape[0], np.int64)
        return (*map(int, sizes), *values.shape[1:])
    size = tuple(size)
    if math.prod(size) >= 2**63:
        raise RuntimeError(f"numel: integer multiplication overflow: {list(size)}")
    if len(size) != indices.shape[0] + values.ndim - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
            f"sparse_dim = {indices.shape[0]}, dense_dim = {values.ndim - 1}"
        )
    for dim, index in enumerate(greatest):
        if index >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found "
                f"index {index}"
            )
    inner = size[indices.shape[0] :]
    if inner != tuple(values.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[values.shape[0], *inner]}, got "
            f"{list(values.shape)}"
        )
    return size


@shows_users_frames
def spdiags(diagonals: Tensor, offsets: Tensor, shape, layout=None) -> Tensor:
    """Return a sparse matrix with the rows of a tensor as its diagonals.

    diagonals: (k, n), or (n,) for one; element j of a row goes to column j. offsets: (k,) distinct
    integers, which diagonal each row is: 0 is the main one, 1 the one above. shape: that of the
    matrix. layout: sparse_coo, which is the default, sparse_csr or sparse_csc.

    Raises RuntimeError for offsets that are equal or do not fit the diagonals, and for a shape that
    is no matrix.

    >>> jaxgrad.sparse.spdiags(jaxgrad.ones(1, 2), jaxgrad.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 0.]])
    """
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(
            "spdiags: Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            f"{layout}"
        )
    _check_diagonals(diagonals, offsets, shape)
    diagonals = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    above = np.atleast_1d(np.asarray(offsets.detach().cpu()))
    if len({*above.tolist()}) != len(above):
        raise RuntimeError(f"Offset tensor contains duplicate values: {above.tolist()}")
    row, column = np.indices(diagonals.shape)
    target = column - above[:, None]  # the row of the matrix
    inside = (target >= 0) & (target < shape[0]) & (column < shape[1])
    places = tensor_data.tensor(np.stack([target[inside], column[inside]]))
    values = diagonals[tensor_data.tensor(row[inside]), tensor_data.tensor(column[inside])]
    matrix = sparse_coo_tensor(places, values, tuple(shape))
    return matrix if layout in (None, sparse_coo) else matrix.to_sparse(layout=layout)


def _check_diagonals(diagonals, offsets, shape):
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {list(shape)}")
    if offsets.ndim > 1:
        raise RuntimeError(f"Offsets must be scalar or vector, got shape {list(offsets.shape)}")
    if diagonals.ndim not in (1, 2):
        shape = list(diagonals.shape)
        raise RuntimeError(f"Diagonals must be vector or matrix, got shape {shape}")
    if offsets.dtype is not dtypes.int64:
        name = offsets.dtype.scalar_type
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {name}")
    count = diagonals.shape[0] if diagonals.ndim == 2 else 1
    if count != offsets.numel():
        raise RuntimeError(
            f"Number of diagonals ({count}) does not match the number of offsets "
            f"({offsets.numel()})"
        )
