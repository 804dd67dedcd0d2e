"""What is taken to hold of symbols while a template is traced (core/premises.py)."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import checks
from jax import lax

from jaxgrad.core import dtypes, templates
from jaxgrad.core.aval import make_aval
from jaxgrad.core.host import template
from jaxgrad.core.premises import Premises


class Program:
    """Stands for the program of a function of float32 arrays, as far as a template needs it."""

    wide = False

    def __init__(self, function, shapes):
        self.TRAITS = {}
        self.function = function
        self.inputs = tuple([make_aval(shape, dtypes.float32) for shape in shapes])

    @property
    def outputs(self):
        return jax.eval_shape(self.function, *map(struct_of, self.inputs))

    def trace_for_host(self, *structs):
        return jax.make_jaxpr(self.function)(*structs)


def struct_of(aval):
    return jax.ShapeDtypeStruct(aval.shape, "float32")


def pattern_for(function, shapes):
    """The pattern of a function at the shapes of a pattern."""
    count = max(-extent for shape in shapes for extent in shape)

    def program_for(extents, _premises=None):
        return Program(function, template.with_extents(shapes, extents))

    return templates.Pattern(None, count, program_for)


def block_of(pattern, extents):
    """The block that a pattern has for extents; None without one."""
    ready = pattern.ready(pattern.program_for(extents), extents)
    return None if ready is None else ready[0]


def assert_is_right(pattern, block, extents):
    """Whether a block computes what XLA does."""
    program = pattern.program_for(extents)
    random = np.random.default_rng(0)
    operands = [random.standard_normal(aval.shape).astype("float32") for aval in program.inputs]
    expected = jax.jit(program.function)(*operands)
    for result, wanted in zip(block.function(*operands), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
        checks.count("templates with conditions")


def repeated(x):
    for _ in range(int(x.shape[1])):
        x = jnp.sin(x) + 1
    return [x]


def factor(is_special):
    return lambda x, *others: [x * 2 if is_special(x, *others) else x * 3]


A, B, C = -1, -2, -3
# a function, its shapes, and extents, of which templates serve those of a row alike
CASES = {
    "size": (factor(lambda x: x.shape[0] > 7), [(A,)], [[(8,), (9,), (20,)], [(7,), (6,), (2,)]]),
    "order": (
        factor(lambda x: x.shape[0] + 2 <= x.shape[1]),
        [(A, B)],
        [[(3, 5), (3, 9), (2, 4)], [(3, 4), (9, 5), (4, 3)]],
    ),
    "two sizes": (
        factor(lambda x: 4 < x.shape[0] < 9),
        [(A,)],
        [[(5,), (6,), (8,)], [(9,), (30,)], [(4,), (2,)]],
    ),
    "equality": (
        factor(lambda x: x.shape[0] == 5),
        [(A, B)],
        [[(5, 7), (5, 3)], [(6, 7), (3, 4), (4, 5)]],
    ),
    "remainder": (
        factor(lambda x: x.shape[0] % 3 == 0),
        [(A,)],
        [[(6,), (9,), (3,)], [(5,), (7,), (10,)]],
    ),
    "multiple": (
        factor(lambda x, w: w.shape[0] == 4 * x.shape[0]),
        [(A, B), (C, B)],
        [[(5, 3, 20), (7, 2, 28)], [(6, 3, 20), (7, 5, 4)]],
    ),
    "sum": (
        lambda x, y, z: [jnp.concatenate([x, y]) + z],
        [(A,), (B,), (C,)],
        [[(3, 4, 7), (5, 2, 7), (9, 11, 20)]],
    ),
    "number": (repeated, [(A, B)], [[(5, 3), (9, 3), (2, 3)], [(5, 4), (3, 4)]]),
    "quotient": (
        factor(lambda x: x.shape[1] // 4 * 4 == x.shape[1]),
        [(A, B)],
        [[(3, 8), (7, 12), (9, 4)], [(3, 9), (7, 10)]],
    ),
    "convolution": (
        lambda x, w: [lax.conv_general_dilated(x, w, (2,), [(1, 1)])],
        [(3, A, B), (4, A, C)],
        [[(2, 9, 3), (5, 8, 3)], [(2, 9, 4), (7, 30, 4)]],
    ),
}


def joined(lists):
    return [*itertools.chain.from_iterable(lists)]


@pytest.mark.parametrize("name", CASES)
def test_a_template_is_used_where_its_conditions_hold_and_nowhere_else(monkeypatch, name):
    """In any order, also the extents of other rows in turns."""
    function, shapes, rows = CASES[name]
    turns = [[row[k] for row in rows if k < len(row)] for k in range(max(map(len, rows)))]
    for order in (joined(rows), joined(turns), joined(rows)[::-1]):
        monkeypatch.setattr(templates, "CALLS", 0)
        pattern = pattern_for(function, shapes)
        for extents in order:
            block = block_of(pattern, extents)
            assert block is not None
            assert_is_right(pattern, block, extents)
        monkeypatch.setattr(templates, "CALLS", 10**6)
        for extents in order:
            serving = [candidate for candidate in pattern.templates if candidate.serves(extents)]
            assert serving
            for candidate in serving:
                assert_is_right(pattern, candidate(extents), extents)


@pytest.mark.parametrize("name", CASES)
def test_extents_of_which_a_condition_does_not_hold_get_no_block(monkeypatch, name):
    """One template alone serves the first row, and what it serves of the others it computes."""
    function, shapes, rows = CASES[name]
    monkeypatch.setattr(templates, "CALLS", 0)
    monkeypatch.setattr(templates, "TEMPLATES", 1)
    pattern = pattern_for(function, shapes)
    assert block_of(pattern, rows[0][0]) is not None
    for extents in joined(rows):
        block = block_of(pattern, extents)
        if block is not None:
            assert_is_right(pattern, block, extents)
    assert len(pattern.templates) == 1


def test_extents_are_excluded_that_a_comparison_decides_otherwise(monkeypatch):
    function, shapes, (greater, smaller) = CASES["size"]
    monkeypatch.setattr(templates, "CALLS", 0)
    monkeypatch.setattr(templates, "TEMPLATES", 1)
    pattern = pattern_for(function, shapes)
    assert all(block_of(pattern, extents) is not None for extents in greater)
    assert all(block_of(pattern, extents) is None for extents in smaller)


def test_a_pattern_has_so_many_templates_and_no_more(monkeypatch):
    monkeypatch.setattr(templates, "CALLS", 0)
    pattern = pattern_for(repeated, [(A, B)])
    blocks = [block_of(pattern, (9, count)) for count in range(2, 8)]
    assert [block is not None for block in blocks] == [True] * 4 + [False] * 2
    assert len(pattern.templates) == templates.TEMPLATES == 4


class Refused(Exception):
    """Stands for any error of a formula that wants a number."""


def scaled(message):
    def function(x):
        extent = x.shape[1]
        if not isinstance(extent, int):
            raise Refused(message.format(extent))
        return [x * extent]

    return function


@pytest.mark.parametrize("message", ["a number is wanted", "a number and not {}"])
def test_extents_that_have_been_the_same_may_be_numbers(monkeypatch, message):
    monkeypatch.setattr(templates, "CALLS", 2)
    pattern = pattern_for(scaled(message), [(A, B)])
    blocks = [block_of(pattern, extents) for extents in ((9, 3), (8, 3), (7, 3), (5, 3), (5, 4))]
    assert [block is not None for block in blocks] == [False, False, True, True, False]
    assert_is_right(pattern, blocks[3], (5, 3))


def test_an_error_that_names_no_extent_ends_it_where_all_have_differed(monkeypatch):
    monkeypatch.setattr(templates, "CALLS", 2)
    pattern = pattern_for(scaled("a number is wanted"), [(A, B)])
    calls = (9, 3), (8, 4), (7, 5), (5, 3)
    assert not any(block_of(pattern, extents) for extents in calls) and not pattern.is_open


@pytest.mark.parametrize(
    "is_special", [lambda x: not x.shape[0] % 2, lambda x: not x.shape[0] // 9]
)
def test_a_symbol_as_a_truth_value_makes_no_template(monkeypatch, is_special):
    """A symbol is always true, and nothing tells that it was asked."""
    monkeypatch.setattr(templates, "CALLS", 0)
    pattern = pattern_for(factor(is_special), [(A,)])
    for extent in (8, 9, 7):
        block = block_of(pattern, (extent,))
        if block is not None:
            assert_is_right(pattern, block, (extent,))
    assert not pattern.templates


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ([("d1", "==", "4*d0")], ["d0", "4*d0"]),
        ([("d0", "==", "3")], ["3", "d1"]),
        ([("d0", "==", "3"), ("d1", "==", "4*d0")], ["3", "12"]),
        ([("d0", ">=", "d1 + 2"), ("d1", "==", "3")], ["d0", "3"]),
    ],
)
def test_symbols_are_what_constraints_say(constraints, expected):
    assert [*map(str, Premises(2, constraints).symbols)] == expected
