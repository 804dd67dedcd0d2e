"""Checks of the parts of sparse tensors, under PyTorch's names."""

from __future__ import annotations

import numpy as np

from ..core.device import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..core.tracebacks import shows_users_frames
from ..tape.tensor import Tensor, concrete
from . import _compressed_construction, _construction, _layouts, _pattern


@shows_users_frames
def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size, is_coalesced=None, check_pinning=None
) -> None:
    """Raise RuntimeError for parts that make no tensor in coordinate format.

    indices, values, size: as for `sparse_coo_tensor`. is_coalesced: whether the indices must be
    sorted and distinct. check_pinning: without effect.

    >>> indices = jaxgrad.tensor([[0, 1]])
    >>> jaxgrad._validate_sparse_coo_tensor_args(indices, jaxgrad.ones(2), (2,))
    """
    size = _construction.checked(indices, values, size)
    numbers = np.asarray(concrete(indices, "is_coalesced")) if is_coalesced else None
    if is_coalesced and not _pattern.is_coalesced(numbers, size[: len(numbers)]):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        )


@shows_users_frames
def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size,
    layout,
    check_pinning=None,
) -> None:
    """Raise RuntimeError for parts that make no tensor in a compressed layout.

    The arguments are those of `sparse_compressed_tensor`. check_pinning: without effect.

    >>> parts = jaxgrad.tensor([0, 1, 2]), jaxgrad.tensor([1, 0]), jaxgrad.ones(2)
    >>> jaxgrad._validate_sparse_compressed_tensor_args(*parts, (2, 2), jaxgrad.sparse_csr)
    """
    if layout not in _layouts.LAYOUTS:
        raise RuntimeError(f"expected a sparse compressed layout, but got {layout}")
    words = _compressed_construction.Words(layout)
    _compressed_construction.check_contiguous(words, compressed_indices, plain_indices)
    _compressed_construction.checked(words, compressed_indices, plain_indices, values, size)


def _of_layout(layout):
    name = f"_validate_{layout.name}_tensor_args"

    @shows_users_frames
    def check(compressed_indices, plain_indices, values, size, check_pinning=None) -> None:
        parts = compressed_indices, plain_indices, values
        _validate_sparse_compressed_tensor_args(*parts, size, layout, check_pinning)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Raise RuntimeError for parts that make no tensor of layout {layout}; see
    `_validate_sparse_compressed_tensor_args`.
    """
    return check


_validate_sparse_csr_tensor_args, _validate_sparse_csc_tensor_args = map(
    _of_layout, (sparse_csr, sparse_csc)
)
_validate_sparse_bsr_tensor_args, _validate_sparse_bsc_tensor_args = map(
    _of_layout, (sparse_bsr, sparse_bsc)
)
