"""Indices of sparse rows: one by one, or compressed to where each row begins."""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..frontend import factories
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


@api_boundary
def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Return where each row begins among sorted indices of rows, and where the last one ends.

    input: (n,) integers that rise, below `size`. Returns (size + 1,), int32 if `out_int32`.

    >>> jaxgrad._convert_indices_from_coo_to_csr(jaxgrad.tensor([0, 0, 2]), 3)
    tensor([0, 2, 2, 3])
    """
    rows = factories.arange(size + 1, dtype=input.dtype, device=input.device)
    return ops.searchsorted(input, rows, out_int32=out_int32)


@api_boundary
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the indices (2, n) of the elements of a matrix in compressed rows.

    crow_indices: (rows + 1,), where each row begins; col_indices: (n,). transpose: whether the
    result has the columns first. Batches (b, rows + 1) and (b, n) give (3, b * n).

    >>> rows, columns = jaxgrad.tensor([0, 2, 3]), jaxgrad.tensor([0, 1, 1])
    >>> jaxgrad._convert_indices_from_csr_to_coo(rows, columns)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    places = factories.arange(
        col_indices.shape[-1], dtype=crow_indices.dtype, device=crow_indices.device
    ).expand(col_indices.shape)
    rows = ops.searchsorted(crow_indices, places.contiguous(), right=True) - 1
    indices = [col_indices, rows] if transpose else [rows, col_indices]
    if col_indices.ndim == 2:
        batches = factories.arange(col_indices.shape[0], device=col_indices.device)
        indices = [batches.unsqueeze(1).expand(col_indices.shape), *indices]
    dtype = dtypes.int32 if out_int32 else dtypes.int64
    return ops.stack([index.reshape(-1).to(dtype) for index in indices])
