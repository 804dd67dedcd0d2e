"""Special functions that are composed of operators."""

from __future__ import annotations

import math

from .. import ops
from ..tape.tensor import Tensor
from .out import takes_out


@takes_out
def ndtr(input: Tensor) -> Tensor:
    """Return the distribution function of the normal distribution, accurate in both tails.

    input: of any shape, not complex; integers become the default dtype.

    >>> jaxgrad.special.ndtr(jaxgrad.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    return ops.erfc(input * -math.sqrt(0.5)) * 0.5
