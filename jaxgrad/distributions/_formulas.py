"""Formulas of densities as single nodes."""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import ops
from ..frontend.jax_interop import own_operator, to_jax

HALF_LOG_TAU = math.log(2 * math.pi) / 2


def fused(formula: Callable) -> Callable:
    """Turn a function of tensors into an operator: one kernel, and one node of its name.

    Called operator by operator, a density takes five times as long. The arguments that are no
    tensors are constants of the kernel.

    >>> from jaxgrad.distributions._formulas import fused
    >>> x = jaxgrad.tensor(2.0, requires_grad=True)
    >>> fused(lambda x: x.exp() - x)(x).grad_fn.next_functions[0][0].variable is x
    True
    """
    return own_operator(to_jax(formula))


def times_log(x, log_y):
    """`x * log_y`, and 0 without a gradient where x is 0 and the logarithm is infinite."""
    return x * ops.masked_fill(log_y, (x == 0) & ops.isinf(log_y), 0)


def xlogy(x, y):
    """`x * log(y)`, and 0 without a gradient where x and y are 0."""
    return x * ops.log(ops.masked_fill(y, (x == 0) & (y == 0), 1))


def xlog1py(x, y):
    """`x * log(1 + y)`, and 0 without a gradient where x is 0 and y is -1."""
    return x * ops.log1p(ops.masked_fill(y, (x == 0) & (y == -1), 0))


def where_defined(condition, formula: Callable, x, inside: float, otherwise: float):
    """`formula(x)` where the condition holds, else a constant.

    inside: a number for which the formula is finite; it stands for each x where the condition does
    not hold, whose gradient would be NaN.
    """
    return ops.where(condition, formula(ops.where(condition, x, inside)), otherwise)
