"""The host's reductions of windows, against XLA's."""

import jax
import numpy
import pytest
from helpers.host_rules_windows import assert_as_xla, drawn, on_host
from jax import lax

from jaxgrad.core.host.equation import NotOnHostError

REAL = "int8", "uint8", "int32", "float16", "bfloat16", "float32", "int64", "float64"
# the windows' extents and steps, the padding, the dilations of the operand and of the windows
FORMS = [
    ((1, 2, 2), (1, 2, 2), [(0, 0)] * 3, (1, 1, 1), (1, 1, 1)),
    ((1, 3, 3), (1, 2, 1), [(0, 0), (1, 1), (2, 0)], (1, 1, 1), (1, 1, 1)),
    ((2, 1, 3), (1, 1, 1), [(1, 0), (0, 0), (1, 1)], (1, 1, 1), (1, 1, 2)),
    ((1, 3, 2), (1, 2, 3), [(0, 0), (0, 3), (2, 2)], (1, 2, 3), (1, 2, 1)),
    ((3, 7, 6), (1, 1, 1), [(0, 0)] * 3, (1, 1, 1), (1, 1, 1)),
    ((1, 1, 1), (2, 3, 1), [(0, 0), (-1, -2), (1, -1)], (1, 1, 1), (1, 1, 1)),
    ((1, 12, 1), (1, 1, 1), [(0, 0), (3, 4), (0, 0)], (1, 1, 1), (1, 1, 1)),
    ((1, 9, 10), (1, 1, 1), [(0, 0), (6, 6), (4, 4)], (1, 1, 1), (1, 1, 1)),
]
SHAPE = 3, 7, 6


def extreme(dtype, is_least):
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        return numpy.bool_(not is_least)
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        return dtype.type(limits.min if is_least else limits.max)
    return numpy.asarray(-numpy.inf if is_least else numpy.inf, dtype)


def reduction(name, dtype, extents, steps, padding, base, dilation):
    combine, initial = {
        "sum": (lax.add, numpy.zeros((), dtype)),
        "max": (lax.max, extreme(dtype, True)),
        "min": (lax.min, extreme(dtype, False)),
        "mul": (lax.mul, numpy.ones((), dtype)),
    }[name]
    return lambda operand: lax.reduce_window(
        operand, initial, combine, extents, steps, padding, base, dilation
    )


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min", "mul"])
def test_every_form(name, form):
    array = drawn(numpy.random.default_rng(1), SHAPE, "float32")
    assert_as_xla(reduction(name, "float32", *form), array)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_every_dtype(name, dtype):
    with jax.enable_x64(True):
        array = drawn(numpy.random.default_rng(2), SHAPE, dtype)
        assert_as_xla(reduction(name, dtype, *FORMS[1]), array)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_logical_values(name):
    array = numpy.random.default_rng(3).integers(0, 2, SHAPE).astype(bool)
    assert_as_xla(reduction(name, "bool", *FORMS[1]), array)


def test_sums_of_complex_numbers():
    array = drawn(numpy.random.default_rng(4), SHAPE, "complex64")
    assert_as_xla(reduction("sum", "complex64", *FORMS[1]), array)


def test_sums_of_half_precision_are_rounded_once():
    array = numpy.full(2001, 2**-12, numpy.float16)
    array[0] = 1
    (result,) = on_host(reduction("sum", "float16", (2001,), (1,), [(0, 0)], (1,), (1,)), array)
    assert result.item() == numpy.float16(1 + 2000 * 2**-12)


def test_sums_of_integers_wrap_around():
    array = numpy.full((4,), 100, numpy.int8)
    assert_as_xla(reduction("sum", "int8", (2,), (1,), [(0, 0)], (1,), (1,)), array)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)], ids=str)
def test_operands_without_axes_or_elements(shape):
    array = numpy.zeros(shape, numpy.float32)
    rank = len(shape)
    form = (1,) * rank, (1,) * rank, [(0, 0)] * rank, (1,) * rank, (1,) * rank
    assert_as_xla(reduction("max", "float32", *form), array)


def hostile(seed, shape):
    """Numbers of which many are equal, infinite, or NaN."""
    numbers = [0.0, -0.0, 1.0, 1.0, 2.0, numpy.inf, -numpy.inf, numpy.nan, -1.0, 0.5]
    return numpy.random.default_rng(seed).choice(numbers, shape).astype(numpy.float32)


