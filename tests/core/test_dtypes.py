"""Dtypes against PyTorch's, as tests/oracle/record_promotion.py recorded them."""

import copy

import jax.numpy as jnp
import ml_dtypes
import numpy
import pytest
from helpers.answers import beside, load

from jaxgrad.core import dtypes

RECORDED = load(beside("core/test_promotion.py"))
ATTRIBUTES = RECORDED["attributes"]


@pytest.fixture
def default_dtype():
    """Sets the default dtype for the test."""
    before = dtypes.get_default_dtype()
    yield dtypes.set_default_dtype
    dtypes.set_default_dtype(before)


def test_the_dtypes_are_torchs():
    assert {dtype.name for dtype in dtypes.ALL} == set(ATTRIBUTES)
    assert [repr(dtype) for dtype in dtypes.ALL] == [f"torch.{name}" for name in ATTRIBUTES]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_dtypes(name):
    dtype, expected = getattr(dtypes, name), ATTRIBUTES[name]
    for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(dtype, attribute) == expected[attribute]
    assert dtype.to_real().name == expected["to_real"]
    assert dtype.numpy.itemsize == expected["itemsize"]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_complex_and_real_forms_of_dtypes(name):
    expected = ATTRIBUTES[name]["to_complex"]
    if expected is not None:
        assert getattr(dtypes, name).to_complex().name == expected
        return
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for"):
        getattr(dtypes, name).to_complex()


@pytest.mark.parametrize("limits", ["finfo", "iinfo"])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_limits_of_finfo_and_iinfo(name, limits):
    expected = ATTRIBUTES[name][limits]
    if expected is None:
        with pytest.raises(TypeError, match=rf"torch\.{limits}"):
            getattr(dtypes, limits)(getattr(dtypes, name))
        return
    info = getattr(dtypes, limits)(getattr(dtypes, name))
    assert {"repr": repr(info)} | {key: getattr(info, key) for key in info.__slots__} == expected


def test_limits_without_a_dtype_are_the_defaults(default_dtype):
    default_dtype(dtypes.bfloat16)
    assert dtypes.finfo().eps == 2.0**-7
    assert dtypes.finfo(float).bits == 64


def test_short_names_are_the_same_objects():
    pairs = {"half": "float16", "float": "float32", "double": "float64", "short": "int16"}
    pairs |= {"int": "int32", "long": "int64", "cfloat": "complex64", "cdouble": "complex128"}
    assert all(getattr(dtypes, short) is getattr(dtypes, name) for short, name in pairs.items())


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_one_object_of_each(dtype):
    assert copy.copy(dtype) is copy.deepcopy([dtype])[0] is dtype


def test_no_other_dtypes_can_be_made():
    with pytest.raises(TypeError, match=r"cannot create 'torch\.dtype' instances"):
        dtypes.dtype("float8")
    with pytest.raises(TypeError, match=r"type 'torch\.dtype' is not an acceptable base type"):
        type("MyDtype", (dtypes.dtype,), {})


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_numpy_and_back(dtype):
    assert dtypes.from_numpy(dtype.numpy) is dtype
    assert dtypes.from_numpy(numpy.zeros(1, dtype.numpy).dtype) is dtype
    assert dtypes.as_dtype(dtype.numpy) is dtypes.as_dtype(dtype.numpy.type) is dtype
    assert dtypes.as_dtype(dtype) is dtype


def test_jax_and_python_types():
    jax_types = [jnp.bfloat16, jnp.float32, jnp.complex128, jnp.bool_, ml_dtypes.bfloat16]
    assert [dtypes.as_dtype(jax_type).name for jax_type in jax_types] == [
        *("bfloat16", "float32", "complex128", "bool", "bfloat16")
    ]
    names = [dtypes.as_dtype(python_type).name for python_type in (bool, int, float, complex)]
    assert names == ["bool", "int64", "float64", "complex128"]  # as in torch.zeros(1, dtype=float)


@pytest.mark.parametrize("argument", ["float32", None, 3, [1], object, dict])
def test_what_is_not_a_dtype(argument):
    with pytest.raises(TypeError, match=r"argument 'dtype' must be torch\.dtype, not"):
        dtypes.as_dtype(argument)


@pytest.mark.parametrize("name", [">f4", "datetime64[s]", "U3", "float8_e3m4"])
def test_numpy_dtypes_that_torch_has_not(name):
    with pytest.raises(TypeError, match=r"can't convert numpy dtype .* supported types are: bool"):
        dtypes.from_numpy(numpy.dtype(name))


def test_default_dtype(default_dtype):
    assert dtypes.get_default_dtype() is dtypes.float32
    default_dtype(dtypes.float64)
    assert dtypes.get_default_dtype() is dtypes.float64


@pytest.mark.parametrize("wrong", [dtypes.int32, dtypes.complex64, dtypes.bool])
def test_default_dtype_is_floating(wrong):
    with pytest.raises(TypeError, match=r"^only floating-point types are supported as the default"):
        dtypes.set_default_dtype(wrong)


@pytest.mark.parametrize("wrong", ["float32", float, None, numpy.float64])
def test_default_dtype_is_a_dtype(wrong):
    with pytest.raises(TypeError, match=r"^invalid dtype object: only floating-point types are"):
        dtypes.set_default_dtype(wrong)


def test_limits_are_compared_by_dtype():
    assert dtypes.finfo(dtypes.float16) == dtypes.finfo(dtypes.half) != dtypes.finfo(dtypes.float32)
    assert dtypes.iinfo(dtypes.int8) == dtypes.iinfo(dtypes.int8)
    with pytest.raises(TypeError, match="unhashable"):
        hash(dtypes.finfo(dtypes.float16))
    assert dtypes.float32.__reduce__() == "float32"
