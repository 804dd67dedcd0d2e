"""The dtypes that the rules of arithmetic support, and arithmetic in half precision."""

from __future__ import annotations

import ml_dtypes
import numpy

from .equation import NotOnHostError, rule

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
HALVES = frozenset({numpy.dtype(numpy.float16), BFLOAT16})
KNOWN = HALVES | frozenset(map(numpy.dtype, "?bhilBHILfdFDqQ"))


def kind_of(dtype) -> str:
    """NumPy's letter for the kind of a dtype: "f" for bfloat16 too, which NumPy does not know."""
    return "f" if dtype == BFLOAT16 else dtype.kind


def arithmetic(*names: str):
    """Like `rule`, for primitives whose operands and results are numbers of a known dtype."""

    def register(make):
        def checked(equation):
            for form in (*equation.inputs, *equation.outputs):
                if form.dtype not in KNOWN:
                    raise NotOnHostError(f"{equation.name} of {form.dtype}")
            return make(equation)

        rule(*names)(checked)
        return make

    return register


def widened(function, dtype):
    """A function of arrays of one dtype, which computes in float32 if that is a half one."""
    if dtype not in HALVES:
        return function
    single = numpy.float32
    return lambda *operands: function(*[one.astype(single) for one in operands]).astype(dtype)
