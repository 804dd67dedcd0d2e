"""The host's convolutions, against XLA's and sums in double precision."""

import random

import jax
import numpy
import pytest
from helpers.host_rules_windows import assert_as_xla, assert_close, drawn, on_host
from jax import lax
from jaxgrad.rules import convolution as rules

from jaxgrad.core.host import patches, scattered_products
from jaxgrad.core.host.block import Block
from jaxgrad.core.host.equation import NotOnHostError

FIRST, LAST = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")
DTYPES = "int8", "int32", "float16", "bfloat16", "float32", "complex64", "float64", "complex128"


def operands(source, weight, numbers=FIRST, dtype="float32"):
    """Random operands whose shapes are those of NCHW and OIHW."""
    generator = numpy.random.default_rng(1)
    arrays = []
    for shape, layout, letters in zip((source, weight), numbers, FIRST, strict=False):
        order = [letters.index(letter) for letter in layout]
        arrays.append(drawn(generator, tuple([shape[axis] for axis in order]), dtype))
    return arrays


def convolution(numbers=FIRST, steps=(1, 1), padding=((0, 0), (0, 0)), **others):
    return lambda source, weight: lax.conv_general_dilated(
        source, weight, steps, padding, dimension_numbers=numbers, **others
    )


# The shapes and options of convolutions as networks have them
USUAL = {
    "3x3": ((2, 5, 8, 8), (6, 5, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "3x3 without padding": ((2, 5, 8, 7), (6, 5, 3, 3), {}),
    "3x3 with steps": ((2, 5, 9, 8), (6, 5, 3, 3), {"steps": (2, 2), "padding": ((1, 1), (1, 1))}),
    "1x1": ((2, 5, 9, 8), (6, 5, 1, 1), {}),
    "1x1 with steps": ((2, 5, 17, 16), (6, 5, 1, 1), {"steps": (2, 2)}),
    "1x1 of small images": ((2, 5, 2, 2), (6, 5, 1, 1), {}),
    "7x7 with steps": (
        (1, 3, 16, 16),
        (4, 3, 7, 7),
        {"steps": (2, 2), "padding": ((3, 3), (3, 3))},
    ),
    "dilated": ((2, 3, 9, 9), (4, 3, 3, 3), {"rhs_dilation": (2, 2), "padding": ((2, 2), (2, 2))}),
    "transposed": (
        (2, 3, 5, 5),
        (4, 3, 3, 3),
        {"lhs_dilation": (2, 2), "padding": ((1, 2), (1, 2))},
    ),
    "few features": ((2, 16, 6, 6), (2, 16, 5, 5), {"padding": ((4, 4), (4, 4))}),
    "few features of large images": ((2, 8, 17, 17), (2, 8, 3, 3), {"padding": ((1, 0), (0, 2))}),
    "few features, transposed": (
        (3, 8, 5, 5),
        (2, 8, 4, 4),
        {"lhs_dilation": (2, 2), "padding": ((2, 2), (2, 2))},
    ),
    "many features": ((9, 4, 4, 4), (300, 4, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "grouped": (
        (2, 6, 7, 7),
        (4, 3, 3, 3),
        {"padding": ((1, 1), (1, 1)), "feature_group_count": 2},
    ),
    "depthwise": (
        (2, 6, 7, 7),
        (6, 1, 3, 3),
        {"padding": ((1, 1), (1, 1)), "feature_group_count": 6},
    ),
    "depthwise with steps": (
        (2, 6, 7, 7),
        (12, 1, 3, 3),
        {"steps": (2, 2), "padding": ((1, 1), (1, 1)), "feature_group_count": 6},
    ),
}


@pytest.mark.parametrize("numbers", [FIRST, LAST], ids=["channels first", "channels last"])
@pytest.mark.parametrize("name", USUAL)
def test_usual_convolutions(name, numbers):
    source, weight, options = USUAL[name]
    assert_as_xla(convolution(numbers, **options), *operands(source, weight, numbers))


# The gradients by weights: windows as large as images, of which there are few.
BY_WEIGHT = {
    "3x3": ((4, 3, 9, 9), (5, 3, 9, 9), {"padding": ((1, 1), (1, 1))}),
    "3x3 with steps": (
        (4, 3, 9, 9),
        (5, 3, 5, 5),
        {"rhs_dilation": (2, 2), "padding": ((1, 1), (1, 1))},
    ),
    "1x1": ((4, 3, 9, 9), (5, 3, 9, 9), {}),
    "1x1 with steps": ((4, 3, 17, 17), (5, 3, 9, 9), {"rhs_dilation": (2, 2)}),
    "grouped": (
        (4, 3, 9, 9),
        (6, 3, 9, 9),
        {"padding": ((1, 1), (1, 1)), "batch_group_count": 2},
    ),
    "depthwise": (
        (4, 3, 9, 9),
        (4, 3, 9, 9),
        {"padding": ((1, 1), (1, 1)), "batch_group_count": 4},
    ),
}
SWAPPED_FIRST, SWAPPED_LAST = ("CNHW", "IOHW", "CNHW"), ("CHWN", "IHWO", "HWNC")


@pytest.mark.parametrize("numbers", [FIRST, SWAPPED_FIRST, SWAPPED_LAST], ids=str)
@pytest.mark.parametrize("name", BY_WEIGHT)
def test_gradients_by_weights(name, numbers):
    source, weight, options = BY_WEIGHT[name]
    assert_as_xla(convolution(numbers, **options), *operands(source, weight, numbers))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["3x3", "1x1", "depthwise"])
def test_every_dtype(name, dtype):
    source, weight, options = USUAL[name]
    with jax.enable_x64(True):
        assert_as_xla(convolution(**options), *operands(source, weight, dtype=dtype))


@pytest.mark.parametrize(
    ("dtype", "preferred"), [("int8", "int32"), ("float16", "float32"), ("float32", "float64")]
)
def test_a_preferred_dtype_of_the_result(dtype, preferred):
    with jax.enable_x64(True):
        arrays = operands((2, 5, 4, 4), (3, 5, 2, 2), dtype=dtype)
        (result,) = on_host(convolution(preferred_element_type=preferred), *arrays)
        (wanted,) = on_host(convolution(), *[array.astype("float64") for array in arrays])
    assert result.dtype == preferred
    assert_close(result, wanted.astype(preferred))


def sums(source, weight):
    """A convolution without padding as sums in double precision."""
    windows = numpy.lib.stride_tricks.sliding_window_view(source, weight.shape[2:], (2, 3))
    return numpy.einsum("nchwij,ocij->nohw", windows, weight, dtype="float64")


@pytest.mark.parametrize("size", [(5, 3), (3, 5)], ids=str)
def test_against_sums_in_double_precision(size):
    source, weight = operands((2, 5, 9, 8), (6, 5, *size))
    (result,) = on_host(convolution(), source, weight)
    assert_close(result, sums(source, weight))


@pytest.mark.parametrize("place", [(0, 0), (4, 8), (8, 0)], ids=str)
@pytest.mark.parametrize("size", [(3, 3), (7, 7)], ids=str)
@pytest.mark.parametrize("number", [numpy.inf, numpy.nan])
def test_a_number_that_is_not_finite_stays_in_its_windows(number, size, place):
    source, weight = operands((2, 3, 9, 9), (6, 3, *size))
    source[1, 1, *place] = number
    assert_as_xla(convolution(padding=((1, 1), (0, 0))), source, weight)


BLOCKS = [
    *[(USUAL[name], FIRST) for name in ("3x3", "7x7 with steps", "few features")],
    *[(USUAL[name], LAST) for name in ("3x3", "7x7 with steps")],
    *[(BY_WEIGHT[name], SWAPPED_FIRST) for name in ("3x3", "grouped")],
    *[(BY_WEIGHT[name], SWAPPED_LAST) for name in ("3x3", "grouped")],
]


@pytest.mark.parametrize(("case", "numbers"), BLOCKS)
def test_blocks_that_do_not_divide_the_operands(case, numbers, monkeypatch):
    monkeypatch.setattr(patches, "CACHED", 1000)
    monkeypatch.setattr(patches, "COLUMNS", 32)
    monkeypatch.setattr(scattered_products, "CACHED", 1000)
    monkeypatch.setattr(scattered_products, "SMALL", 2)
    (batch, channels, *extents), (features, inputs, *size), options = case
    if numbers[0][0] == "C":
        channels, inputs = 7, 7
    else:
        batch = 7
    arrays = operands((batch, channels, *extents), (features, inputs, *size), numbers)
    assert_as_xla(convolution(numbers, **options), *arrays)


@pytest.mark.parametrize(
    ("source", "weight"),
    [
        ((0, 2, 4, 4), (3, 2, 2, 2)),
        ((2, 0, 4, 4), (3, 0, 2, 2)),
        ((2, 2, 4, 4), (0, 2, 2, 2)),
        ((2, 2, 1, 4), (3, 2, 2, 2)),
        ((2, 2, 0, 4), (3, 2, 1, 2)),
    ],
    ids=str,
)
def test_operands_without_elements(source, weight):
    assert_as_xla(convolution(), *operands(source, weight))


def test_windows_that_are_too_large_are_refused():
    source, weight = (
        jax.ShapeDtypeStruct((16, 64, 200, 200), "float32"),
        jax.ShapeDtypeStruct((8, 64, 101, 101), "float32"),
    )
    block = Block(jax.make_jaxpr(convolution())(source, weight))
    with pytest.raises(NotOnHostError):
        _ = block.function


# ---- branches for platforms

LAYERS = {  # channels, features, groups, and whether the host runs the branch for all platforms
    "depthwise": (6, 6, 6, True),
    "grouped": (6, 4, 2, True),
    "of small images": (6, 256, 1, False),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_and_its_gradients_are_of_the_branch_that_is_fast_on_the_host(layer):
    channels, features, groups, is_of_all = LAYERS[layer]
    numbers = (1, 1), (1, 1), (1, 1), groups
    generator = numpy.random.default_rng(0)
    shapes = (2, channels, 6, 6), (features, channels // groups, 3, 3), (2, features, 6, 6)
    source, weight, gradient = [drawn(generator, shape, "float32") for shape in shapes]

    def products(source, weight, gradient):
        return (
            rules.correlate(source, weight, *numbers),
            rules.input_gradient(gradient, weight, source.shape, *numbers),
            rules.weight_gradient(source, gradient, weight.shape, *numbers),
        )

    block = Block(jax.make_jaxpr(products)(source, weight, gradient))
    names = [equation.name for equation, _, _ in block.needed()]
    assert names.count("conv_general_dilated") == (3 if is_of_all else 0)
    assert not {"cond", "platform_index"} & {*names}
    assert_as_xla(products, source, weight, gradient)


def test_branches_for_other_platforms():
    def program(x):
        return lax.platform_dependent(x, cuda=lax.sin, rocm=lax.cos)

    with pytest.raises(NotOnHostError):
        Block(jax.make_jaxpr(program)(1.0))


def drawn_convolution(seed):
    """A convolution of random parameters, and operands of it; None if there is none."""
    choices = random.Random(seed)
    rank = choices.choice([0, 1, 1, 2, 2, 2, 3])
    groups, batches = choices.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)])
    extents = [choices.randint(1, 9) for _ in range(rank)]
    window = [choices.choice([1, 2, 3, choices.randint(1, 9)]) for _ in range(rank)]
    steps, *dilations = ([choices.choice([1, 1, 2, 3]) for _ in range(rank)] for _ in range(3))
    padding = [(choices.randint(-2, 4), choices.randint(-2, 4)) for _ in range(rank)]
    channels, features, batch = (choices.randint(1, 5) for _ in range(3))
    first, last = [*range(rank + 2)], [0, rank + 1, *range(1, rank + 1)]
    specs = [
        tuple(choices.choice([first, last, choices.sample(first, rank + 2)])) for _ in range(3)
    ]
    shapes = (
        [batch * batches, channels * groups, *extents],
        [features * groups * batches, channels, *window],
    )
    generator = numpy.random.default_rng(seed)
    arrays = []
    for sizes, spec in zip(shapes, specs, strict=False):
        shape = numpy.empty(rank + 2, int)
        shape[[*spec]] = sizes
        arrays.append(drawn(generator, shape, "float32"))
    numbers = lax.ConvDimensionNumbers(*specs)
    options = steps, padding, *dilations, numbers, groups, batches

    def convolve(source, weight):
        return lax.conv_general_dilated(source, weight, *options)

    spans = zip(extents, padding, dilations[0], strict=True)
    is_cropped = any(
        (min(sides) < 0 and sum(sides) + (extent - 1) * dilation + 1 <= 0) or -min(sides) > extent
        for extent, sides, dilation in spans
    )
    return None if is_cropped else (convolve, arrays)


SEEDS = [seed for seed in range(70) if drawn_convolution(seed)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_convolutions(seed):
    convolve, arrays = drawn_convolution(seed)
    assert_as_xla(convolve, *arrays)
