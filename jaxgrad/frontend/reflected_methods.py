"""Python's operators on a tensor and another object: to its right, as in `2 / tensor`, or an array
of NumPy.

In PyTorch `tensor + array` is what NumPy computes, in the dtype of NumPy's promotion, and
`tensor += array` is `tensor = tensor + array`. Here the operator of tensors computes it, in the
same dtype, so that gradients flow and `array + tensor` has a value too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from .. import ops
from ..core import dtypes
from ..ops.dispatch import ARRAYS, is_foreign
from ..tape.torch_function import api_boundary

_UFUNCS = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide},
    **{"floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
    **{"lshift": np.left_shift, "rshift": np.right_shift},
}


def beside_array(name: str, function: Callable) -> Callable | None:
    """What a special method such as `__add__` does with an array of NumPy, if tensors do something
    else. function: that of tensors.
    """
    stem = name.strip("_")
    if stem.startswith("i") and stem[1:] in _UFUNCS:
        return _not_in_place
    ufunc = _UFUNCS.get(stem) or _UFUNCS.get(stem.removeprefix("r"))
    if stem == "rtruediv":  # `tensor.reciprocal() * array`, as in PyTorch
        return None
    return None if ufunc is None else lambda tensor, array: _result(ufunc, function, tensor, array)


def _not_in_place(tensor, array):
    return NotImplemented  # so that Python computes `tensor + array`


def _result(ufunc, function, tensor, array):
    kinds = ufunc.resolve_dtypes((tensor.dtype.numpy, array.dtype, None))
    result = function(ops.to(tensor, dtypes.from_numpy(kinds[0])), array.astype(kinds[1]))
    # NumPy's booleans are bytes in PyTorch, also those of `numpy.isnan(tensor)`
    return ops.to(result, dtypes.uint8) if kinds[-1].kind == "b" else result


def reflected(function):
    """A special method that gets its left operand: objects that operators do not know get
    NotImplemented, from which Python makes a TypeError.
    """
    of_array = beside_array(function.__name__, function)

    @functools.wraps(function)
    def method(self, other):
        if of_array is not None and isinstance(other, ARRAYS):
            return of_array(self, other)
        return NotImplemented if is_foreign((self, other)) else function(self, other)

    return method


class ReflectedMethods:
    """`frontend/methods.py` installs these methods on `Tensor`."""

    @api_boundary
    @reflected
    def __rtruediv__(self, other):
        return self.reciprocal() * other

    __rdiv__ = __rtruediv__

    @api_boundary
    @reflected
    def __rpow__(self, other):
        return ops.pow(other, self)

    @api_boundary
    @reflected
    def __rlshift__(self, other):
        return ops.bitwise_left_shift(other, self)

    @api_boundary
    @reflected
    def __rrshift__(self, other):
        return ops.bitwise_right_shift(other, self)

    @api_boundary
    @reflected
    def __rmatmul__(self, other):
        return ops.matmul(other, self)

    @api_boundary
    @reflected
    def __rfloordiv__(self, other):
        return ops.floor_divide(other, self)

    @api_boundary
    @reflected
    def __rmod__(self, other):
        return ops.remainder(other, self)
