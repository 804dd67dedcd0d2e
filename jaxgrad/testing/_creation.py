"""Random tensors for tests, as torch.testing._creation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import ops
from ..core import dtypes
from ..core.tracebacks import shows_users_frames
from ..frontend import random
from ..frontend.factories import empty
from ..names.missing import missing_in
from ..tape.tensor import Tensor

# by category of dtypes the least number and the bound of those of `make_tensor`
_RANGES = {dtypes.INTEGRAL: (-9, 10), dtypes.FLOATING: (-9, 9), dtypes.COMPLEX: (-9, 9)}


@shows_users_frames
def make_tensor(
    *shape: int | Sequence[int],
    dtype: dtypes.dtype,
    device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format=None,
) -> Tensor:
    """Return a tensor of random numbers, uniform in [low, high).

    shape: integers, or one sequence of them. low, high: by default 0 and 2 for bool, -9 and 10 for
    integers (those that the dtype has), -9 and 9 for floats and parts of complex numbers.
    noncontiguous: whether elements lie at every second place of memory. exclude_zero: whether the
    smallest positive number, or 1, takes the place of 0.

    Raises ValueError for a range that is empty, NaN or outside of the dtype, for `requires_grad`
    with integers, and for `noncontiguous` with a `memory_format`.

    >>> from jaxgrad.testing import make_tensor
    >>> make_tensor(2, 3, dtype=jaxgrad.int64, device="cpu", low=4, high=5)
    tensor([[4, 4, 4],
            [4, 4, 4]])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and dtype.category < dtypes.FLOATING:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    is_spread = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if is_spread else shape
    result = _uniform(drawn, dtype, device, *_range(dtype, low, high))
    if is_spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = _least(dtype)
    return result.requires_grad_() if requires_grad else result


def _range(dtype, low, high):
    """The range of numbers, within that of a dtype."""
    if dtype == dtypes.bool:
        least, bound, default = 0, 2, (0, 2)
    else:
        is_integral = dtype.category == dtypes.INTEGRAL
        limits = dtypes.iinfo(dtype) if is_integral else dtypes.finfo(dtype)
        bound = limits.max + (is_integral and dtype != dtypes.int64)
        least, default = limits.min, _RANGES[dtype.category]
    low, high = (x if x is not None else y for x, y in zip((low, high), default, strict=True))
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and dtype.category < dtypes.FLOATING):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= bound:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {bound})"
        )
    return (min(max(x, least), bound) for x in (low, high))


def _uniform(shape, dtype, device, low, high):
    if dtype.category < dtypes.FLOATING:
        return random.randint(math.ceil(low), math.ceil(high), shape, dtype=dtype, device=device)
    if dtype.is_complex:
        parts = _uniform((*shape, 2), dtype.to_real(), device, low, high)
        return ops.view_as_complex(parts).clone()
    if dtype in dtypes.FLOAT8:
        return _uniform(shape, dtypes.float32, device, low, high).to(dtype)
    numbers = empty(shape, dtype=dtype, device=device)
    if high - low < dtypes.finfo(dtype).max:
        return numbers.uniform_(low, high)
    return numbers.uniform_(low / 2, high / 2).mul_(2)


def _least(dtype):
    if dtype.category < dtypes.FLOATING:
        return 1
    tiny = dtypes.finfo(dtype).tiny
    return complex(tiny, tiny) if dtype.is_complex else tiny


__getattr__ = missing_in(__name__)
