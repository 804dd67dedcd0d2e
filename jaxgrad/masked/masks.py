"""Masks, and the identity of each reduction, which replaces the elements that are masked out."""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..frontend import factories
from ..tape.tensor import Tensor

ZERO, ONE = frozenset(["sum", "cumsum", "norm"]), frozenset(["prod", "cumprod"])
LEAST = frozenset(["amax", "argmax", "logaddexp", "logsumexp"])
GREATEST = frozenset(["amin", "argmin"])


def input_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return a mask as a bool tensor of the shape of input.

    Raises IndexError if it has more dimensions, RuntimeError if it does not broadcast.
    """
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            f"input): {list(mask.shape)} for {list(input.shape)}"
        )
    return mask.to(dtypes.bool).broadcast_to(input.shape)


def combined(name: str, input: Tensor, mask: Tensor | None) -> Tensor:
    """Return input with the identity of the reduction `name` where it is masked out."""
    if mask is None:
        return input
    identity = factories.full(
        (), _identity(name, input.dtype), dtype=input.dtype, device=input.device
    )
    return ops.where(input_mask(input, mask), input, identity)


def _identity(name, dtype):
    """The number that changes no result of a reduction."""
    if name in ZERO or name in ONE:
        return int(name in ONE)
    if name == "median":
        return float("nan")  # which the median leaves out
    if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
        return float("-inf" if name in LEAST else "inf")
    if dtype.category != dtypes.INTEGRAL:
        raise NotImplementedError(f"identity of {name} on {dtype} input: convert to floats")
    limits = dtypes.iinfo(dtype)
    return limits.min if name in LEAST else limits.max


def canonical_dims(dim, ndim: int) -> tuple[int, ...]:
    """Return the dimensions to reduce in order, counted from 0; None and () mean all.

    Raises RuntimeError for a dimension that is named twice, IndexError for one out of range.
    """
    if dim is None or dim == ():
        return tuple(range(ndim))
    dims, extent = [], max(ndim, 1)
    for dimension in (dim,) if isinstance(dim, int) else dim:
        if not -extent <= dimension < extent:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], "
                f"but got {dimension})"
            )
        if dimension % extent in dims:
            raise RuntimeError(f"dim={dimension} appears multiple times in the list of dims")
        dims.append(dimension % extent)
    return tuple(sorted(dims))


def sum_type(input: Tensor, dtype):
    """Return the dtype of a sum or product: int64 for integers and bool."""
    integral = input.dtype.category <= dtypes.INTEGRAL
    return dtype if dtype is not None else dtypes.int64 if integral else input.dtype
