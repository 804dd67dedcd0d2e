"""Strides against PyTorch's, as tests/oracle/record_layouts.py recorded them."""

import itertools

import pytest
from helpers.answers import beside, load

from jaxgrad import ops
from jaxgrad.core import strides as layouts

RECORDED = load(beside(__file__))


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


LAYOUTS = tuples(RECORDED["layouts"])


def offsets_of(shape, strides):
    """The offsets of all places, by enumeration."""
    places = itertools.product(*map(range, shape))
    return [sum(map(int.__mul__, place, strides)) for place in places]


def share(shape, strides):
    """Whether two places are one element, by enumeration."""
    offsets = offsets_of(shape, strides)
    return len({*offsets}) < len(offsets)


@pytest.mark.parametrize("name", RECORDED["views"])
def test_strides_of_views(name):
    view = layouts.VIEWS[ops.library.canonical(name)]
    for layout, arguments, answer in tuples(RECORDED["views"][name]):
        is_dense = layouts.is_contiguous(*LAYOUTS[layout])
        if name == "as_strided" and not is_dense:
            continue  # it takes strides of the elements in order: see the next test
        assert view(*LAYOUTS[layout], *arguments) == answer, (LAYOUTS[layout], arguments)


def test_strides_in_memory_with_gaps():
    for layout, arguments, (strides, offset) in tuples(RECORDED["views"]["as_strided"]):
        if share(*LAYOUTS[layout]):
            continue  # elements at one place are not in an order
        dims = sorted(zip(*LAYOUTS[layout], strict=True), key=lambda dim: -dim[1])
        shown = tuple(zip(*dims, strict=True)) or ((), ())
        place = layouts.in_order(*shown, arguments[0], strides, offset)
        reached = {offset + step for step in offsets_of(arguments[0], strides)}
        assert (place is not None) == reached.issubset(offsets_of(*shown)), (shown, arguments)
        if place is not None:
            assert layouts.VIEWS["as_strided"](*shown, arguments[0], *place) == (strides, offset)


def test_every_view_is_recorded():
    recorded = map(ops.library.canonical, RECORDED["views"])
    # PyTorch has no operator for the parts of complex32
    assert {*recorded, "_rounded_view"} == layouts.VIEWS.keys()


def test_strides_of_pointwise_results():
    for operands, shape, strides in tuples(RECORDED["pointwise"]):
        operand_layouts = [LAYOUTS[operand] for operand in operands]
        assert layouts.pointwise(shape, operand_layouts) == strides, operand_layouts


def test_strides_of_new_tensors():
    for shape, strides, last in tuples(RECORDED["new"]):
        assert layouts.contiguous(shape) == strides
        assert last is None or layouts.channels_last(shape) == last


@pytest.mark.parametrize(("layout", "answers"), [*zip(LAYOUTS, RECORDED["facts"], strict=True)])
def test_contiguity_density_and_copies_of_layouts(layout, answers):
    contiguous, last, dense, copied = answers
    assert layouts.is_contiguous(*layout) == contiguous
    assert layouts.is_channels_last(*layout) == last
    assert layouts.is_dense(*layout) == dense
    assert layouts.like(*layout) == tuple(copied)
    assert layouts.overlaps(*layout) == share(*layout)


def test_overlaps_of_small_layouts():
    shapes = [(), (1,), (4,), (0, 3), (2, 3), (3, 3), (4, 2), (2, 3, 2), (3, 1, 4), (2, 2, 2, 3)]
    strides = (0, 1, 2, 3, 5, 6)
    for shape in shapes:
        for chosen in itertools.product(strides, repeat=len(shape)):
            assert layouts.overlaps(shape, chosen) == share(shape, chosen), (shape, chosen)


@pytest.mark.parametrize(
    ("shape", "strides", "answer"),
    [
        ((10**6, 10**6), (10**6, 1), False),  # dense
        ((10**6, 10**5), (10**6, 10), False),  # every tenth column
        ((10**6, 10**6), (1, 10**6), False),  # transposed
        ((6247, 400), (160, 1), True),  # an unfolded signal
        ((2500, 400), (400, 1), False),  # one unfolded without overlap
        (
            (10**3, 10**3),
            (10**3 + 1, 10**3),
            False,
        ),  # a shared place needs 1001 steps of 1000: too many
        ((1001, 1002), (1001, 1000), True),
        ((32, 3, 3, 222, 222), (150528, 1, 672, 3, 672), True),  # windows of images
        ((10**6, 10**6, 10**6), (10**6 + 3, 10**6 + 1, 10**6), True),  # the search gives up
    ],
)
def test_overlaps_of_large_layouts(shape, strides, answer):
    assert layouts.overlaps(shape, strides) is answer
