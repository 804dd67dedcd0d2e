"""NumPy arrays that each call of a compiled function draws anew."""

from __future__ import annotations

import operator

import numpy as np

from . import mode
from .symbolic_number import Varying


def compute_of(value):
    """The function by which a call computes a symbolic number or a drawn array; None for another
    value.
    """
    if type(value) is DrawnArray:
        return value.computed()
    return value.compute if isinstance(value, Varying) else None


class DrawnArray:
    """Stands for a NumPy array or scalar that was drawn while a function is traced.

    NumPy's operations on it are noted, writes in place included, and each call repeats them with
    its own array. `_run`: notes them; `_slot`: the number of the draw; `_value`: the array of the
    trace. Code that needs the numbers gets them as a check of the program (`bool(array.any())`), or
    limits the program to a single call (`np.asarray(array)`).
    """

    __slots__ = ("_run", "_slot", "_value")
    __hash__ = None

    def __init__(self, run, slot: int, value):
        self._run, self._slot, self._value = run, slot, value

    # what `isinstance` sees
    @property
    def __class__(self):
        return type(self._value)

    def _do(self, function, *args, **kwargs):
        run = mode.drawn_run.get()
        if run is not self._run:
            args, kwargs = plain(args), plain(kwargs)
            return function(*args, **kwargs)
        return run.derived(function, args, kwargs)

    def _look(self, function, *others):
        run = mode.drawn_run.get()
        if run is not self._run:
            return function(self._value, *others)
        return run.outcome(function, (self, *others))

    # ---- what depends on the form alone

    shape = property(lambda self: self._value.shape)
    dtype = property(lambda self: self._value.dtype)
    ndim = property(lambda self: self._value.ndim)
    size = property(lambda self: self._value.size)
    strides = property(lambda self: self._value.strides)
    itemsize = property(lambda self: self._value.itemsize)
    nbytes = property(lambda self: self._value.nbytes)
    flags = property(lambda self: self._value.flags)

    def __len__(self):
        return len(self._value)

    def __iter__(self):
        return iter([self[number] for number in range(len(self))])

    # ---- what is done again at each call

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        member = getattr(self._value, name)
        if not callable(member):
            return self._do(getattr, self, name)
        return lambda *args, **kwargs: self._do(Method(name), self, *args, **kwargs)

    def __setitem__(self, key, value):
        self._do(operator.setitem, self, key, value)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if kwargs.get("out") is not None:
            return self._into(kwargs["out"], getattr(ufunc, method), inputs, kwargs)
        return self._do(getattr(ufunc, method), *inputs, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        if function in _WRITING or "out" in kwargs:
            return self._into([*args, kwargs.get("out")], function, args, kwargs)
        return self._do(function, *args, **kwargs)

    def _into(self, targets, function, args, kwargs):
        """Call a function that writes to one of some arrays."""
        arrays = targets if isinstance(targets, tuple | list) else (targets,)
        if any(type(array) is np.ndarray for array in arrays):
            self._refuse("it writes what it draws to an array")
        result = self._do(function, *args, **kwargs)
        drawn = [array for array in arrays if type(array) is DrawnArray]
        return drawn[0] if len(drawn) == len(arrays) == 1 else result

    def __copy__(self, memo=None):
        return self._do(np.copy, self)

    __deepcopy__ = __copy__

    # ---- what needs the numbers

    def _refuse(self, why):
        run = mode.drawn_run.get()
        if run is not None:
            run.refuse(why)

    def __array__(self, dtype=None, copy=None):
        # the array itself, of which the caller may keep a view
        self._refuse("it gives an array that it draws to code that no call repeats")
        return self._value if dtype is None else self._value.astype(dtype)

    def __repr__(self):
        return self._look(repr)

    def __str__(self):
        return self._look(str)

    def __format__(self, spec):
        return self._look(format, spec)

    def traced(self, convert):
        """`convert(array)` as an input of the program."""
        return self._run.input_of(self._do(convert, self))

    def computed(self):
        """The function by which a call computes the array in its present state."""
        return self._run.computed(self._do(np.copy, self))


class Method:
    """Calls the method of a name."""

    __slots__ = ("__name__",)

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, target, *args, **kwargs):
        return getattr(target, self.__name__)(*args, **kwargs)


_WRITING = frozenset([np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis])


def plain(values):
    """Values with the arrays of the trace in place of drawn ones."""
    if isinstance(values, dict):
        return {name: plain(value) for name, value in values.items()}
    if type(values) in (tuple, list):
        return type(values)(map(plain, values))
    return values._value if type(values) is DrawnArray else values


def _binary(function, is_swapped=False):
    def method(self, other):
        if hasattr(type(other), "__torch_function__"):
            return NotImplemented
        return self._do(function, other, self) if is_swapped else self._do(function, self, other)

    return method


def _in_place(function):
    def method(self, other):
        self._do(function, self, other)
        return self

    return method


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
for _name in _BINARY:
    _function = getattr(operator, f"__{_name}__")
    setattr(DrawnArray, f"__{_name}__", _binary(_function))
    setattr(DrawnArray, f"__r{_name}__", _binary(_function, is_swapped=True))
    setattr(DrawnArray, f"__i{_name}__", _in_place(getattr(operator, f"i{_name}")))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "getitem"):
    setattr(DrawnArray, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert"):
    _function = getattr(operator, _name)
    setattr(DrawnArray, f"__{_name}__", lambda self, function=_function: self._do(function, self))
for _name, _function in {
    **{"bool": bool, "float": float, "int": int, "complex": complex, "round": round},
    "index": operator.index,
}.items():
    _look = lambda self, *others, function=_function: self._look(function, *others)  # noqa: E731
    setattr(DrawnArray, f"__{_name}__", _look)
