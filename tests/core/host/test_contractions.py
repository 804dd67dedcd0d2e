"""The host's products of matrices, against XLA's."""

import itertools

import jax
import numpy
import pytest
from helpers.host_rules_windows import assert_as_xla, assert_close, drawn, on_host
from jax import lax

# shapes of the operands, contracted axes, batch axes
FORMS = [
    ((3, 4), (4, 5), ((1,), (0,)), ((), ())),
    ((4, 3), (5, 4), ((0,), (1,)), ((), ())),
    ((4,), (4,), ((0,), (0,)), ((), ())),
    ((4,), (4, 2), ((0,), (0,)), ((), ())),
    ((3,), (4,), ((), ()), ((), ())),
    ((), (2, 3), ((), ()), ((), ())),
    ((3, 1), (1, 4), ((1,), (0,)), ((), ())),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((3, 2, 4, 5), (5, 6, 3, 2), ((3,), (0,)), ((0, 1), (2, 3))),
    ((2, 3, 4, 5), (4, 2, 6, 3), ((1, 2), (3, 0)), ((0,), (1,))),
    ((2, 3, 4, 5), (5, 3, 2), ((3, 1), (0, 1)), ((), ())),
    ((6, 4), (6, 4), ((1,), (1,)), ((0,), (0,))),
    ((4, 6), (4, 6), ((0,), (0,)), ((1,), (1,))),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((3, 0), (0, 2), ((1,), (0,)), ((), ())),
    ((0, 3), (3, 2), ((1,), (0,)), ((), ())),
    ((2, 0, 3), (2, 3, 4), ((2,), (1,)), ((0,), (0,))),
]
DTYPES = "bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"
WIDE = "int64", "float64", "complex128"


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_dimension_numbers(form):
    lhs, rhs, *numbers = form
    generator = numpy.random.default_rng(1)
    arrays = drawn(generator, lhs, "float32"), drawn(generator, rhs, "float32")
    assert_as_xla(lambda lhs, rhs: lax.dot_general(lhs, rhs, numbers), *arrays)


@pytest.mark.parametrize("dtype", DTYPES + WIDE)
def test_every_dtype(dtype):
    generator = numpy.random.default_rng(2)
    with jax.enable_x64(True):
        arrays = drawn(generator, (2, 3, 40), dtype), drawn(generator, (2, 40, 5), dtype)
        numbers = ((2,), (1,)), ((0,), (0,))
        assert_as_xla(lambda lhs, rhs: lax.dot_general(lhs, rhs, numbers), *arrays)


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [
        ("int8", "int32"),
        ("uint8", "uint32"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("int8", "float32"),
        ("float32", "float64"),
    ],
)
def test_a_preferred_dtype_of_the_result(dtype, preferred):
    generator = numpy.random.default_rng(3)
    with jax.enable_x64(True):
        arrays = drawn(generator, (3, 40), dtype), drawn(generator, (40, 5), dtype)

        def product(lhs, rhs):
            return lax.dot(lhs, rhs, preferred_element_type=preferred)

        (result,) = on_host(product, *arrays)
        assert result.dtype == preferred
        lhs, rhs = (array.astype("float64") for array in arrays)
        assert_close(result, (lhs @ rhs).astype(preferred))


def test_products_of_integers_wrap_around():
    array = numpy.full((3, 3), 2**30 + 7, numpy.int32)
    assert_as_xla(lax.dot, array, array)
    small = numpy.full((3, 3), 100, numpy.int8)
    assert_as_xla(lax.dot, small, small)


def test_half_precision_is_rounded_once():
    # 1 + 2000 of 2**-12 in steps of half precision would stay 1
    lhs = numpy.full((1, 2001), 2**-12, numpy.float16)
    lhs[0, 0] = 1
    (result,) = on_host(lax.dot, lhs, numpy.ones((2001, 1), numpy.float16))
    assert result.item() == numpy.float16(1 + 2000 * 2**-12)


@pytest.mark.parametrize("view", ["transposed", "flipped", "strided", "broadcast"])
def test_operands_that_are_views(view):
    generator = numpy.random.default_rng(4)
    array = drawn(generator, (6, 8), "float32")
    array = {
        "transposed": array.T[:6, :6],
        "flipped": array[::-1, 5::-1],
        "strided": drawn(generator, (12, 18), "float32")[::2, ::3],
        "broadcast": numpy.broadcast_to(array[0, :6], (6, 6)),
    }[view]
    other = drawn(generator, (6, 5), "float32")
    (result,) = on_host(lax.dot, array, other)
    assert_close(result, array.astype("float64") @ other)


@pytest.mark.parametrize("seed", range(12))
def test_random_dimension_numbers(seed):
    generator = numpy.random.default_rng(seed)
    kinds = generator.integers(0, 3, 4)  # batch, contracted, or free in both
    extents = generator.integers(1, 5, 4)
    orders = [generator.permutation(4) for _ in range(2)]
    shapes = [tuple(extents[order]) for order in orders]
    batch, contracted = (
        tuple(
            [
                tuple(
                    int(numpy.where(order == axis)[0][0])
                    for axis in range(4)
                    if kinds[axis] == kind
                )
                for order in orders
            ]
        )
        for kind in (0, 1)
    )
    arrays = [drawn(generator, shape, "float32") for shape in shapes]
    assert_as_xla(lambda lhs, rhs: lax.dot_general(lhs, rhs, (contracted, batch)), *arrays)


RAGGED = [
    ((((1,), (1,)), ((), ())), (0,), (0,), (10, 4), (3, 4, 5)),
    ((((1,), (2,)), ((), ())), (0,), (0,), (10, 4), (3, 5, 4)),
    ((((0,), (0,)), ((), ())), (0,), (), (10, 4), (10, 5)),
    ((((1,), (0,)), ((), ())), (1,), (), (2, 10), (10, 2, 2)),
]


@pytest.mark.parametrize("sizes", [(3, 3, 4), (0, 10, 0), (2, 1, 0)], ids=str)
@pytest.mark.parametrize("form", RAGGED, ids=str)
def test_rows_of_groups(form, sizes):
    *numbers, lhs, rhs = form
    numbers = lax.RaggedDotDimensionNumbers(*numbers)
    generator = numpy.random.default_rng(5)
    arrays = drawn(generator, lhs, "float32"), drawn(generator, rhs, "float32")
    assert_as_xla(
        lambda lhs, rhs, sizes: lax.ragged_dot_general(lhs, rhs, sizes, numbers),
        *arrays,
        numpy.array(sizes, numpy.int32),
    )


def test_infinity_times_zero_is_nan_in_its_place_only():
    lhs = numpy.array([[numpy.inf, 1.0], [2.0, 3.0]], numpy.float32)
    rhs = numpy.array([[0.0, 1.0], [1.0, 1.0]], numpy.float32)
    for left, right in itertools.product((lhs, lhs.T), (rhs, rhs.T)):
        assert_as_xla(lax.dot, left, right)
