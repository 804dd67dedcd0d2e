"""The dtypes in which the host adds up products and elements of windows."""

from __future__ import annotations

import numpy

from .equation import NotOnHostError

SINGLE = numpy.dtype(numpy.float32)
_HALVES = ("float16", "bfloat16")
_WHOLE = "bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_SUPPORTED = {*_WHOLE, *_HALVES, "float32", "float64", "complex64", "complex128"}


def accumulator_of(equation) -> numpy.dtype:
    """The dtype in which an equation computes its result: the widest of its operands' and of its
    result's, and single precision for half precision. Raises NotOnHostError.
    """
    dtype = equation.outputs[0].dtype
    forms = (*equation.inputs, *equation.outputs)
    if not {form.dtype.name for form in forms} <= _SUPPORTED:
        raise NotOnHostError(f"{equation.name} of {dtype.name}")
    if dtype.name in _WHOLE:
        # integers wrap around alike in every width, but a fraction would be lost
        if any(form.dtype.name not in _WHOLE for form in equation.inputs):
            raise NotOnHostError(f"{equation.name} from fractions to {dtype.name}")
        return dtype
    return numpy.result_type(*[wide_dtype(form.dtype) for form in forms])


def wide_dtype(dtype) -> numpy.dtype:
    """Single precision for half precision, another dtype as it is."""
    return SINGLE if dtype.name in _HALVES else dtype


def in_dtype(array, dtype):
    """An array in a dtype: the array itself if it has that."""
    return array if array.dtype == dtype else array.astype(dtype)
