"""Dtypes of PyTorch that XLA lacks.

Tensors of complex32 are made by `frontend/half_complex.py`, those of `RAW_BITS` by
`frontend/raw_bits.py`, and quantized ones by `ao`. Programs name the others.

Their NumPy types have fields, so that NumPy and JAX refuse them in each computation.
"""

from __future__ import annotations

from . import dtypes


def _define(name: str, scalar_type: str, category, *fields: str) -> dtypes.dtype:
    numpy_type = [(f"{name}_{number}", field) for number, field in enumerate(fields)]
    return dtypes._define(name, scalar_type, category, numpy_type)


complex32 = chalf = _define("complex32", "ComplexHalf", dtypes.COMPLEX, "f2", "f2")
complex32._real, complex32._complex = dtypes.float16, complex32
dtypes.float16._complex = complex32

qint8 = _define("qint8", "QInt8", dtypes.INTEGRAL, "i1")
quint8 = _define("quint8", "QUInt8", dtypes.INTEGRAL, "u1")
qint32 = _define("qint32", "QInt32", dtypes.INTEGRAL, "i4")
int1 = _define("int1", "Int1", dtypes.INTEGRAL, "i1")
int2 = _define("int2", "Int2", dtypes.INTEGRAL, "i1")
int3 = _define("int3", "Int3", dtypes.INTEGRAL, "i1")
int4 = _define("int4", "Int4", dtypes.INTEGRAL, "i1")
int5 = _define("int5", "Int5", dtypes.INTEGRAL, "i1")
int6 = _define("int6", "Int6", dtypes.INTEGRAL, "i1")
int7 = _define("int7", "Int7", dtypes.INTEGRAL, "i1")
uint1 = _define("uint1", "UInt1", dtypes.INTEGRAL, "u1")
uint2 = _define("uint2", "UInt2", dtypes.INTEGRAL, "u1")
uint3 = _define("uint3", "UInt3", dtypes.INTEGRAL, "u1")
uint4 = _define("uint4", "UInt4", dtypes.INTEGRAL, "u1")
uint5 = _define("uint5", "UInt5", dtypes.INTEGRAL, "u1")
uint6 = _define("uint6", "UInt6", dtypes.INTEGRAL, "u1")
uint7 = _define("uint7", "UInt7", dtypes.INTEGRAL, "u1")

quint4x2 = _define("quint4x2", "QUInt4x2", dtypes.INTEGRAL, "u1")
quint2x4 = _define("quint2x4", "QUInt2x4", dtypes.INTEGRAL, "u1")

bits1x8 = _define("bits1x8", "Bits1x8", dtypes.INTEGRAL, "u1")
bits2x4 = _define("bits2x4", "Bits2x4", dtypes.INTEGRAL, "u1")
bits4x2 = _define("bits4x2", "Bits4x2", dtypes.INTEGRAL, "u1")
bits8 = _define("bits8", "Bits8", dtypes.INTEGRAL, "u1")
bits16 = _define("bits16", "Bits16", dtypes.INTEGRAL, "u2")
float4_e2m1fn_x2 = _define("float4_e2m1fn_x2", "Float4_e2m1fn_x2", dtypes.FLOATING, "u1")


RAW_BITS = (
    *(int1, int2, int3, int4, int5, int6, int7, uint1, uint2, uint3, uint4, uint5, uint6, uint7),
    *(bits1x8, bits2x4, bits4x2, bits8, bits16, float4_e2m1fn_x2),
)


def bytes_of(bits: dtypes.dtype) -> dtypes.dtype:
    """The dtype of the elements that a tensor of one of `RAW_BITS` has in memory."""
    return dtypes.uint8 if bits.itemsize == 1 else dtypes.uint16


def of_tensor(value) -> dtypes.dtype:
    """The dtype of a new tensor from a user's argument. Raises TypeError for one of
    these dtypes, `LackingDtype` for complex32 and those of bits.
    """
    dtype = dtypes.as_dtype(value)
    if dtype is complex32:
        raise dtypes.HalfComplexResult
    if dtype in RAW_BITS:
        raise dtypes.RawBitsResult(dtype)
    if dtype.numpy.names is not None:
        raise TypeError(f"no tensor has the dtype {dtype}, which XLA lacks: name another one")
    return dtype
