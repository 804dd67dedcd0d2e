"""The host executor's rules of primitives that sort, and of those that accumulate along an axis."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.host_rules_indexing import check_bits, check_close, check_refused, results_of
from jax import lax

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"]


def numbers(dtype, shape, seed=0):
    """Numbers of a type, many of them equal, with its extreme ones."""
    random = numpy.random.default_rng(seed)
    dtype = jnp.dtype(dtype)
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        ends = numpy.array([limits.min, limits.max, 0, 1], dtype)
        return random.choice(numpy.concatenate([ends, ends // 3]), shape)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    special = [numpy.nan, -numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0]
    values = random.choice([*special, *random.standard_normal(6)], shape)
    if dtype.kind == "c":
        values = values + 0j
        values.imag = random.choice([*special, *random.standard_normal(2)], shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "complex64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort(dtype, axis):
    with jax.enable_x64(True):
        check_bits(lambda a: lax.sort(a, axis), numbers(dtype, (9, 7)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("has_negative_zero", [False, True])
def test_sort_of_many(dtype, has_negative_zero):
    array = numbers(dtype, (600,))
    array = array if has_negative_zero else array + 0
    assert numpy.any((array == 0) & numpy.signbit(array)) == has_negative_zero
    with jax.enable_x64(True):
        check_bits(lax.sort, array)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(40,), (700, 2)])
def test_sort_of_several(dtype, shape):
    """Elements with equal keys stay in order, 0.0 and -0.0 among them, and all NaN."""
    places = numpy.arange(numpy.prod(shape), dtype=numpy.int32).reshape(shape)
    with jax.enable_x64(True):
        check_bits(lambda a, b: lax.sort((a, b), 0, num_keys=1), numbers(dtype, shape), places)


@pytest.mark.parametrize("dtypes", [("float32", "int8"), ("bfloat16", "float16")])
def test_sort_by_several_keys(dtypes):
    first, second = (numbers(dtype, (3, 50), seed) for seed, dtype in enumerate(dtypes))
    places = numpy.arange(150, dtype=numpy.int32).reshape(3, 50)
    check_bits(lambda *a: lax.sort(a, 1, num_keys=2), first, second, places)


def test_sort_of_complex_keys():
    places = numpy.arange(60, dtype=numpy.int32)
    check_bits(lambda a, b: lax.sort((a, b), num_keys=1), numbers("complex64", (60,)), places)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn"])
def test_other_dtypes_are_refused(dtype):
    array = jnp.arange(3).astype(dtype)
    for function in (lax.sort, lambda a: lax.top_k(a, 2), lambda a: lax.cumsum(a, 0)):
        check_refused(function, array)


def test_sort_of_nothing():
    check_bits(lambda a: lax.sort((a, a), 1, num_keys=1), numpy.zeros((3, 0), numpy.float32))


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("k", [0, 1, 5, 30])
def test_top_k(dtype, k):
    with jax.enable_x64(True):
        check_bits(lambda a: lax.top_k(a, k), numbers(dtype, (3, 30)))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint64"])
@pytest.mark.parametrize("k", [0, 1, 7, 600])
def test_top_k_of_a_vector(dtype, k):
    """Many elements are equal to the last one that is taken."""
    with jax.enable_x64(True):
        check_bits(lambda a: lax.top_k(a, k), numbers(dtype, (600,)))


def test_top_k_along_an_axis():
    check_bits(lambda a: lax.top_k(a, 4, axis=0), numbers("float32", (30, 3)))


def test_approximate_top_k():
    array = numpy.random.default_rng(0).permutation(90).reshape(3, 30).astype(numpy.float32)
    check_bits(lambda a: lax.approx_max_k(a, 3), array)
    check_refused(lambda a: lax.approx_min_k(a, 3), array)


ACCUMULATIONS = {
    "cumsum": (lax.cumsum, numpy.cumsum),
    "cumprod": (lax.cumprod, numpy.cumprod),
    "cummax": (lax.cummax, numpy.maximum.accumulate),
    "cummin": (lax.cummin, numpy.minimum.accumulate),
    "cumlogsumexp": (lax.cumlogsumexp, numpy.logaddexp.accumulate),
}


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("name", ACCUMULATIONS)
def test_accumulations(name, dtype):
    """As accurate as the type allows, since the sums are wider."""
    function, wide_function = ACCUMULATIONS[name]
    random = numpy.random.default_rng(1)
    with jax.enable_x64(True):
        array = jnp.asarray(random.standard_normal((3, 400)) + 1).astype(dtype)
        if array.dtype.kind == "c" and name not in ("cumsum", "cumprod"):
            check_refused(lambda a: function(a, 1), array)
            return
        wide = numpy.asarray(array).astype("complex128" if array.dtype.kind == "c" else "float64")
        array = array if name != "cumprod" else array[:, :9]
        wanted = wide_function(wide[:, : array.shape[1]], axis=1)
        within = 4 * float(jnp.finfo(dtype).eps)
        check_close(lambda a: function(a, 1), array, within=within, expected=[wanted])
        (backwards,) = results_of(lambda a: function(a[:, ::-1], 1, reverse=True), array)
    backwards = backwards[:, ::-1].astype(wanted.dtype)
    numpy.testing.assert_allclose(backwards, wanted, rtol=within, atol=within)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_accumulations_of_integers(name, dtype):
    with jax.enable_x64(True):
        array = numbers(dtype, (5, 4)) + numpy.array(3, dtype)
        check_bits(lambda a: ACCUMULATIONS[name][0](a, 0), array)
        check_bits(lambda a: ACCUMULATIONS[name][0](a, 1, reverse=True), array)


@pytest.mark.parametrize("name", ACCUMULATIONS)
def test_accumulations_of_special_numbers(name):
    special = numpy.array([-numpy.inf, -numpy.inf, 1, numpy.inf, 2, numpy.nan, 3], numpy.float32)
    check_close(lambda a: ACCUMULATIONS[name][0](a, 0), special, within=1e-6)
    check_close(lambda a: ACCUMULATIONS[name][0](a, 0), special[:0], within=0)
