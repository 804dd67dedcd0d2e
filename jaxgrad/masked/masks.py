"""Masks, and the identity of each reduction, which replaces the elements that are masked out."""

from __future__ import annotations

import functools

from .. import ops
from ..core import device as devices
from ..core import dtypes
from ..core.tracebacks import shows_users_frames
from ..frontend import factories
from ..tape.tensor import Tensor
from .maskedtensor import core

ZERO, ONE = frozenset(["sum", "cumsum", "norm"]), frozenset(["prod", "cumprod"])
LEAST = frozenset(["amax", "argmax", "logaddexp", "logsumexp"])
GREATEST = frozenset(["amin", "argmin"])


def of_layouts(function=None, *, takes_sparse=False):
    """A masked function for masked tensors too, which stand for their data and mask.

    takes_sparse: whether it takes sparse tensors, whose result is sparse, with an element where an
    element counts; else they raise ValueError.
    """
    if function is None:
        return functools.partial(of_layouts, takes_sparse=takes_sparse)

    @shows_users_frames
    @functools.wraps(function)
    def call(input, *args, mask=None, **options):
        if core.is_masked_tensor(input):
            present = input.get_mask()
            input, mask = input.get_data(), present if mask is None else present & mask
        if mask is not None and mask.layout != devices.strided:
            mask = mask.to_dense()
        if input.layout == devices.strided:
            return function(input, *args, mask=mask, **options)
        if not takes_sparse:
            name = function.__name__
            raise ValueError(f"masked {name} expects strided tensor (got {input.layout} tensor)")
        return _of_sparse(function, input, mask, args, options)

    return call


def _of_sparse(function, input, mask, args, options):
    name = function.__name__
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for {input.layout} tensor input")
    dim, *args = args or (options.pop("dim", None),)
    is_coo, keepdim = input.layout == devices.sparse_coo, bool(options.get("keepdim"))
    if not is_coo and not keepdim:
        raise RuntimeError(
            "reduction operations on CSR tensors with keepdim=False is unsupported: pass "
            "keepdim=True"
        )
    if mask is None:
        present = core.pattern_of(input.coalesce() if is_coo else input).to_dense()
    else:
        present = input_mask(input, mask)  # elements that are not specified are 0
    result = function(input.to_dense(), dim, *args, mask=present, **options)
    present = any_of(present, canonical_dims(dim, input.ndim), keepdim)
    return result.sparse_mask(present.to_sparse() if is_coo else present.to_sparse_csr())


def any_of(mask: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return where an element counts after a reduction of `dims`, in order."""
    for dim in reversed(dims):
        mask = ops.any(mask, dim, bool(keepdim))
    return mask


def input_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return a mask as a bool tensor of the shape of input.

    Raises IndexError if it has more dimensions, RuntimeError if it does not broadcast.
    """
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            f"input): {list(mask.shape)} for {list(input.shape)}"
        )
    mask = mask.to(dtypes.bool)
    # as in PyTorch a copy, which later writes to the mask do not change
    return mask if mask.shape == input.shape else mask.clone().broadcast_to(input.shape)


def combined(name: str, input: Tensor, mask: Tensor | None) -> Tensor:
    """Return input with the identity of the reduction `name` where it is masked out."""
    if mask is None:
        return input
    identity = factories.full(
        (), identity_of(name, input.dtype), dtype=input.dtype, device=input.device
    )
    return ops.where(input_mask(input, mask), input, identity)


def identity_of(name, dtype):
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
