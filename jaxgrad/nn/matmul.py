"""Products of groups of matrices, such as those of the experts that a router has chosen, and of
scaled matrices.
"""

from __future__ import annotations

import enum

from .. import functions, ops
from ..core.dtypes import bfloat16, dtype
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


class ScalingType(enum.Enum):
    """What the scales of a matrix belong to: to all of it, to rows, or to blocks.

    >>> F.ScalingType.RowWise.value
    1
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.Enum):
    """How the scales of a matrix lie in memory.

    >>> F.SwizzleType.NO_SWIZZLE.value
    0
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


@shows_users_frames
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: ScalingType | list[ScalingType],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: ScalingType | list[ScalingType],
    swizzle_a: SwizzleType | list[SwizzleType] | None = None,
    swizzle_b: SwizzleType | list[SwizzleType] | None = None,
    bias: Tensor | None = None,
    output_dtype: dtype | None = bfloat16,
    contraction_dim: list[int] | tuple[int, ...] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """Return `(mat_a * scale_a) @ (mat_b * scale_b) + bias` of floats of 8 bits, computed in
    float32.

    mat_a: (n, k). mat_b: (k, m). scale_a, scale_b: float32, with one element for
    `ScalingType.TensorWise`, or (n, 1) and (1, m) for `ScalingType.RowWise`; alone or in a list of
    one. swizzle_a, swizzle_b: None or `SwizzleType.NO_SWIZZLE`. bias: (m,). output_dtype: None is
    the dtype of `mat_a`. contraction_dim and use_fast_accum have no effect, as on PyTorch's CPUs.
    Raises RuntimeError for other shapes of matrices, ValueError for other scales, recipes and
    dtypes of matrices.

    >>> x, scale = jaxgrad.ones(2, 2).to(jaxgrad.float8_e4m3fn), jaxgrad.tensor(0.5)
    >>> whole = F.ScalingType.TensorWise
    >>> F.scaled_mm(x, x, scale, whole, scale, whole, output_dtype=jaxgrad.float32)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    recipes = (scale_recipe_a, swizzle_a), (scale_recipe_b, swizzle_b)
    first, second = [[_numbers(kind) for kind in kinds] for kinds in recipes]
    return functions.find("_scaled_mm_v2")(
        mat_a,
        mat_b,
        _listed(scale_a),
        *first,
        _listed(scale_b),
        *second,
        bias,
        output_dtype,
        contraction_dim,
        use_fast_accum,
    )


def _listed(value) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def _numbers(kinds) -> list[int]:
    return [] if kinds is None else [kind.value for kind in _listed(kinds)]
