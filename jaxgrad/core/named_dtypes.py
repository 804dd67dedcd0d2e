"""Dtypes of PyTorch that XLA lacks: programs name them and compare dtypes with them, and no tensor
has one.

Their NumPy types have fields, so that NumPy and JAX refuse them in each computation.
"""

from __future__ import annotations

from . import dtypes


def _define(name: str, scalar_type: str, category, *fields: str) -> dtypes.dtype:
    numpy_type = [(f"{name}_{number}", field) for number, field in enumerate(fields)]
    return dtypes._define(name, scalar_type, category, numpy_type)


complex32 = chalf = _define("complex32", "ComplexHalf", dtypes.COMPLEX, "f2", "f2")
complex32._real, complex32._complex = dtypes.float16, complex32

qint8 = _define("qint8", "QInt8", dtypes.INTEGRAL, "i1")
quint8 = _define("quint8", "QUInt8", dtypes.INTEGRAL, "u1")
qint32 = _define("qint32", "QInt32", dtypes.INTEGRAL, "i4")
quint4x2 = _define("quint4x2", "QUInt4x2", dtypes.INTEGRAL, "u1")
quint2x4 = _define("quint2x4", "QUInt2x4", dtypes.INTEGRAL, "u1")


def of_tensor(value) -> dtypes.dtype:
    """The dtype of a new tensor, of what a user names. Raises TypeError for one of these dtypes."""
    dtype = dtypes.as_dtype(value)
    if dtype.numpy.names is not None:
        raise TypeError(f"no tensor has the dtype {dtype}, which XLA lacks: name another one")
    return dtype
