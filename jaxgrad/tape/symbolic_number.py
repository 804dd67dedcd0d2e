"""Symbolic numbers: Python numbers that are inputs of a compiled function."""

from __future__ import annotations

import numbers
import operator

from .source_location import place_of_caller


class Varying(numbers.Number):
    """Stands for a Python number while a function is traced. Operators take it as a number, and
    arithmetic with numbers gives another symbolic number.

    kind: float or int; _array: JAX's weakly typed value. Raises RuntimeError where code needs the
    value of the number.
    """

    __slots__ = ("_array", "kind")
    # no key of a cache: the cache would compare it, and so need its value
    __hash__ = None

    def __init__(self, array):
        self._array = array
        self.kind = type(array.dtype.type(0).item())

    def _refuse(self, *_):
        raise RuntimeError(
            f"the value of a Python {self.kind.__name__} that varies from call to call is being "
            "traced: inside jaxgrad.jit it can be calculated with, but not be looked at (an if, "
            "float(), range()). Name it in static_argnames, or compute it outside. At "
            f"{place_of_caller()}"
        )

    __bool__ = __float__ = __int__ = __index__ = __complex__ = __round__ = _refuse

    def __jax_array__(self):
        return self._array

    def __repr__(self):
        return f"<{self.kind.__name__} that varies>"


def _arithmetic(function, swapped):
    def calculate(self, other):
        if not isinstance(other, numbers.Number):
            return NotImplemented
        value = getattr(other, "_array", other)
        return Varying(function(value, self._array) if swapped else function(self._array, value))

    return calculate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _swapped in (False, True):
        _method = _arithmetic(getattr(operator, _name), _swapped)
        setattr(Varying, f"__{'r' if _swapped else ''}{_name}__", _method)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Varying, f"__{_name}__", _arithmetic(getattr(operator, _name), False))
for _name in ("neg", "pos", "abs"):
    # bound here, since the loop goes on to change the name
    def _unary(self, function=getattr(operator, _name)):  # noqa: B008
        return Varying(function(self._array))

    setattr(Varying, f"__{_name}__", _unary)
