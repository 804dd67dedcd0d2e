"""A number in the place of an operator's first tensor, as in `torch.sub(1, x)` and
`torch.div(8, 2)`: of the operators with the tag `number_first`.
"""

from __future__ import annotations

import numbers

import jax

from ..core import dtypes, promotion
from ..tape.tensor import Tensor, wrap

PLAIN = frozenset((bool, int, float, complex))


def wrap_number(number, like: Tensor, is_quotient: bool) -> Tensor:
    """Wrap a number in a 0-d tensor that promotes with `like` as the number does.

    is_quotient: for a division whose result is a float.
    """
    dtype = promotion.result_type(number, like)
    if isinstance(number, bool):
        dtype = dtypes.bool  # which promotes alike, and which a difference refuses
    elif is_quotient and dtype.category == dtypes.INTEGRAL:
        dtype = dtypes.get_default_dtype()  # of the quotient, for numbers beyond 8 bits
    elif like.ndim and dtype.category == dtypes.INTEGRAL:
        dtype = dtypes.int64  # promotes alike
    with jax.enable_x64(True):
        return wrap(promotion.cast(getattr(number, "_array", number), dtype))


def with_tensors(args: tuple, is_quotient: bool) -> tuple:
    """The arguments of an operator, with a tensor in place of a number before a tensor."""
    if len(args) < 2:
        return args
    first, second = args[:2]
    is_number = isinstance(first, numbers.Number) and isinstance(second, Tensor)
    return (wrap_number(first, second, is_quotient), *args[1:]) if is_number else args


def with_first_tensor(args: tuple) -> tuple:
    """The arguments of an operator on two numbers alone, with a tensor in place of the first."""
    if len(args) < 2 or not {*map(type, args[:2])} <= PLAIN:
        return args
    with jax.enable_x64(True):
        return wrap(promotion.cast(args[0], promotion.result_type(args[0]))), *args[1:]
