"""Operators that copy: those that make views, with a copy in place of the view (`expand_copy`), and
conversions by the name of a dtype.
"""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..core.device import contiguous_format
from ..ops.dispatch import operator
from ..ops.documentation import merged, signature_of
from ..storage.inplace_check import write_into
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .out import takes_exact_out

DOC = """Return a contiguous copy of what `{0}` returns.

input: a tensor; the other arguments are those of `{0}`. out: a tensor, or a list of tensors, that
receives the result.
"""


def _copying(name: str):
    copy = operator(name, ops.library.find, write_into)
    rules = [primitive.rule for primitive in ops.library.find(name).primitives]
    copy.__signature__ = merged([signature_of(rule.schema, False) for rule in rules])
    copy.__doc__, copy.__module__ = DOC.format(name.removesuffix("_copy")), __name__
    return copy


globals().update({name: _copying(name) for name in ops.library.copies})


# those whose views no entry of the table makes of the elements alone


def _copied(view: Tensor) -> Tensor:
    return view.clone(memory_format=contiguous_format)


@takes_exact_out
def as_strided_copy(input: Tensor, size, stride, storage_offset=None):
    """Return a contiguous copy of what `as_strided` returns, whose arguments it takes."""
    return _copied(input.as_strided(size, stride, storage_offset))


@takes_exact_out
def _reshape_alias_copy(input: Tensor, size, stride):
    """Return a contiguous copy of what `as_strided` returns."""
    return _copied(input.as_strided(size, stride))


@takes_exact_out
def _conj_copy(input: Tensor):
    """Return a copy of the complex conjugate."""
    return _copied(ops.conj(input))


@takes_exact_out
def _neg_view_copy(input: Tensor):
    """Return a copy of the negative."""
    return _copied(ops.neg(input))


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
