"""`grouped_mm`: products of groups of rows with matrices of their own."""

from __future__ import annotations

from .. import ops
from ..core.dtypes import dtype
from ..core.tracebacks import api_boundary
from ..tape.tensor import Tensor


@api_boundary
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:  # fmt: skip
    """Return products of groups of rows or columns with matrices of their own, as layers of experts
    need.

    mat_a: (n, m), whose rows have groups, with mat_b (g, m, p): returns (n, p). Or (g, n, m) with
    (m, p), whose columns have groups: (n, p). Or (n, m) with (m, p), where the sum over m is
    divided into groups: (g, n, p). Or both with three dimensions: (g, n, p). offs: int32 of shape
    (g,), where each group ends; None in the last case. bias: must be None. out_dtype: must be that
    of mat_a.

    Rows and columns behind the last offset give 0. Raises RuntimeError for other shapes and dtypes.

    >>> a, b = jaxgrad.ones(3, 2), jaxgrad.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> offs = jaxgrad.tensor([1, 3], dtype=jaxgrad.int32)
    >>> jaxgrad.nn.functional.grouped_mm(a, b, offs=offs)
    tensor([[2.],
            [4.],
            [4.]])
    """
    return ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)
