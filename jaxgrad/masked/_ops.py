"""What tests of masked functions take from torch.masked._ops."""

from __future__ import annotations

from .. import ops
from ..core import device as devices
from ..frontend import factories
from ..names.missing import missing_in
from . import masks, normalizations, reductions
from .maskedtensor import core


def _canonical_dim(dim, ndim: int) -> tuple[int, ...]:
    return masks.canonical_dims(dim, ndim)


def _reduction_identity(op_name: str, input, *args):
    """The number that changes no result of a function, as a tensor; None if there is none."""
    name = op_name.rpartition(".")[2]
    if name in ("mean", "var", "std"):
        return None
    if name == "norm" and args[:1] == (float("-inf"),):
        name = "amin"
    number = masks.identity_of(name, input.dtype)
    dtype = input.dtype
    if name == "median" and not dtype.is_floating_point:
        dtype = factories.full((), number).dtype
    return factories.full((), number, dtype=dtype, device=input.device)


def _input_mask(input, *args, **kwargs):
    """The mask of an input, in its shape and layout."""
    if kwargs.get("mask") is None:
        raise ValueError("_input_mask requires explicit mask")
    mask = kwargs["mask"]
    mask = masks.input_mask(input, mask if mask.layout == devices.strided else mask.to_dense())
    if input.layout == devices.sparse_coo:
        return mask.to_sparse().coalesce()
    return mask if input.layout == devices.strided else mask.to_sparse_csr()


def _output_mask(op, input, *args, **kwargs):
    """Where the result of a masked function has elements that count."""
    name = getattr(op, "__name__", None)
    if getattr(normalizations, name or "", None) is op:
        return _input_mask(input, *args, **kwargs)
    if getattr(reductions, name or "", None) is not op:
        raise ValueError(f"_output_mask expected masked operation (got {op})")
    args = args[1:] if name == "norm" else args
    dims = masks.canonical_dims(args[0] if args else kwargs.get("dim"), input.ndim)
    mask = _input_mask(input, *args, **kwargs)
    present = mask if mask.layout == devices.strided else mask.to_dense()
    present = masks.any_of(present, dims, kwargs.get("keepdim", False))
    return present if mask.layout == devices.strided else present.to_sparse()


def _combine_input_and_mask(op, input, mask, *args):
    """An input with the identity of a function in place of the elements that are masked out."""
    if core.is_masked_tensor(input):
        input, mask = input.get_data(), input.get_mask()
    if mask is None:
        return input
    return _where(
        _input_mask(input, mask=mask), input, _reduction_identity(op.__name__, input, *args)
    )


def _where(mask, input, fill_value):
    """An input with a number in place of the elements that are masked out.

    A sparse one has the elements that count, and no others.
    """
    if mask.layout == devices.strided:
        return ops.where(mask, input, fill_value)
    return input.to_dense().sparse_mask(mask)


__getattr__ = missing_in(__name__)
