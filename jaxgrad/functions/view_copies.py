"""Operators that copy: those that make views, with a copy in place of the view (`expand_copy`), and
conversions by the name of a dtype.
"""

from __future__ import annotations

import functools

from .. import ops
from ..core import dtypes
from ..core.device import contiguous_format
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from . import FUNCTIONS
from .out import takes_exact_out


def _copied(view: Tensor) -> Tensor:
    return view.clone(memory_format=contiguous_format)


def _copying(name: str, view):
    @functools.wraps(view)
    def copied(input: Tensor, *args, **kwargs):
        result = view(input, *args, **kwargs)
        return _copied(result) if isinstance(result, Tensor) else tuple(map(_copied, result))

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = f"""Return a contiguous copy of what `{name.removesuffix("_copy")}` returns.

    input: a tensor; the other arguments are those of the view. out: a tensor, or a list of tensors,
    that receives the result.
    """
    return takes_exact_out(copied)


# the views, with the arguments of their copies


def _alias(input: Tensor):
    return input


def _as_strided(input: Tensor, size, stride, storage_offset=None):
    return input.as_strided(size, stride, storage_offset)


def _detach(input: Tensor):
    return input.detach()


def _diagonal(input: Tensor, offset=0, dim1=0, dim2=1):
    return input.diagonal(offset, dim1, dim2)


def _expand(input: Tensor, size, *, implicit=False):
    return input.expand(size)


def _narrow(input: Tensor, dim, start, length):
    return input.narrow(dim, start, length)


def _permute(input: Tensor, dims):
    return input.permute(dims)


def _select(input: Tensor, dim, index):
    return input.select(dim, index)


def _slice(input: Tensor, dim=0, start=None, end=None, step=1):
    return ops.slice(input, dim, start, end, step)


def _split(input: Tensor, split_size, dim=0):
    return input.split(split_size, dim)


def _split_with_sizes(input: Tensor, split_sizes, dim=0):
    return input.split_with_sizes(split_sizes, dim)


def _squeeze(input: Tensor, dim=None):
    return input.squeeze() if dim is None else input.squeeze(dim)


def _t(input: Tensor):
    return input.t()


def _transpose(input: Tensor, dim0, dim1):
    return input.transpose(dim0, dim1)


def _unbind(input: Tensor, dim=0):
    return input.unbind(dim)


def _unfold(input: Tensor, dimension, size, step):
    return input.unfold(dimension, size, step)


def _unsqueeze(input: Tensor, dim):
    return input.unsqueeze(dim)


def _view(input: Tensor, size=None, *, dtype=None):
    if dtype is None and isinstance(size, dtypes.dtype):
        dtype = size
    # a copy needs no strides that fit
    return input.contiguous().view(size if dtype is None else dtype)


def _view_as_complex(input: Tensor):
    return ops.view_as_complex(input)


def _view_as_real(input: Tensor):
    return ops.view_as_real(input)


def _conj(input: Tensor):
    return ops.conj_physical(input)


def _neg_view(input: Tensor):
    return ops.neg(input)


def _reshape_alias(input: Tensor, size, stride):
    return input.as_strided(size, stride)


def _casting(name: str, dtype: dtypes.dtype):
    @api_boundary
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return a tensor in {dtype}. non_blocking: not used."
    return cast


_CASTS = {
    f"_cast_{dtype.scalar_type}": dtype
    for dtype in (
        *(dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.float16, dtypes.float32, dtypes.float64),
    )
}
globals().update({name: _casting(name, dtype) for name, dtype in _CASTS.items()})

_VIEWS = [name for name in FUNCTIONS["view_copies"].split() if name.endswith("_copy")]
globals().update(
    {
        name: _copying(name, globals()[f"_{name.strip('_').removesuffix('_copy')}"])
        for name in _VIEWS
    }
)
