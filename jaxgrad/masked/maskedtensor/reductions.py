"""Reductions of masked tensors: a result is masked out where no element counts."""

from __future__ import annotations

from ... import ops
from ...core import device as devices
from ...names.missing import missing_in
from .. import masks, reductions
from .core import MaskedTensor, attach, values

REDUCE_NAMES = ops.library.tagged("masked_reduction")


_DEFAULTS_OF_NORM = ("fro", None, False)


def apply_reduction(function, args, kwargs):
    """The reduction of a masked tensor."""
    tensor, *args = args
    if function.__name__ == "norm":  # a handler gets its defaults too
        kwargs = {name: value for name, value in kwargs.items() if value not in _DEFAULTS_OF_NORM}
    if tensor.is_sparse:
        return _of_all_elements(function, tensor, args, kwargs)
    mask = tensor.get_mask()
    reduce = _all if function.__name__ == "all" else getattr(reductions, function.__name__)
    dims = masks.canonical_dims(_dim(function, args, kwargs), tensor.ndim)
    names = ("ord", "dim") if function.__name__ == "norm" else ("dim", "keepdim")
    options = dict(zip(names, args, strict=False)) | kwargs
    if "p" in options:
        options["ord"] = options.pop("p")
    result = reduce(values(tensor), mask=mask, **options)
    return attach(result, masks.any_of(mask, dims, options.get("keepdim", False)))


def _dim(function, args, kwargs):
    """The dimensions that a call reduces, None for all."""
    position = 1 if function.__name__ == "norm" else 0
    return args[position] if len(args) > position else kwargs.get("dim")


def _all(input, dim=None, *, keepdim=False, mask):
    present = input.masked_fill(~mask, True)
    for dimension in reversed(masks.canonical_dims(dim, input.ndim)):
        present = ops.all(present, dimension, bool(keepdim))
    return present if input.ndim else ops.all(present)


def _of_all_elements(function, tensor: MaskedTensor, args, kwargs):
    """The reduction of all elements of a sparse tensor: of its values."""
    name = function.__name__
    if args or kwargs:
        raise TypeError(
            f"no implementation found for 'torch.ops.aten.{name}' on a MaskedTensor of layout "
            f"{tensor.layout} with arguments: reduce all elements, or its to_dense()"
        )
    elements = attach(values(tensor), tensor.get_mask().values())
    result = apply_reduction(function, (elements,), {})
    if name not in ("argmin", "argmax"):
        return result
    if tensor.layout != devices.sparse_coo:
        raise TypeError(
            f"no implementation found for 'torch.ops.aten.{name}' on layout {tensor.layout}"
        )
    return attach(_position(tensor, values(result)), result.get_mask())


def _position(tensor, number):
    """The index in the flattened tensor of an element of its values."""
    indices = tensor.get_mask().indices().select(1, int(number.item()))
    position = 0
    for index, extent in zip(indices.unbind(), tensor.shape, strict=True):
        position = position * extent + index
    return position


__getattr__ = missing_in(__name__)
