"""Recorded answers: the text says all that was recorded, and no damage to one goes unnoticed."""

import json
import textwrap
import warnings

import hypothesis
import pytest
from hypothesis import strategies

import jaxgrad
from helpers import answers
from helpers.as_torch import as_torch, described, error, leaf, warned

NUMBERS = strategies.floats()
COMPLEX = strategies.builds(complex, NUMBERS, NUMBERS).map(described)
WORDS = strategies.text(max_size=200)
ERRORS = strategies.builds(
    lambda kind, says: {"error": kind.__name__, "says": says},
    strategies.sampled_from([RuntimeError, UserWarning]),
    WORDS,
)
SCALARS = strategies.one_of(
    strategies.none(), strategies.booleans(), strategies.integers(), NUMBERS, COMPLEX, WORDS
)


@strategies.composite
def tensors(draw):
    """Tensors as `described` has them."""
    shape = draw(strategies.lists(strategies.integers(0, 3), max_size=3))
    told = {"dtype": None, "shape": shape, "requires_grad": draw(strategies.booleans())}
    if draw(strategies.booleans()):
        dtype = draw(strategies.sampled_from(["torch.float32", "torch.int8"]))
        return told | {"dtype": dtype, "strides": draw(strategies.lists(strategies.integers(0)))}
    values = draw(strategies.sampled_from([NUMBERS, COMPLEX, strategies.integers()]))
    for extent in reversed(shape):
        values = strategies.lists(values, min_size=extent, max_size=extent)
    dtypes = ["torch.float32", "torch.float64", "torch.complex64", "torch.int64", "torch.bool"]
    return told | {"dtype": draw(strategies.sampled_from(dtypes)), "values": draw(values)}


def containers(items):
    keys = strategies.one_of(WORDS, strategies.sampled_from(["x", "if", "weight"]))
    calls = strategies.fixed_dictionaries(
        {"warnings": strategies.lists(ERRORS, max_size=2), "result": items}
    )
    return strategies.one_of(
        strategies.lists(items, max_size=4), strategies.dictionaries(keys, items, max_size=4), calls
    )


VALUES = strategies.recursive(
    strategies.one_of(SCALARS, tensors(), ERRORS, strategies.just(answers.NO_ERROR)), containers
)


@pytest.mark.slow
@hypothesis.given(VALUES)
def test_a_text_says_all_of_an_answer(value):
    text = "".join(f"    {line}\n" for line in answers.as_text(value))
    assert repr(answers.read(text)) == repr(value)


@pytest.mark.slow
@hypothesis.settings(max_examples=40)
@hypothesis.given(strategies.dictionaries(WORDS, VALUES, min_size=1))
def test_a_table_says_all_of_its_entries(table):
    assert repr(json.loads(answers.as_json(table))) == repr(json.loads(json.dumps(table)))


def test_a_text_is_as_pytorch_prints():
    with jaxgrad.no_grad():
        row = jaxgrad.tensor([[1.0, 2.0]], dtype=jaxgrad.float64)
    value = [jaxgrad.tensor(6.0, requires_grad=True), row, {"z": 1 - 2j}, None]
    assert answers.as_text(described(value)) == [
        "tensor(6.0, requires_grad=True)",
        "tensor([[1.0, 2.0]], dtype=float64)",
        "{'z': 1.0-2.0j}",
        "None",
    ]


@pytest.mark.parametrize(
    "text", ["", "tensor", "f(1, 2)", "x = y = 1", "1\nx = 2", "[1 for _ in x]", "1 < 2"]
)
def test_a_text_that_is_no_answer_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        answers.read(text)


# damages: the test of this body passes with PyTorch's answer, and fails with each other text

ANSWER = """
    tensor([2.0, 4.0], dtype=float64, requires_grad=True)
    [1.0-2.0j, 3, True, None, nan, 'word']
    RuntimeError('grad can be implicitly created only for scalar outputs')
    no_error
    warned([UserWarning('a warning')], 'result')
    {'a': 1.5, 'b': tensor([[1, 2], [3, 4]])}
    tensor(shape=[2, 3], strides=[3, 1], dtype=float32, device='meta')
    tensor(1.0)
"""


def warn():
    warnings.warn("a warning", stacklevel=1)
    return "result"


def body(torch):
    x = leaf(torch, 1.0, 2.0, dtype=torch.float64)
    return (
        x * 2,
        [1 - 2j, 3, True, None, float("nan"), "word"],
        error((x * 2).backward),
        error(abs, 1),
        warned(warn),
        {"a": 1.5, "b": torch.tensor([[1, 2], [3, 4]])},
        torch.zeros(2, 3, device="meta"),
        torch.tensor(1.0),
    )


def test_the_answer_of_the_body():
    as_torch(ANSWER)(body)()


