"""Formulas of distributions as single nodes, and as members of the distributions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from .. import ops
from ..frontend.jax_interop import own_operator, to_jax
from ..tape.tensor import Tensor

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


def bound(formula: Callable) -> Any:
    """A formula as a member of a distribution, whose attributes its parameters name.

    It is a property where the base class has one, else a method. If the first parameter is `value`,
    the method takes a value of the support, which is checked; if it is `place`, that or the end of
    the support; if it is `probability`, any number.
    """
    return _Bound(formula)


class _Bound:
    """A formula, until the class statement says under which name it is a member."""

    def __init__(self, formula: Callable):
        self.formula = formula

    def __set_name__(self, owner, name):
        method = _method(self.formula)
        method.__name__, method.__module__ = name, owner.__module__
        method.__qualname__ = f"{owner.__qualname__}.{name}"
        is_property = isinstance(getattr(super(owner, owner), name), property)
        setattr(owner, name, property(method) if is_property else method)


def _method(formula):
    names = [*inspect.signature(formula).parameters]
    argument = names.pop(0) if names[0] in ("value", "place", "probability") else None

    def of_value(self, value: Tensor) -> Tensor:
        return formula(self._checked(value), *[getattr(self, name) for name in names])

    def of_place(self, value: Tensor) -> Tensor:
        return formula(self._checked_place(value), *[getattr(self, name) for name in names])

    def of_probability(self, value: Tensor) -> Tensor:
        return formula(value, *[getattr(self, name) for name in names])

    def of_attributes(self) -> Tensor:
        return formula(*[getattr(self, name) for name in names])

    methods = {"value": of_value, "place": of_place, "probability": of_probability}
    return methods.get(argument, of_attributes)


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
