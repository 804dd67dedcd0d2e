"""Blocks as plain data, and templates of such data (core/host/stored.py and template.py)."""

import copy
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxgrad.core import jax_internals, premises
from jaxgrad.core.host import extents, stored, template
from jaxgrad.core.host.block import Block
from jaxgrad.core.host.stored import NotStoredError

TRAITS = {"equations": 3, "heeds_settings": False}


def through_text(record):
    return template.Template(json.loads(json.dumps(record)))


def recorded(function, *shapes):
    """The template of a function of float32 arrays, whose extents above 1 are symbols."""
    pattern, numbers = template.pattern_of(shapes)
    shapes = template.with_extents(pattern, template.symbols(len(numbers)))
    structs = [jax.ShapeDtypeStruct(s, "float32") for s in shapes]
    block = Block(jax.make_jaxpr(function)(*structs))
    return through_text([TRAITS, [], stored.data_of(block)]), numbers


def rows_before(x):
    """Rows of a window, by a loop and a choice."""
    body = lambda i, total: total + lax.dynamic_slice_in_dim(x, i, 1)  # noqa: E731
    total = lax.fori_loop(0, x.shape[0], body, jnp.zeros_like(x[:1]))
    return lax.cond(total[0, 0] > 0, lambda: total, lambda: -total)


