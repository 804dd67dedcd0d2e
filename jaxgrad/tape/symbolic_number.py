"""Symbolic numbers: Python numbers that are inputs of a compiled function."""

from __future__ import annotations

import math
import numbers
import operator

import jax

from ..core.aval import types_of_trace
from . import mode
from .source_location import place_of_caller


class Varying(numbers.Number):
    """Stands for a Python number while a function is traced. Operators take it as a number, and
    arithmetic with numbers gives another symbolic number.

    kind: float or int; _array: JAX's weakly typed value; `compute`: a function that gives the value
    of a call from the values of its inputs, None if it takes tensors; `origins`: the inputs that it
    depends on; `value`: the value in the call that is traced, None if it is not known. Raises
    RuntimeError if code needs the value of the number.
    """

    __slots__ = ("_array", "compute", "kind", "origins", "value")
    # no key of a cache: the cache would compare it, and so need its value
    __hash__ = None

    def __init__(self, array, compute=None, origins=frozenset(), value=None):
        self._array, self.compute, self.origins, self.value = array, compute, origins, value
        self.kind = type(array.dtype.type(0).item())

    @classmethod
    def of_input(cls, array, source, value=None):
        """The number that the input `source` supplies."""
        return cls(array, operator.itemgetter(source), frozenset([source]), value)

    @classmethod
    def of_extent(cls, extent):
        """The number of a symbolic extent, in the trace of a program that is exported."""
        with types_of_trace():
            return cls(jax.lax.convert_element_type(jax.numpy.asarray(extent), int))

    def _refuse(self, *_):
        scope = mode.scope.get()
        if scope is not None:
            scope.record_inspected(self.origins)
        raise RuntimeError(
            f"the value of a Python {self.kind.__name__} that varies from call to call is being "
            "traced: inside jaxgrad.jit it can be calculated with, but not be looked at (an if, "
            "float(), range()). Name it in static_argnames, or compute it outside. At "
            f"{place_of_caller()}"
        )

    # what `isinstance` sees, so that code goes the way that it goes with the number
    @property
    def __class__(self):
        return self.kind

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return self._noted(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return self._noted(function, args, kwargs)

    def _noted(self, function, args, kwargs):
        """The result of NumPy for drawn numbers (draws/drawn.py)."""
        run = mode.drawn_run.get()
        if run is None or not run.computes((self,)):
            self._refuse()
        return run.derived(function, args, kwargs)

    def __jax_array__(self):
        return self._array

    def __copy__(self, memo=None):
        return self  # as a number

    __deepcopy__ = __copy__


def _look(function):
    """A method that needs the value. The result is known for drawn numbers: a check of the program
    compares it at each call (draws/drawn.py).
    """

    def look(self, *others):
        run = mode.drawn_run.get()
        outcome = NotImplemented if run is None else run.outcome(function, (self, *others))
        return self._refuse() if outcome is NotImplemented else outcome

    return look


# a bool is there to be looked at, by a flag or a mode that would keep it
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "index"):
    setattr(Varying, f"__{_name}__", _look(getattr(operator, _name)))
for _name, _function in {
    **{"bool": bool, "float": float, "int": int, "complex": complex, "round": round},
    **{"repr": repr, "str": str, "format": format},
    **{"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc},
}.items():
    setattr(Varying, f"__{_name}__", _look(_function))


def fits(value, kind) -> bool:
    """Whether a program computes this value as Python does: it is of the kind of the one that was
    traced, and no larger than the program's integers.
    """
    return type(value) is kind and (kind is not int or -(2**63) <= value < 2**63)


def _arithmetic(function, may_differ=True):
    """A method of symbolic numbers. may_differ: whether a program and Python give different results
    for some floats, such as a divisor of zero.
    """

    def calculate(*operands):
        if not all(isinstance(operand, numbers.Number) for operand in operands):
            return NotImplemented
        arrays = [getattr(operand, "_array", operand) for operand in operands]
        symbolic = [operand for operand in operands if isinstance(operand, Varying)]

        with types_of_trace():
            result = function(*arrays)
        if any(operand.compute is None for operand in symbolic):
            return Varying(result)

        def compute(values):
            operand_values = [e.compute(values) if isinstance(e, Varying) else e for e in operands]
            return function(*operand_values)

        origins = frozenset().union(*[operand.origins for operand in symbolic])
        values = [e.value if isinstance(e, Varying) else e for e in operands]
        # what Python raises, this raises too
        value = None if None in values else function(*values)
        number = Varying(result, compute, origins, value)
        if value is not None and not fits(value, number.kind):
            number._refuse()
        if mode.scope.get() is not None and (may_differ or number.kind is int):
            mode.scope.get().record_derived(number)
        return number

    return calculate


def _swapped(function):
    return lambda second, first: function(first, second)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _function = _arithmetic(getattr(operator, _name), _name not in ("add", "sub", "mul"))
    setattr(Varying, f"__{_name}__", _function)
    setattr(Varying, f"__r{_name}__", _swapped(_function))
for _name in ("neg", "pos", "abs"):
    setattr(Varying, f"__{_name}__", _arithmetic(getattr(operator, _name), may_differ=False))
