"""Symbolic numbers: Python numbers that are inputs of a compiled function."""

from __future__ import annotations

import functools
import math
import numbers
import operator

import jax

from ..core.aval import types_of_trace
from ..core.jax_internals import traced_function
from ..core.symbolic_extents import is_exported, is_symbolic
from . import mode
from .source_location import place_of_caller


def weak(array):
    """A number of a trace with a weak type, as JAX has for Python's; a bool has none."""
    kind = type(array.dtype.type(0).item())
    if array.weak_type or kind is bool:
        return array
    (number,) = _as_number(kind)(jax.lax.convert_element_type(array, kind))
    return number


@functools.cache
def _as_number(kind: type):
    """JAX gives a weak type to Python's numbers alone, and to what is computed of these: so it
    traces a call of a function of such a number.
    """
    with jax.enable_x64(True):
        return traced_function(jax.make_jaxpr(lambda number: number * 1)(kind(2)))


class GuardOnDataDependentSymNode(RuntimeError):
    """Code of a program that is exported needs a number that is computed of its inputs.

    of_sizes: whether it is computed of sizes that vary alone.
    """

    of_sizes = False


UNBOUNDED = -math.inf, math.inf


class Varying(numbers.Number):
    """Stands for a Python number while a function is traced. Operators take it as a number, and
    arithmetic with numbers gives another symbolic number.

    kind: float, int, bool or complex; _array: JAX's weakly typed value; `compute`: a function that
    gives the value of a call from the values of its inputs, None if it takes tensors; `origins`:
    the inputs that it depends on; `value`: the value in the call that is traced, None if it is not
    known. In a program that is exported: `call`: a pair of a function and its operands that gives
    the number; `bounds`: the least and the greatest number that it may be; `error`: what JAX raised
    for a comparison of sizes. Raises RuntimeError if code needs the value of the number.
    """

    __slots__ = ("_array", "bounds", "call", "compute", "error", "kind", "origins", "value")
    # no key of a cache: the cache would compare it, and so need its value
    __hash__ = None

    def __init__(
        self, array, compute=None, origins=frozenset(), value=None, *, call=None, error=None
    ):
        self._array, self.compute, self.origins, self.value = array, compute, origins, value
        self.call, self.error, self.bounds = call, error, UNBOUNDED
        self.kind = type(array.dtype.type(0).item())

    @classmethod
    def of_input(cls, array, source, value=None):
        """The number that the input `source` supplies."""
        return cls(array, operator.itemgetter(source), frozenset([source]), value)

    @classmethod
    def of_extent(cls, extent):
        """The number of a symbolic extent, in the trace of a program that is exported."""
        with types_of_trace():
            array = jax.lax.convert_element_type(jax.numpy.asarray(extent), int)
        return cls(array, call=(None, (extent,)))

    @classmethod
    def of_tensor(cls, tensor):
        """The number of a tensor of one element, in the trace of a program that is exported."""
        with types_of_trace():
            array = jax.lax.stop_gradient(tensor._array).reshape(())
            return cls(weak(array), call=(None, (tensor,)))

    @property
    def is_open(self) -> bool:
        """Whether it is a number of a program that is exported, which serves all of its values."""
        return self.compute is None and is_exported()

    def _refuse(self, *_):
        if self.error is not None:
            raise self.error
        if self.is_open:
            raise self._unknown()
        scope = mode.scope.get()
        if scope is not None:
            scope.record_inspected(self.origins)
        raise RuntimeError(
            f"the value of a Python {self.kind.__name__} that varies from call to call is being "
            "traced: inside jaxgrad.jit it can be calculated with, but not be looked at (an if, "
            "float(), range()). Name it in static_argnames, or compute it outside. At "
            f"{place_of_caller()}"
        )

    def _unknown(self) -> GuardOnDataDependentSymNode:
        extents = [*_extents_of(self)]
        if all(is_symbolic(extent) for extent in extents):
            text = ", ".join(map(str, extents))
            error = GuardOnDataDependentSymNode(f"a number of sizes is needed: {text}")
            error.of_sizes = True
            return error
        return GuardOnDataDependentSymNode(
            "Could not guard on data-dependent expression: the code needs the value of "
            f"{'an' if self.kind is int else 'a'} {self.kind.__name__} that is computed of the "
            "inputs, and a program is one for all values. Calculate with it, choose by torch.cond "
            "or torch.where, bound it by torch._check, or make it an argument that is a number; no "
            "size may depend on it. At "
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


def _extents_of(number):
    """What a number of a program that is exported is computed of: sizes and tensors."""
    function, operands = number.call or (None, (None,))
    for operand in operands:
        if isinstance(operand, Varying):
            yield from _extents_of(operand)
        elif function is None:
            yield operand


def is_open(value) -> bool:
    """Whether a value is a size, or another number, that varies in a program that is exported."""
    return is_symbolic(value) or (type(value) is Varying and value.is_open)


def has_open(value) -> bool:
    """Whether a value is such a number, or a tuple or list with one at any depth."""
    if isinstance(value, tuple | list):
        return any(map(has_open, value))
    return is_open(value)


def open_number(value):
    """A size that varies as a symbolic number; any other value as it is."""
    return Varying.of_extent(value) if is_symbolic(value) else value


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
for _name, _function in {
    **{"bool": bool, "float": float, "int": int, "complex": complex, "index": operator.index},
    **{"repr": repr, "str": str, "format": format},
}.items():
    setattr(Varying, f"__{_name}__", _look(_function))


def fits(value, kind) -> bool:
    """Whether a program computes this value as Python does: it is of the kind of the one that was
    traced, and no larger than the program's integers.
    """
    return type(value) is kind and (kind is not int or -(2**63) <= value < 2**63)


def calculated(function, operands, compute=None) -> Varying:
    """The number that a function gives, in a program that is exported. compute: the same function
    of arrays.
    """
    arrays = [getattr(operand, "_array", operand) for operand in operands]
    is_fraction = function is operator.pow and type(arrays[1]) is int and arrays[1] < 0
    with types_of_trace():
        if is_fraction:  # of ints Python makes a float
            arrays[0] = arrays[0] * 1.0
        return Varying(weak((compute or function)(*arrays)), call=(function, operands))


def _arithmetic(function, may_differ=True):
    """A method of symbolic numbers. may_differ: whether a program and Python give different results
    for some floats, such as a divisor of zero.
    """

    def calculate(*operands):
        operands = tuple(map(open_number, operands))
        if not all(isinstance(operand, numbers.Number) for operand in operands):
            return NotImplemented
        symbolic = [operand for operand in operands if isinstance(operand, Varying)]
        if any(operand.compute is None for operand in symbolic):
            return calculated(function, operands)
        arrays = [getattr(operand, "_array", operand) for operand in operands]

        with types_of_trace():
            result = function(*arrays)

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
for _name in ("and", "or", "xor"):
    _function = _arithmetic(getattr(operator, f"__{_name}__"))
    setattr(Varying, f"__{_name}__", _function)
    setattr(Varying, f"__r{_name}__", _swapped(_function))
for _name in ("neg", "pos", "abs"):
    setattr(Varying, f"__{_name}__", _arithmetic(getattr(operator, _name), may_differ=False))


# ---- numbers of programs that are exported


def _interval(number) -> tuple:
    return number.bounds if isinstance(number, Varying) else (number, number)


def _outcome(function, first, second) -> bool | None:
    """What a comparison gives for all numbers within their bounds; None if that depends."""
    (low, high), (least, most) = _interval(first), _interval(second)
    if function in (operator.eq, operator.ne):
        is_apart = high < least or most < low
        return (function is operator.ne) if is_apart else None
    outcomes = {function(one, other) for one in (low, high) for other in (least, most)}
    return outcomes.pop() if len(outcomes) == 1 else None


def _comparison(name):
    function = getattr(operator, name)
    look, calculate = _look(function), _arithmetic(function)

    def compare(self, other):
        if not self.is_open:
            return look(self, other)
        is_number = isinstance(other, numbers.Number) and self.kind is not bool
        known = _outcome(function, self, other) if is_number else None
        return calculate(self, other) if known is None else known

    return compare


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Varying, f"__{_name}__", _comparison(_name))


def _rounding(function, of_array):
    look = _look(function)

    def rounded(self, *digits):
        if not self.is_open or digits:
            return look(self, *digits)
        return calculated(function, (self,), lambda array: of_array(array).astype(int))

    return rounded


for _name, _function, _of_array in (
    ("floor", math.floor, "floor"),
    ("ceil", math.ceil, "ceil"),
    ("trunc", math.trunc, "trunc"),
    ("round", round, "round"),
):
    setattr(Varying, f"__{_name}__", _rounding(_function, getattr(jax.numpy, _of_array)))


def within(condition: Varying):
    """Narrow the bounds of a number to those where a comparison with a number holds."""
    function, operands = condition.call
    if function not in _SIDES:
        return
    for number, other, side in zip(operands, operands[::-1], _SIDES[function], strict=True):
        if isinstance(number, Varying) and not isinstance(other, Varying):
            low, high = number.bounds
            number.bounds = (max(low, other), high) if side else (low, min(high, other))


# whether a comparison that holds bounds its first operand below, and its second one
_SIDES = {
    operator.lt: (False, True),
    operator.le: (False, True),
    operator.gt: (True, False),
    operator.ge: (True, False),
}
