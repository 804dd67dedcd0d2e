"""The types of numbers that rules support."""

from __future__ import annotations

import ml_dtypes
import numpy

from .equation import NotOnHostError

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)


def check_type(name: str, dtype: numpy.dtype, kinds: str):
    """Raise NotOnHostError unless NumPy computes with a type. kinds: those of the known types,
    where "f" is also for bfloat16.
    """
    # a floating-point number of 8 bits may have the kind "f"
    is_known = dtype.kind in kinds and (dtype.kind != "f" or dtype.itemsize > 1)
    if not is_known and not (dtype == BFLOAT16 and "f" in kinds):
        raise NotOnHostError(f"{name} of {dtype}")