@pytest.mark.parametrize("form", FORMS[:4], ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_infinities_and_nan(name, form):
    assert_as_xla(reduction(name, "float32", *form), hostile(5, SHAPE))


@pytest.mark.parametrize(
    "combine", [lax.mul, lax.add, lax.max], ids=lambda combine: combine.__name__
)
def test_an_initial_value_is_combined_with_each_window(combine):
    array = drawn(numpy.random.default_rng(6), (5, 6), "float32")

    def reduced(operand, initial):
        return lax.reduce_window(operand, initial, combine, (2, 3), (2, 1), [(1, 0), (0, 1)])

    assert_as_xla(reduced, array, numpy.float32(1.5)[...])


# ---- Elements that windows select


def gradient(extents, steps, padding, select=lax.max):
    initial = -numpy.inf if select is lax.max else numpy.inf

    def reduced(operand):
        return lax.reduce_window(operand, initial, select, extents, steps, padding)

    return lambda operand, source: jax.vjp(reduced, operand)[1](source)[0]


UNDILATED = [form[:3] for form in FORMS if set(form[3] + form[4]) == {1}]
UNDILATED = [form for form in UNDILATED if min(map(min, form[2])) >= 0]


@pytest.mark.parametrize("draw", [drawn, hostile], ids=["usual", "hostile"])
@pytest.mark.parametrize("select", [lax.max, lax.min], ids=["max", "min"])
@pytest.mark.parametrize("form", UNDILATED, ids=str)
def test_gradients_of_extremes(form, select, draw):
    array = (
        hostile(7, SHAPE)
        if draw is hostile
        else drawn(numpy.random.default_rng(7), SHAPE, "float32")
    )
    shape = jax.eval_shape(reduction("max", "float32", *form, None, None), array).shape
    source = drawn(numpy.random.default_rng(8), shape, "float32")
    assert_as_xla(gradient(*form, select), array, source)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_gradients_in_other_dtypes(dtype):
    with jax.enable_x64(True):
        array = drawn(numpy.random.default_rng(9), SHAPE, dtype)
        source = drawn(numpy.random.default_rng(10), (3, 3, 3), dtype)
        assert_as_xla(gradient((1, 2, 2), (1, 2, 2), [(0, 0)] * 3), array, source)


def test_a_gradient_that_is_infinite_is_zero_elsewhere():
    array = drawn(numpy.random.default_rng(11), (4, 6), "float32")
    source = numpy.array([[numpy.inf, numpy.nan, 1.0], [1.0, 2.0, -numpy.inf]], numpy.float32)
    assert_as_xla(gradient((2, 2), (2, 2), [(0, 0)] * 2), array, source)
    source = numpy.full((3, 5), numpy.inf, numpy.float32)
    assert_as_xla(gradient((2, 2), (1, 1), [(0, 0)] * 2), array, source)


@pytest.mark.parametrize("form", FORMS[:4], ids=str)
def test_tangents_of_extremes(form):
    generator = numpy.random.default_rng(12)
    array = generator.permutation(numpy.arange(3 * 7 * 6, dtype=numpy.float32)).reshape(SHAPE)
    tangent = drawn(generator, SHAPE, "float32")
    reduced = reduction("max", "float32", *form)
    assert_as_xla(
        lambda operand, tangent: jax.jvp(reduced, (operand,), (tangent,))[1], array, tangent
    )


# ---- What the host refuses, and programs that combine elements


def test_windows_of_many_elements_are_not_combined_by_a_program():
    def reduced(operand):
        return lax.reduce_window(operand, 0.0, lambda a, b: a + b * b, (5,), (1,), [(0, 0)])

    with pytest.raises(NotOnHostError):
        on_host(reduced, numpy.ones(10000, numpy.float32))


def test_gradients_of_cropped_operands_are_refused():
    array = numpy.ones((6,), numpy.float32)
    with pytest.raises(NotOnHostError):
        on_host(gradient((2,), (1,), [(-1, 0)]), array, numpy.ones((4,), numpy.float32))


@pytest.mark.parametrize("seed", range(20))
def test_random_windows(seed):
    generator = numpy.random.default_rng(100 + seed)
    rank = generator.integers(1, 4)

    def sizes(low, high):
        return tuple(map(int, generator.integers(low, high, rank)))

    shape, extents = sizes(4, 8), sizes(1, 4)
    padding = [*zip(sizes(-1, 3), sizes(-1, 3), strict=True)]
    form = extents, sizes(1, 4), padding, sizes(1, 3), sizes(1, 3)
    name = ["sum", "max", "min", "mul"][seed % 4]
    assert_as_xla(reduction(name, "float32", *form), drawn(generator, shape, "float32"))
