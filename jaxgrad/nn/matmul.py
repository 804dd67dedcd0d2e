"""Products of groups of matrices, such as those of the experts that a router has chosen."""

from __future__ import annotations

from .. import ops
from ..core.dtypes import dtype
from ..core.tracebacks import shows_users_frames
from ..tape.tensor import Tensor


@shows_users_frames
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """Return the products of groups of matrices, whose sizes may differ.

    mat_a: a batch (g, n, m), or a matrix (n, m) that has the groups side by side: groups of rows,
    or of columns if `mat_b` is a matrix too. mat_b: (g, m, p), or a matrix (m, p) with groups of
    columns, or of rows if `mat_a` is a matrix too. offs: where the groups of a matrix end, int32
    and increasing; None for two batches. bias: None. out_dtype: None, or the dtype of `mat_a`.
    The result is (n, p) for a matrix and a batch, else (g, n, p), and zero outside of the groups.
    Raises RuntimeError for other shapes, dtypes and arguments.

    >>> experts = jaxgrad.tensor([[[1.0]], [[2.0]]])
    >>> ends = jaxgrad.tensor([1, 3], dtype=jaxgrad.int32)
    >>> F.grouped_mm(jaxgrad.ones(3, 1), experts, offs=ends)
    tensor([[1.],
            [2.],
            [2.]])
    """
    return ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)
