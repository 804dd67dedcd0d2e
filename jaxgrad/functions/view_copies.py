"""Operators that copy: those that make views, with a copy in place of the view (`expand_copy`), and
conversions by the name of a dtype.
"""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from . import FUNCTIONS


def _copying(name: str, view: str):
    @api_boundary
    def copied(input: Tensor, *args, **kwargs):
        result = getattr(input, view)(*args, **kwargs)
        if isinstance(result, Tensor):
            return ops.clone(result)
        return tuple(map(ops.clone, result))

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = f"""Return a copy of what `Tensor.{view}` returns, with memory of its own.

    input: a tensor; the other arguments are those of `{view}`.
    """
    return copied


@api_boundary
def alias_copy(input: Tensor) -> Tensor:
    """Return a copy of a tensor."""
    return ops.clone(input)


@api_boundary
def view_as_real_copy(input: Tensor) -> Tensor:
    """Return a copy of `view_as_real`."""
    return ops.clone(ops.view_as_real(input))


@api_boundary
def view_as_complex_copy(input: Tensor) -> Tensor:
    """Return a copy of `view_as_complex`."""
    return ops.clone(ops.view_as_complex(input))


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
    {name: _copying(name, name.removesuffix("_copy")) for name in _VIEWS if name not in globals()}
)
