"""The key `arguments:` of an entry: what its arguments and results are."""

import pytest

import jaxgrad
from jaxgrad import ops
from jaxgrad.table import TableError, loads

ENTRY = "- name: op(Tensor self) -> Tensor\n  forward: self\n  self: grad\n"
SCALED = ENTRY.replace("(Tensor self)", ".Scaled(Tensor self, Scalar scale)")
KNOWN = "the arguments are self; returns is the result"


def only(text):
    """The one mistake of a table."""
    with pytest.raises(TableError) as caught:
        loads(text).check()
    (mistake,) = caught.value.mistakes
    return mistake


def test_arguments_are_texts_by_name():
    table = loads(ENTRY + '  arguments: {self: "(n, m)", returns: as self}\n' + "  alias: same\n")
    table.check()
    assert table.arguments("op") == {"self": "(n, m)", "returns": "as self"}
    assert table.arguments("same") == table.arguments("op")
    assert loads(ENTRY).arguments("op") == {}


def test_arguments_may_take_several_lines():
    table = loads(ENTRY + "  arguments: {self: any,\n    returns: as self}\n")
    table.check()
    assert table.arguments("op") == {"self": "any", "returns": "as self"}
    block = loads(ENTRY + "  arguments:\n    self: any\n")
    block.check()
    assert block.arguments("op") == {"self": "any"}


def test_the_first_entry_describes_the_arguments_of_all_overloads():
    loads(ENTRY + "  arguments: {self: any, scale: a factor}\n" + SCALED).check()
    mistake = only(ENTRY + SCALED + "  arguments: {scale: a factor}\n")
    assert mistake.cause == "`arguments:` in a later entry of its operator"
    assert mistake.cure == "write it in the first, in line 1" and mistake.entry == "op.Scaled"


@pytest.mark.parametrize(
    ("value", "column", "cause", "cure"),
    [
        ("", 13, "`arguments:` is no map of descriptions", "write `arguments: {self: "),
        ("{}", 14, "`arguments:` is no map of descriptions", "write `arguments: {self: "),
        ("of any shape", 14, "`arguments:` is no map of descriptions", "write `arguments: {"),
        ("[self, any]", 14, "`arguments:` is no map of descriptions", "write `arguments: {"),
        ("{slef: any}", 15, "describes 'slef', which is no argument", "did you mean 'self'?"),
        ("{return: any}", 15, "describes 'return', which is no", "did you mean 'returns'?"),
        ("{x: any}", 15, "describes 'x', which is no argument", KNOWN),
        ("{input: any}", 15, "describes 'input', which is no argument", KNOWN),
        ("{[a]: any}", 15, "describes '', which is no argument", KNOWN),
        ("{self: any, self: all}", 26, "'self' is described twice", "remove one of the two"),
        ("{self: }", 21, "the description of 'self' is empty", "say its shape and dtype"),
        ("{self: [any]}", 21, "the description of 'self' is no text on one line", "say its"),
        ("{self: any\n    shape}", 21, "the description of 'self' is no text on one line", "say"),
        (f"{{self: {'a' * 161}}}", 21, "the description of 'self' has 161", "write at most 160"),
    ],
)
def test_wrong_arguments_are_a_mistake(value, column, cause, cure):
    mistake = only(f"{ENTRY}  arguments: {value}\n")
    assert cause in mistake.cause and cure in mistake.cure
    assert (mistake.line, mistake.column, mistake.entry) == (4, column, "op")


def test_all_mistakes_of_a_map_are_reported():
    with pytest.raises(TableError) as caught:
        loads(ENTRY + "  arguments: {a: any, self: '', b: any}\n").check()
    assert [mistake.column for mistake in caught.value.mistakes] == [15, 30, 33]


def test_a_schema_that_cannot_be_read_hides_which_names_are_arguments():
    """Otherwise its mistake would be reported again at each name."""
    text = ENTRY + "  arguments: {scale: a factor}\n" + SCALED.replace("Scalar", "Scaler")
    assert "Scaler" in only(text).cause


def test_an_operator_of_ones_own_shows_them_in_all_its_forms(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(f"{ENTRY}  alias: same\n  arguments: {{self: (n), returns: as self}}\n")
    loaded = ops.load(path, namespace="described")
    assert loaded.same is loaded.op
    assert "    input (Tensor): (n)\n" in loaded.op.__doc__
    assert "Returns:\n    Tensor: as input\n" in loaded.op.__doc__
    assert "    input (Tensor): (n)\n" in loaded.op_.__doc__


def test_numbers_in_tensors_of_no_dimension():
    """PyTorch takes a 0-D tensor that requires no grad for a `float`."""
    x = jaxgrad.tensor([1.0, 1.2])
    tolerance = jaxgrad.tensor(0.25)
    assert jaxgrad.allclose(x, jaxgrad.ones(2), atol=tolerance)
    assert jaxgrad.isclose(x, jaxgrad.ones(2), 0, tolerance / 2).tolist() == [True, False]
    with pytest.raises(TypeError, match=r"'atol' .* must be float, not Tensor"):
        jaxgrad.isclose(x, x, atol=tolerance.requires_grad_())
    with pytest.raises(TypeError, match=r"'atol' .* must be float, not Tensor"):
        jaxgrad.isclose(x, x, atol=jaxgrad.ones(1))
