"""Powers of elements, whose combinations are polynomials."""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..frontend import factories
from ..tape.tensor import Tensor
from .out import takes_out


@takes_out
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element of a vector, as rows, the highest power first.

    x: (n,). N: the number of powers, from 0 to N - 1; n if not given. increasing: the lowest power
    first. The result is (n, N), of dtype int64 for integers.
    Raises RuntimeError for another shape or a negative `N`.

    >>> jaxgrad.vander(jaxgrad.tensor([2.0, 3.0]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    if x.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor. Its shape is {list(x.shape)}")
    if N is not None and N < 0:
        raise RuntimeError(f"N must be non-negative. It is {N}")
    powers = powers_of(x, x.shape[0] if N is None else N)
    return powers if increasing else powers.flip(1)


def powers_of(x: Tensor, count: int) -> Tensor:
    """Return the powers from 0 to `count - 1` along a new last dimension, int64 for integers."""
    wide = x.unsqueeze(-1)
    if x.dtype.category < dtypes.FLOATING:
        wide = wide.to(dtypes.int64)
    ones = factories.ones_like(wide)
    if count < 2:
        return ones.expand(*x.shape, count)
    powers = ops.cumprod(wide.expand(*x.shape, count - 1), -1)
    return ops.cat([ones, powers], -1)