FUNCTIONS = {
    "dot": (lambda x, y: jnp.tanh(x @ y) * 2.5, (3, 5), (5, 4)),
    "gather": (lambda x: x[jnp.array([0, 1, 1])] + jnp.float32(np.inf), (3, 5)),
    "scatter": (lambda x, y: x.at[jnp.array([1])].add(y[:1]), (3, 5), (4, 5)),
    "softmax": (lambda x: jax.nn.softmax(x, -1).astype(jnp.bfloat16), (3, 5)),
    "loop and choice": (rows_before, (3, 5)),
    "extents": (lambda x: x.reshape(-1) / x.size + jnp.arange(x.shape[0] * x.shape[1]), (3, 5)),
    "sort": (lambda x: lax.sort((x, -x), num_keys=1), (3, 5)),
    "fft": (lambda x: jnp.fft.fft(x).real, (3, 5)),
    "scan": (lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x), (3, 5)),
    "no symbol": (lambda x: x * 2, (1,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_template_read_from_text_computes_what_xla_does_for_other_extents(name):
    function, *shapes = FUNCTIONS[name]
    stored_template, _ = recorded(function, *shapes)
    for add in (0, 3):
        grown = [tuple([n + add if n > 1 else n for n in shape]) for shape in shapes]
        _, numbers = template.pattern_of(grown)
        random = np.random.default_rng(add)
        arrays = [random.standard_normal(shape).astype(np.float32) for shape in grown]
        results = stored_template(numbers).function(*arrays)
        expected = jax.tree.leaves(jax.jit(function)(*arrays))
        for result, wanted in zip(results, expected, strict=True):
            result = np.asarray(result)
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(
                result.astype(np.float32), np.asarray(wanted, np.float32), rtol=1e-2, atol=1e-5
            )


PARAMETERS = [
    None,
    True,
    3,
    -1,
    "text",
    (1, (2, None)),
    [1, 2],
    np.dtype("float32"),
    jnp.dtype("bfloat16"),
    lax.Precision.HIGHEST,
    lax.GatherScatterMode.CLIP,
    lax.FftType.RFFT,
    lax.ConvDimensionNumbers((0, 1), (1, 0), (0, 1)),
    lax.GatherDimensionNumbers((0,), (1,), (0,), (), ()),
    (lax.Precision.DEFAULT, lax.Precision.HIGHEST),
    lax.RandomAlgorithm.RNG_DEFAULT,
]


@pytest.mark.parametrize("parameter", PARAMETERS, ids=repr)
def test_a_parameter_comes_back_as_it_was(parameter):
    result = stored.param(json.loads(json.dumps(stored.plain(parameter))))
    assert result == parameter and type(result) is type(parameter)


@pytest.mark.parametrize(
    "number", [0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45, 2j, complex(0, -0.0)]
)
def test_a_number_comes_back_to_the_bit(number):
    result = stored.param(json.loads(json.dumps(stored.plain(number))))
    assert type(result) is type(number)
    assert np.asarray(result).tobytes() == np.asarray(number).tobytes()


@pytest.mark.parametrize("dtype", sorted(stored.DTYPES))
def test_an_array_comes_back_to_the_bit(dtype):
    array = np.arange(6).reshape(2, 3).astype(stored.DTYPES[dtype])
    result = stored.param(json.loads(json.dumps(stored.plain(array))))
    assert (result.shape, result.dtype) == (array.shape, array.dtype)
    assert result.tobytes() == array.tobytes() and not result.flags.writeable


@pytest.mark.parametrize(
    "parameter",
    [
        len,
        object(),
        {1},
        np.array([None]),
        b"code",
        np.zeros(1 << 14),
        lax.add_p,
        jnp.dtype("int4"),
    ],
    ids=lambda parameter: type(parameter).__name__,
)
def test_what_is_not_plain_is_not_stored(parameter):
    with pytest.raises(NotStoredError):
        stored.plain(parameter)


# ---- extents

FORMULAS = [
    (lambda a, b: a * b - 2 * a, 7 * 3 - 14),
    (lambda a, b: (a - 1) // 2 + 1, 4),
    (lambda a, b: a % 4 - b, 0),
    (lambda a, b: a**2 * b, 147),
    (lambda a, b: -a, -7),
    (lambda a, b: (a + b) // (b + 1), 2),
    (lambda a, b: jax.numpy.broadcast_shapes((a,), (1,))[0], 7),
]


@pytest.mark.parametrize("position", range(len(FORMULAS)))
def test_an_extent_has_the_value_of_its_formula(position):
    formula, expected = FORMULAS[position]
    tree = extents.tree_of(formula(*template.symbols(2)))
    assert extents.value(json.loads(json.dumps(tree)), (7, 3)) == expected


def test_an_extent_may_be_the_greater_of_two():
    (a,) = template.symbols(1)
    jaxpr = jax.make_jaxpr(lambda x: lax.pad(x, 0.0, [(0, -3, 0)]))(jnp.zeros(5))
    assert jaxpr.out_avals[0].shape == (2,)
    tree = extents.tree_of(jax.export.symbolic_shape("max(n - 3, 0)")[0] * 0 + a)
    assert extents.value(["max", ["-", tree, 3], 0], (2,)) == 0


def deep(depth):
    tree = "d0"
    for _ in range(depth):
        tree = ["+", tree, 1]
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        "d16",
        "x",
        "__import__",
        1.5,
        None,
        True,
        ["+", "d0"],
        ["+", "d0", 1, 1],
        ["/", "d0", 2],
        ["**", "d0", "d1"],
        ["**", "d0", 9],
        ["**", "d0", -1],
        ["**", ["**", 9, 8], 99],
        2**63,
        ["exec", "d0", "d1"],
        {"+": 1},
        deep(200),
        [["+"], "d0", 1],
        [],
    ],
    ids=lambda tree: str(tree)[:30],
)
def test_what_is_no_extent_is_refused(tree):
    with pytest.raises(ValueError, match="no extent"):
        extents.checked(tree)


def test_a_huge_extent_is_refused_before_it_takes_memory():
    tree = ["**", "d0", 8]
    with pytest.raises(ValueError, match="no extent"):
        extents.value(["**", tree, 8], (2**40,))


@pytest.mark.parametrize(
    "text", ["f(d0)", "d0.real", "d0 if d1 else 2", "d0[0]", "lambda: 1", "(d0)(1)"]
)
def test_text_that_is_no_extent_is_not_taken_over(text):
    class Extent:
        def __str__(self):
            return text

    with pytest.raises(ValueError, match="no extent"):
        extents.tree_of(Extent())


def test_the_body_of_a_loop_is_made_anew_where_one_of_its_extents_is_another():
    stored_template, _ = recorded(
        lambda x: lax.scan(lambda c, row: (c + row.sum() * row, c), x[0], x), (3, 5)
    )
    bodies = []
    for numbers in ((3, 5), (9, 5), (9, 4), (3, 5)):
        block = stored_template(numbers)
        x = np.random.default_rng(0).standard_normal(numbers).astype("float32")
        expected = jax.jit(lambda x: lax.scan(lambda c, row: (c + row.sum() * row, c), x[0], x))(x)
        for result, wanted in zip(block.function(x), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
        (scan,) = [part for part, *_ in block.equations if part.name == "scan"]
        bodies.append(scan.params["jaxpr"])
    assert bodies[0] is bodies[1] is not bodies[2] and bodies[2] is not bodies[3]


# ---- data that somebody else has written


@pytest.fixture
def record():
    def function(x, y):
        return jnp.where(x > 0, jnp.tanh(x @ y), jnp.float32(2))

    shapes = template.with_extents(((-1, -1), (-1, -1)), template.symbols(1))
    block = Block(jax.make_jaxpr(function)(*[jax.ShapeDtypeStruct(s, "float32") for s in shapes]))
    return json.loads(json.dumps([TRAITS, [["!=", "d0", 9]], stored.data_of(block)]))


def at(record, path, change):
    """The record with a change at a path of positions and names."""
    record = copy.deepcopy(record)
    *path, last = path
    part = record
    for key in path:
        part = part[key]
    part[last] = change(part[last]) if callable(change) else change
    return record


BLOCK = 2
INPUTS, CONSTANTS, EQUATIONS, RESULTS = range(4)

HOSTILE = {
    "a record of another length": ((), lambda record: record[:2]),
    "traits that are no dict": ((0,), []),
    "conditions that are no list": ((1,), {}),
    "a condition that is none": ((1, 0), "import os"),
    "a condition of an unknown comparison": ((1, 0, 0), "is"),
    "a condition of no extent": ((1, 0, 2), "import os"),
    "a condition of one extent": ((1, 0), lambda condition: condition[:2]),
    "a block of three parts": ((BLOCK,), lambda block: block[:3]),
    "an input of an unknown dtype": ((BLOCK, INPUTS, 0, 0), "object"),
    "an input whose dtype is a list": ((BLOCK, INPUTS, 0), [[]]),
    "an input with a negative extent": ((BLOCK, INPUTS, 0, 1), -1),
    "an input of a fraction": ((BLOCK, INPUTS, 0, 1), 1.5),
    "an equation with an argument less": ((BLOCK, EQUATIONS, 0), lambda parts: parts[:3]),
    "an equation whose name is no text": ((BLOCK, EQUATIONS, 0, 0), 3),
    "an operand that comes later": ((BLOCK, EQUATIONS, 0, 2, 0), 10**6),
    "an operand before all": ((BLOCK, EQUATIONS, 0, 2, 0), -1),
    "an operand that is true": ((BLOCK, EQUATIONS, 0, 2, 0), True),
    "a result that there is not": ((BLOCK, RESULTS, 0), 999),
    "a parameter of an unknown kind": ((BLOCK, EQUATIONS, 0, 1, "x"), {"eval": "1"}),
    "a parameter of two kinds": ((BLOCK, EQUATIONS, 0, 1, "x"), {"float": "1", "list": []}),
    "a type that is not of the list": ((BLOCK, EQUATIONS, 0, 1, "x"), {"named": ["Token", 1]}),
    "a type with fields too many": (
        (BLOCK, EQUATIONS, 0, 1, "x"),
        {"named": ["ConvDimensionNumbers", 1, 2, 3, 4]},
    ),
    "an unknown choice": ((BLOCK, EQUATIONS, 0, 1, "x"), {"choice": ["Precision", "mro"]}),
    "a number that is none": ((BLOCK, EQUATIONS, 0, 1, "x"), {"float": "one"}),
    "an array with bytes too few": (
        (BLOCK, EQUATIONS, 0, 1, "x"),
        {"array": ["float32", [2], "AAAAAA=="]},
    ),
    "an array of a huge shape": (
        (BLOCK, EQUATIONS, 0, 1, "x"),
        {"array": ["float32", [2**40], "AAAAAA=="]},
    ),
    "an array that is not in base64": (
        (BLOCK, EQUATIONS, 0, 1, "x"),
        {"array": ["float32", [1], "!!!!"]},
    ),
    "a constant that is no array": ((BLOCK, CONSTANTS), [{"block": []}]),
}


def test_the_record_that_is_damaged_below_is_right(record):
    block = template.Template(record)((3,))
    x = np.ones((3, 3), np.float32)
    np.testing.assert_allclose(block.function(x, x)[0], np.tanh(x * 3), rtol=1e-6)


@pytest.mark.parametrize("name", HOSTILE)
def test_data_of_no_template_is_refused(record, name):
    path, change = HOSTILE[name]
    damaged = at(record, path, change) if path else change(record)
    with pytest.raises(ValueError):
        template.Template(damaged)((3,))


def test_data_that_is_nested_too_deeply_is_refused(record):
    value = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(NotStoredError, match="nested too deeply"):
        template.Template(at(record, (BLOCK, EQUATIONS, 0, 1, "x"), value))((3,))


def test_a_condition_excludes_extents(record):
    stored_template = template.Template(record)
    assert stored_template((9,)) is None and stored_template((8,)) is not None


@pytest.mark.parametrize(
    ("condition", "served"),
    [
        (["!=", "d0", 9], {8, 10, 12}),
        ([">=", "d0", 9], {9, 10, 12}),
        (["==", "d0", 9], {9}),
        ([">=", 9, "d0"], {8, 9}),
        (["==", ["%", "d0", 4], 0], {8, 12}),
        (["!=", ["//", "d0", 2], 4], {10, 12}),
    ],
)
def test_a_template_serves_the_extents_of_which_its_conditions_hold(record, condition, served):
    stored_template = template.Template(at(record, (1, 0), condition))
    assert {extent for extent in (8, 9, 10, 12) if stored_template((extent,)) is not None} == served


# ---- tests of equality


def test_a_test_of_equality_of_an_extent_becomes_a_condition():
    pairs = []
    (shape,) = template.with_extents(((-1, -2),), template.symbols(2))
    with jax_internals.watched_trace(pairs):
        jax.eval_shape(
            lambda x: x if x.shape[0] % 2 == 0 or x.shape[1] in (3, 5) else x.sum(),
            jax.ShapeDtypeStruct(shape, "float32"),
        )
    assert premises.conditions_of(pairs) == [
        ["!=", ["%", "d0", 2], 0],
        ["!=", "d1", 3],
        ["!=", "d1", 5],
    ]
