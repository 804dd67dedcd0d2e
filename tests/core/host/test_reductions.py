"""The host's rules of reductions, compared with XLA and with exact sums."""

import math

import jax
import numpy as np
import pytest
from helpers import checks
from helpers.host_rules_elementwise import assert_near, by_wider_xla, by_xla, dtype_of, on_host
from jax import lax

from jaxgrad.core.host.block import Block
from jaxgrad.core.host.equation import NotOnHostError

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int32", "uint32", "int64"]
NAMES = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"]
LOGICAL = ["reduce_and", "reduce_or", "reduce_xor"]
# a shape and the axes that are reduced
FORMS = [
    ((), ()),
    ((7,), (0,)),
    ((3, 4), ()),
    ((3, 4, 5), (1,)),
    ((3, 4, 5), (0, 2)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
    ((500,), (0,)),
    ((300, 3), (0,)),
    ((3, 300), (1,)),
    ((2, 70, 5), (0, 1)),
    ((130, 6), (1,)),
    ((13, 2, 17), (1,)),
    ((3, 9, 20), (0,)),
    ((13, 2, 17), (0, 2)),
    ((2, 3, 200, 2), (0, 2)),
    ((40, 1, 2, 9, 1), (0, 3, 4)),
    ((1000, 1), (0, 1)),
    ((1057, 2), (0,)),
]


def by_name(name, axes):
    return lambda operand: getattr(lax, name)(operand, axes=axes)


def array(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = dtype_of(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    numbers = rng.normal(size=shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(size=shape)
    return np.asarray(numbers).astype(dtype)


def views(operand):
    """The same elements in other orders of memory."""
    yield operand
    yield np.asarray(operand, order="F")
    yield np.repeat(operand[..., None], 2, -1)[..., 1] if operand.ndim else operand


@pytest.mark.parametrize("shape, axes", FORMS)
@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "float64", "complex64"])
def test_reductions_of_any_shape(dtype, shape, axes):
    operand = array(shape, dtype)
    names = NAMES[:2] if dtype == "complex64" else NAMES
    names = [*names, *LOGICAL] if dtype in INTEGERS else names
    if dtype not in INTEGERS:
        operand = np.asarray(np.exp(operand.real / 50) * np.sign(operand)).astype(dtype)
    wide = {"float16": "float32", "float32": "float64"}.get(dtype, dtype)
    with jax.enable_x64(True):
        expected = by_xla(
            lambda x: [by_name(name, axes)(x) for name in names], operand.astype(wide)
        )
        for view in views(operand):
            computed = on_host(lambda x: [by_name(name, axes)(x) for name in names], view)
            for name, one, other in zip(names, computed, expected, strict=True):
                assert_reduced(name, operand, one, other.astype(dtype), axes)


def assert_reduced(name, operand, computed, expected, axes):
    if name == "reduce_sum" and operand.dtype.kind in "fc":
        sizes = np.abs(operand.astype("F")).sum(axes).real if operand.size else 0
        scale = np.float32(np.finfo(operand.dtype).eps)
        limit = 8 * scale * sizes + scale * np.abs(expected.astype("F"))
        assert (np.abs(computed.astype("F") - expected.astype("F")) <= limit).all()
        checks.count("host rules", max(computed.size, 1))
    else:
        ulps = 64 + operand.size if name == "reduce_prod" else 0
        assert_near(computed, expected, ulps if operand.dtype != np.float16 else min(ulps, 1))


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64"])
@pytest.mark.parametrize("shape, axes", [((4, 6), (1,)), ((4, 200), (1,)), ((200, 4), (0,))])
def test_nan_and_infinities(dtype, shape, axes):
    operand = np.abs(array(shape, dtype)).astype(dtype_of(dtype))
    for place, value in [((1, 1), np.nan), ((0, 2), np.inf), ((2, 3), -np.inf), ((3, 0), np.inf)]:
        operand[place] = value
    operand[3, 2] = -np.inf
    names = NAMES[:1] if dtype == "complex64" else NAMES
    with jax.enable_x64(True):
        runs = on_host, by_wider_xla
        computed, expected = (
            run(lambda x: [by_name(name, axes)(x) for name in names], operand) for run in runs
        )
        for name, one, other in zip(names, computed, expected, strict=True):
            ulps = {"float16": 1, "bfloat16": 1}.get(dtype, 1000)
            assert_near(one, other, 0 if name in NAMES[2:] else ulps)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("shape, axes", [((6, 5), (0,)), ((5, 300), (1,)), ((300, 5), (0,))])
def test_extremes_of_complex_numbers_are_lexicographic(name, shape, axes):
    numbers = np.round(array(shape, "complex64"))
    computed, expected = (run(by_name(name, axes), numbers) for run in (on_host, by_xla))
    assert_near(computed[0], expected[0])


@pytest.mark.parametrize("shape, axes", [((6, 5), (0,)), ((5, 300), (1,)), ((3, 0), (1,))])
def test_reductions_of_booleans(shape, axes):
    numbers = array(shape, "bool")
    numbers[:1] = True
    names = [*LOGICAL, "reduce_max", "reduce_min"]
    computed, expected = (
        run(lambda x: [by_name(name, axes)(x) for name in names], numbers)
        for run in (on_host, by_xla)
    )
    for one, other in zip(computed, expected, strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("name", NAMES[2:])
def test_extremes_of_nothing(name, dtype):
    with jax.enable_x64(True):
        numbers = np.zeros((2, 0), dtype_of(dtype))
        (computed,), (expected,) = (run(by_name(name, (1,)), numbers) for run in (on_host, by_xla))
        assert_near(computed, expected)


# ---- Accuracy of sums


@pytest.mark.parametrize("shape", [(1 << 20,), (1 << 18, 4), (1 << 14, 64), (2, 1 << 17, 4)])
def test_sums_of_many_elements_are_accurate(shape):
    operand = np.random.default_rng(0).random(shape, np.float32)
    axis = int(np.argmax(shape))
    (computed,) = on_host(by_name("reduce_sum", (axis,)), operand)
    exact = operand.sum(axis, dtype=np.float64)
    assert (np.abs(computed - exact) / exact).max() < 4 * 2**-24
    checks.count("host rules", computed.size)


def test_sums_along_a_view_are_accurate():
    operand = np.random.default_rng(0).random((1 << 17, 4), np.float32).T
    for view, axes in [(operand, (1,)), (operand[:, ::-1], (1,)), (operand, (0, 1))]:
        (computed,) = on_host(by_name("reduce_sum", axes), view)
        exact = view.sum(axes, dtype=np.float64)
        assert (np.abs(computed - exact) / exact).max() < 4 * 2**-24
        checks.count("host rules", computed.size)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_half_precision_are_rounded_once(dtype):
    operand = array((3, 4000), dtype)
    (computed,) = on_host(by_name("reduce_sum", (1,)), operand)
    exact = [math.fsum(row) for row in operand.astype(float)]
    assert_near(computed, np.array(exact).astype(dtype_of(dtype)), 1)


# ---- Places of extremes


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_places_of_extremes(dtype):
    kinds = zip(range(3), ["int32", "int64", "uint8"], strict=True)
    kinds = [(f, axis, dtype) for axis, dtype in kinds for f in (lax.argmax, lax.argmin)]

    def places(x):
        return [f(x, axis, index_dtype) for f, axis, index_dtype in kinds]

    with jax.enable_x64(True):
        numbers = array((5, 6, 7), dtype)
        if dtype in FLOATS:
            numbers = np.round(numbers)  # with ties
            numbers[1, 2, 3:5], numbers[2, 0, 1:], numbers[3, 3] = np.nan, -np.inf, -0.0
            numbers[3, 3, 2] = 0.0
        expected = by_xla(places, numbers)
        for view in views(numbers):
            for one, other in zip(on_host(places, view), expected, strict=True):
                assert_near(one, other)


# ---- Reductions by a function


def pair_of_extreme(first, second):
    """The larger value with its place: what jnp.argmax was by lax.reduce."""
    is_first = first[0] >= second[0]
    return [jax.numpy.where(is_first, one, other) for one, other in zip(first, second, strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_reduction_by_a_function(dtype):
    numbers, places = array((4, 3, 5), dtype), np.arange(60, dtype=np.int32).reshape(4, 3, 5)
    start = np.float32(-100).astype(dtype_of(dtype))
    if dtype == "int32":
        start = np.int32(np.iinfo(np.int32).min)
    for axes in [(0,), (2, 1), (0, 1, 2)]:

        def reduce(x, y, axes=axes):
            return lax.reduce([x, y], [start, np.int32(-1)], pair_of_extreme, axes)

        for computed, expected in zip(
            on_host(reduce, numbers, places), by_xla(reduce, numbers, places), strict=True
        ):
            assert_near(computed, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape, axes", [((4, 3, 5), (0, 2)), ((300, 4), (0,)), ((200, 8), (1,))])
def test_reduction_by_several_operations(shape, axes, dtype):
    first, second = np.abs(array(shape, dtype)), np.abs(array(shape, dtype, 1))

    def reduce(x, y, z):
        starts = [x.dtype.type(2), x.dtype.type(0.5), x.dtype.type(1)]
        return lax.reduce(
            [x, y, z], starts, lambda a, b: [a[0] + b[0], lax.max(b[1], a[1]), a[2] * b[2]], axes
        )

    operands = first, second, np.exp(first.astype(float) / 100).astype(first.dtype)
    wide = [operand.astype(np.float32) for operand in operands]
    ulps = 1 if dtype != "float32" else 200
    for computed, expected in zip(on_host(reduce, *operands), by_xla(reduce, *wide), strict=True):
        assert_near(computed, expected.astype(first.dtype), ulps)


def test_results_may_be_in_another_order_than_the_operands():
    first, second = array((4, 6), "float32"), array((4, 6), "float32", 1)

    def reduce(x, y):
        zero = np.float32(0)
        return lax.reduce([x, y], [zero, zero], lambda a, b: [a[0] + b[0], b[0] + a[1]], (1,))

    for computed, expected in zip(
        on_host(reduce, first, second), by_xla(reduce, first, second), strict=True
    ):
        assert_near(computed, expected, 16)


def test_a_large_reduction_by_a_function_is_refused():
    def reduce(x):
        return lax.reduce(x, np.float32(0), lambda a, b: lax.max(a, b * b), (0,))

    block = Block(jax.make_jaxpr(reduce)(np.zeros(100_000, np.float32)))
    with pytest.raises(NotOnHostError, match="reduce"):
        block.function  # noqa: B018
