"""The host's rules of conversions, compared with XLA."""

import warnings

import jax
import ml_dtypes
import numpy as np
import pytest
from helpers import checks
from helpers.host_rules_elementwise import assert_near, by_xla, check, dtype_of, on_host
from jax import lax

from jaxgrad.core.host.block import Block
from jaxgrad.core.host.equation import NotOnHostError

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES = ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"]
LIMITS = [2.0**power + step for power in (7, 8, 15, 16, 31, 32, 63, 64) for step in (-1, 0, 1)]
EDGES = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 3e4, np.nan, np.inf, -np.inf]
EDGES += [*LIMITS, *(-limit for limit in LIMITS), 1e30, -1e30, 123.456]


def numbers(name):
    """Edge values of a dtype, as many for every one."""
    dtype = dtype_of(name)
    if name in INTEGERS:
        limits = np.iinfo(dtype)
        edges = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 77]
        return np.resize(np.array(edges, dtype), 60)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if dtype.kind == "c":
            return (np.array(EDGES) + 1j * np.resize([0.0, 2.0], len(EDGES))).astype(dtype)
        return np.array(EDGES).astype(dtype)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # by JAX
@pytest.mark.parametrize("old", DTYPES)
@pytest.mark.parametrize("new", DTYPES)
def test_conversions(old, new):
    new = dtype_of(new)
    with jax.enable_x64(True):
        tiny = 1e-37 if old == "float64" else 0
        is_rounded_twice = new.name == "bfloat16" or new.name == "float16"
        operand = numbers(old)
        ulps = 1 if is_rounded_twice else 0
        check(lambda x: lax.convert_element_type(x, new), operand, ulps=ulps, tiny=tiny)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_in_range_are_cut_off(dtype):
    with jax.enable_x64(True):
        operand = np.linspace(0.1, 99.9, 50)
        check(lambda x: lax.convert_element_type(x, dtype), operand)


BITS = ["int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64"]


@pytest.mark.parametrize("new", BITS)
@pytest.mark.parametrize("old", BITS)
def test_bits_as_another_dtype(old, new):
    old, new = dtype_of(old), dtype_of(new)
    ratio = max(new.itemsize // old.itemsize, 1)
    shape = (3, 4, ratio) if ratio > 1 else (3, 4)
    bits = np.random.default_rng(0).integers(0, 64, (*shape, old.itemsize), np.uint8)
    with jax.enable_x64(True):
        operand = bits.view(old).reshape(shape)
        (expected,) = by_xla(_bitcast_to(new), operand)
        for place in (slice(None), slice(None, None, -1), slice(0), (1, 2), np.s_[:, ::2]):
            (computed,) = on_host(_bitcast_to(new), operand[place])
            assert (computed.shape, computed.dtype) == (expected[place].shape, expected.dtype)
            assert computed.tobytes() == expected[place].tobytes()
            checks.count("host rules", max(computed.size, 1))


def _bitcast_to(dtype):
    return lambda operand: lax.bitcast_convert_type(operand, dtype)


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_bits_as_the_same_dtype(dtype):
    check(_bitcast_to(np.dtype(dtype)), np.resize([0, 1, 1], 12).astype(dtype))


@pytest.mark.parametrize("bits", [(8, 7), (5, 10), (5, 2), (4, 3), (8, 23), (3, 1), (11, 52)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_reduced_precision(bits, dtype):
    exponent, mantissa = bits
    random = np.random.default_rng(0).normal(size=200)
    operand = np.concatenate([random, random * np.exp(5 * random[::-1]), random * 1e30])
    with np.errstate(all="ignore"):
        operand = np.concatenate([EDGES[:12], [240, 248, 249, 65519, 65520], operand])
        operand = operand.astype(dtype_of(dtype))
    with jax.enable_x64(True):
        check(lambda x: lax.reduce_precision(x, exponent, mantissa), operand)


def test_reduced_precision_without_a_mantissa_is_refused():
    # which has no NaN
    block = Block(jax.make_jaxpr(lambda x: lax.reduce_precision(x, 3, 0))(np.zeros(3, np.float32)))
    with pytest.raises(NotOnHostError, match="mantissa"):
        block.function  # noqa: B018


def test_reduced_precision_rounds_as_a_conversion_does():
    operand = np.random.default_rng(0).normal(size=500).astype(np.float32)
    (computed,) = on_host(lambda x: lax.reduce_precision(x, 8, 7), operand)
    assert_near(computed, operand.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "complex64"])
@pytest.mark.parametrize("shape", [(5,), (300,), (2, 3, 4), (3, 0)])
def test_iota(shape, dtype):
    with jax.enable_x64(True):
        for dimension in range(len(shape)):

            def count(dimension=dimension):
                return lax.broadcasted_iota(dtype_of(dtype), shape, dimension)

            assert_near(on_host(count)[0], by_xla(count)[0])


def test_an_array_without_values():
    # older versions of JAX have no `empty`, and make the array of zeros
    make = getattr(lax, "empty", lambda shape, dtype: lax.full(shape, 0, dtype))
    (computed,) = on_host(lambda: make((2, 3), np.int16))
    assert_near(computed, np.zeros((2, 3), np.int16))


def test_conversion_to_other_dtypes_is_refused():
    block = Block(jax.make_jaxpr(lambda x: x.astype("float8_e5m2"))(np.zeros(3, np.float32)))
    with pytest.raises(NotOnHostError, match="float8"):
        block.function  # noqa: B018
