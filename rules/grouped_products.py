"""Products of groups of rows or columns with matrices of their own, as layers of experts need."""

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import dtypes, promotion


def grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """Each group's product. Rows and columns behind the last offset give 0."""
    _check(self, mat2, offs, bias, out_dtype)
    precision = promotion.product_precision(self)
    if offs is None:
        return jnp.matmul(self, mat2, precision=precision)
    sizes = jnp.diff(offs, prepend=jnp.zeros(1, offs.dtype))
    if mat2.ndim == 3:
        return lax.ragged_dot(self, mat2, sizes, precision=precision)
    if (
        self.ndim == 3
    ):  # the columns have groups: those of the product are the rows of its transpose
        turned = lax.ragged_dot(mat2.T, self.swapaxes(1, 2), sizes, precision=precision)
        return turned.T
    contracted = lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=(((1,), (0,)), ((), ())),
        lhs_ragged_dimensions=[1],
        rhs_group_dimensions=[],
    )
    return lax.ragged_dot_general(self, mat2, sizes, contracted, precision=precision)


def _check(self, mat2, offs, bias, out_dtype):
    if self.ndim not in (2, 3) or mat2.ndim not in (2, 3):
        raise RuntimeError(
            f"grouped_mm: mat_a and mat_b must be 2d or 3d, not {self.ndim}d and {mat2.ndim}d"
        )
    if self.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            "contraction dimension of mat_a and mat_b must match: "
            f"{list(self.shape)} and {list(mat2.shape)}"
        )
    if (offs is not None) != (self.ndim == 2 or mat2.ndim == 2):
        raise RuntimeError("grouped_mm: offs are needed if, and only if, mat_a or mat_b is 2d")
    groups = [matrices.shape[0] for matrices in (self, mat2) if matrices.ndim == 3]
    if offs is not None and (offs.ndim != 1 or offs.dtype != jnp.int32):
        raise RuntimeError("grouped_mm: offs must be 1d and int32")
    if len({*groups, *([] if offs is None else offs.shape)}) > 1:
        raise RuntimeError(
            f"grouped_mm: the numbers of groups differ: {groups} matrices, "
            f"{'no' if offs is None else offs.shape[0]} offsets"
        )
    if self.dtype != mat2.dtype:
        raise RuntimeError(
            f"grouped_mm: mat_a and mat_b must have one dtype, not {dtypes.from_numpy(self.dtype)} "
            f"and {dtypes.from_numpy(mat2.dtype)}"
        )
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet: add it to the result")
    if out_dtype is not None and out_dtype is not dtypes.from_numpy(self.dtype):
        raise RuntimeError(
            f"grouped_mm: the result has the dtype of mat_a, so out_dtype={out_dtype} is refused: "
            "convert the result"
        )
