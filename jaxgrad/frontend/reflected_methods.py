"""Python's special methods of a tensor to the right of another object, such as `2 / tensor`."""

from __future__ import annotations

import functools

from .. import ops
from ..ops.dispatch import ARRAYS, is_foreign
from ..tape.torch_function import api_boundary
from . import numpy_operand


def reflected(function):
    """A special method that gets its left operand: objects that operators do not know get
    NotImplemented, from which Python makes a TypeError.
    """
    beside_array = numpy_operand.beside_array(function.__name__, function)

    @functools.wraps(function)
    def method(self, other):
        if beside_array is not None and isinstance(other, ARRAYS):
            return beside_array(self, other)
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