@pytest.mark.parametrize(
    ("part", "damaged"),
    [
        ("[2.0, 4.0]", "[2.0, 4.0000000000001]"),
        ("[2.0, 4.0]", "[2.0]"),
        ("[2.0, 4.0]", "[[2.0, 4.0]]"),
        ("[2.0, 4.0]", "[2, 4]"),
        ("dtype=float64", "dtype=float16"),
        (", requires_grad=True", ""),
        ("1.0-2.0j", "1.0+2.0j"),
        ("1.0-2.0j", "1.0"),
        (" 3,", " 3.0,"),
        ("True, None", "False, None"),
        ("None, ", ""),
        ("nan", "0.0"),
        ("'word'", "'words'"),
        ("RuntimeError", "ValueError"),
        ("only for", "for"),
        ("RuntimeError('grad can be implicitly created only for scalar outputs')", "no_error"),
        ("no_error", "TypeError('bad operand')"),
        ("[UserWarning('a warning')]", "[]"),
        ("UserWarning", "FutureWarning"),
        ("a warning", "another warning"),
        ("'result'", "None"),
        ("'a': 1.5, ", ""),
        ("'a'", "'c'"),
        ("{'a'", "{'c': 1, 'a'"),
        ("tensor([[1, 2], [3, 4]])", "tensor([[1, 2], [3, 5]])"),
        ("tensor([[1, 2], [3, 4]])", "[[1, 2], [3, 4]]"),
        ("shape=[2, 3]", "shape=[3, 2]"),
        ("strides=[3, 1]", "strides=[1, 2]"),
        ("dtype=float32", "dtype=float64"),
        ("tensor(1.0)\n", "tensor(1.0)\n    1\n"),
        ("    tensor(1.0)\n", ""),
        ("tensor(1.0)", "tensor(1.00001)"),
        ("tensor(1.0)", "tensor([1.0])"),
        ("tensor(1.0)", "1.0"),
    ],
)
def test_a_damaged_answer_is_noticed(part, damaged):
    assert part in ANSWER
    with pytest.raises(AssertionError):
        as_torch(ANSWER.replace(part, damaged, 1))(body)()


def test_an_answer_that_is_not_recorded_names_the_command():
    with pytest.raises(LookupError, match="body is not recorded: run make record PARTS=autograd"):
        as_torch(body)()


# recording anew


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (1.0, 1.0 + 1e-12, 1.0),
        (1.0, 1.0 + 1e-9, 1.0 + 1e-9),
        (0.0, 1e-13, 0.0),
        ([1.0, 2.0], [1.0 + 1e-12, 3.0], [1.0, 3.0]),
        ([1.0], [1.0 + 1e-12, 3.0], [1.0 + 1e-12, 3.0]),
        ({"a": 1.0, "b": 2.0}, {"a": 1.0 + 1e-12}, {"a": 1.0}),
        (1.0, 1, 1),
        ("at 0x7f9664938a90", "at 0x7fef94feb010", "at 0x7f9664938a90"),
        ("at 0x7f9664938a90", "on 0x7fef94feb010", "on 0x7fef94feb010"),
        (None, 1.5, 1.5),
    ],
)
def test_digits_stay_where_only_rounding_differs(old, new, kept):
    assert repr(answers.kept(old, new, 1e-10, 1e-12)) == repr(kept)


def test_a_tensor_keeps_digits_to_the_precision_of_its_dtype():
    old, new = ({"dtype": "torch.float32", "values": [x]} for x in (1.0, 1.0 + 1e-7))
    assert answers.kept(old, new, 1e-14) == old
    assert answers.kept(old, new | {"dtype": "torch.float64"}, 1e-14)["values"] == [1.0 + 1e-7]


def test_texts_in_a_file(tmp_path):
    path = tmp_path / "test_x.answers.txt"
    texts = {"test_a": "    1.0\n    {'b:': 2}\n", "test_b": "    None\n"}
    answers.save_sections(path, texts)
    sections = answers.sections(path)
    assert {name: answers.read(text) for name, text in sections.items()} == {
        "test_a": [1.0, {"b:": 2}],
        "test_b": None,
    }
    answers.save_sections(path, {})
    assert not path.exists()


@pytest.mark.slow
def test_every_table_is_as_it_would_be_written():
    for path in answers.TESTS.rglob("*.answers.json"):
        assert answers.as_json(answers.load(path)) == path.read_text(), path.name


@pytest.mark.slow
def test_every_long_answer_is_as_it_would_be_written():
    for path in answers.TESTS.rglob("*.answers.txt"):
        for name, text in answers.sections(path).items():
            lines = answers.as_text(answers.read(text), answers.WIDTH - 4)
            assert textwrap.dedent(text).splitlines() == lines + [""] * text.endswith("\n\n"), name
