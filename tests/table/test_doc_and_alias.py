"""The keys `doc:` and `alias:` of an entry."""

import pytest

import jaxgrad as torch
from jaxgrad import ops
from jaxgrad.cli import main
from jaxgrad.table import TableError, loads

ENTRY = "- name: {}(Tensor self) -> Tensor\n  forward: f(self)\n  self: grad\n"
SCALED = ENTRY.replace("(Tensor self)", ".Scaled(Tensor self, Scalar scale)")
TWICE = "- name: twice(Tensor self) -> Tensor\n  forward: self * 2\n  self: grad * 2\n"


def table(text):
    return loads(text, "t.yaml", functions=["f", "g"])


def entry(name, *lines, form=ENTRY):
    return form.format(name) + "".join(f"  {line}\n" for line in lines)


def only(text):
    """The one mistake of a table."""
    with pytest.raises(TableError) as caught:
        table(text).check()
    (mistake,) = caught.value.mistakes
    return mistake


# doc


def test_doc_is_the_sentence_of_the_first_entry():
    text = entry("a", "doc: Sum of all elements.") + entry("a", form=SCALED) + entry("b")
    assert table(text).doc("a") == "Sum of all elements."
    assert table(text).doc("b") is None


def test_doc_of_an_alias_is_that_of_its_operator():
    assert table(entry("a", "doc: Negation.", "alias: minus")).doc("minus") == "Negation."


def test_doc_of_an_unknown_operator_is_a_key_error():
    with pytest.raises(KeyError):
        table(entry("a", "doc: Negation.")).doc("b")


def test_doc_is_read_without_the_formulas():
    result = table("- name: a(Tensor self) -> Tensor\n  doc: Negation.\n  self: grda\n")
    assert result.doc("a") == "Negation." and not result._rules


@pytest.mark.parametrize(
    ("line", "place", "cause"),
    [
        ("doc:", (4, 7), "`doc:` is empty"),
        ("doc: ''", (4, 9), "`doc:` is empty"),
        ("doc: '  '", (4, 9), "`doc:` is empty"),
        ("doc: Negation", (4, 8), "does not end with a full stop"),
        ("doc: 'Negation. '", (4, 9), "does not end with a full stop"),
        (f"doc: {'a' * 160}.", (4, 8), "has 161 characters"),
        ("doc: [Negation.]", (4, 8), "is no text on one line"),
        ("doc: {of: Negation.}", (4, 8), "is no text on one line"),
        ("doc: The value\n    and its sign.", (4, 8), "is no text on one line"),
        ("doc: |\n    Negation.", (4, 8), "is no text on one line"),
    ],
)
def test_a_doc_that_is_no_sentence_is_a_mistake(line, place, cause):
    mistake = only(entry("a", line))
    assert cause in mistake.cause and mistake.entry == "a"
    assert (mistake.line, mistake.column) == place


def test_a_doc_of_160_characters_is_fine():
    table(entry("a", f"doc: {'a' * 159}.")).check()


def test_a_doc_in_a_later_entry_is_a_mistake():
    mistake = only(entry("a", "doc: One.") + entry("a", "doc: Two.", form=SCALED))
    assert (mistake.line, mistake.column, mistake.entry) == (8, 3, "a.Scaled")
    assert mistake.cause == "`doc:` in a later entry of its operator"
    assert mistake.cure == "write it in the first, in line 1"


def test_a_doc_that_stands_twice_is_a_mistake():
    assert "'doc' stands twice" in only(entry("a", "doc: One.", "doc: Two.")).cause


def test_a_doc_is_checked_when_its_operator_is_read():
    text = entry("a", "doc: Negation") + entry("b")
    assert table(text).rules("b")
    with pytest.raises(TableError, match="full stop"):
        table(text).rules("a")


@pytest.mark.parametrize("name", ["doc", "alias", "arguments"])
def test_an_argument_may_have_the_name_of_a_key(name):
    text = f"- name: a(Tensor self, int {name}) -> Tensor\n  forward: f(self)\n  self: grad\n"
    table(text).check()


# alias


def test_aliases_name_the_rules_of_their_operator():
    result = table(entry("a", "alias: b, c") + entry("a", form=SCALED))
    assert result.aliases == {"b": "a", "c": "a"} and result.names == ("a",)
    assert result.rules("b") is result.rules("c") is result.rules("a")
    assert "b" in result and "d" not in result and len(result) == 2


def test_formulas_may_call_an_alias():
    table(entry("a", "alias: b") + ENTRY.format("c").replace("grad", "grad.b()")).check()


@pytest.mark.parametrize(
    ("line", "place", "cause"),
    [
        ("alias:", (4, 9), "`alias:` holds no names"),
        ("alias: ' , '", (4, 11), "`alias:` holds no names"),
        ("alias: [b, c]", (4, 10), "`alias:` holds no names"),
        ("alias: {b: c}", (4, 10), "`alias:` holds no names"),
        ("alias: b c", (4, 10), "'b c' cannot be an operator's name"),
        ("alias: b, 2c", (4, 13), "'2c' cannot be an operator's name"),
        ("alias: b.Tensor", (4, 10), "'b.Tensor' cannot be an operator's name"),
        ("alias: _b", (4, 10), "'_b' cannot be an operator's name"),
        ("alias: __class__", (4, 10), "'__class__' cannot be an operator's name"),
        ("alias: b__c", (4, 10), "'b__c' cannot be an operator's name"),
        ("alias: b(Tensor self)", (4, 10), "cannot be an operator's name"),
        ("alias: b\u00e9", (4, 10), "cannot be an operator's name"),
        (f"alias: {'b' * 500}-", (4, 10), "cannot be an operator's name"),
        ("alias: a", (4, 10), "'a' is an alias of itself"),
        ("alias: c, b, c", (4, 16), "a second alias 'c'; the first is of 'a' in line 4"),
        ("alias: b_", (4, 10), "'b_' cannot be an alias of 'a'"),
        ("alias: b\n  alias: c", (5, 3), "the key 'alias' stands twice"),
    ],
)
def test_an_alias_that_is_no_name_is_a_mistake(line, place, cause):
    mistake = only(entry("a", line))
    assert cause in mistake.cause and mistake.entry == "a"
    assert (mistake.line, mistake.column) == place
    assert len(mistake.cause) < 150


def test_an_alias_with_an_entry_of_its_own_is_a_mistake():
    for text in (entry("a", "alias: b") + entry("b"), entry("b") + entry("a", "alias: b")):
        mistake = only(text)
        line = 5 if text.startswith("- name: a") else 1
        assert mistake.cause == f"the alias 'b' has an entry of its own in line {line}"


def test_one_alias_of_two_operators_is_a_mistake():
    mistake = only(entry("a", "alias: c") + entry("b", "alias: c"))
    assert (mistake.line, mistake.entry) == (8, "b")
    assert mistake.cause == "a second alias 'c'; the first is of 'a' in line 4"


def test_an_alias_of_an_alias_is_a_mistake():
    """`b` has no entry that could hold the key."""
    assert "entry of its own" in only(entry("a", "alias: b") + entry("b", "alias: c")).cause


def test_an_alias_in_a_later_entry_is_a_mistake():
    mistake = only(entry("a") + entry("a", "alias: b", form=SCALED))
    assert (mistake.line, mistake.column) == (7, 3)
    assert mistake.cause == "`alias:` in a later entry of its operator"


def test_mistakes_in_aliases_are_raised_when_the_table_is_loaded():
    with pytest.raises(TableError, match="alias of itself"):
        table(entry("a", "alias: a"))


def test_aliases_of_an_in_place_operator_end_with_an_underscore():
    inplace = "- name: a_(Tensor(a!) self) -> Tensor(a!)\n  forward: f(self)\n  self: grad\n"
    assert table(inplace + "  alias: b_\n").aliases == {"b_": "a_"}
    assert "cannot be an alias of 'a_'" in only(inplace + "  alias: b\n").cause


# what becomes of them


def test_the_check_command_knows_both_keys(tmp_path, capsys):
    path = tmp_path / "t.yaml"
    path.write_text(f"{TWICE}  doc: Twice the input.\n  alias: doubled\n")
    assert main(["check", str(path)]) == 0
    path.write_text(f"{TWICE}  doc: Twice the input\n  alias: twice\n")
    assert main(["check", str(path)]) == 1
    doc, alias = capsys.readouterr().out.splitlines()
    assert doc.startswith(f"{path}:4:8: twice: `doc:` does not end with a full stop; ")
    assert alias.startswith(f"{path}:5:10: twice: 'twice' is an alias of itself; ")


def test_an_alias_of_a_table_of_ones_own_is_an_operator(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(f"{TWICE}  alias: doubled\n")
    loaded = ops.load(path, namespace="aliased")
    assert loaded.doubled is loaded.twice and "doubled" in dir(loaded)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    assert loaded.doubled_(y) is y and y.tolist() == [2, 4]
    assert loaded.doubled(x).grad_fn.name() == "TwiceBackward0"


def test_every_alias_of_the_shipped_table_is_its_operator():
    for alias, name in ops.library.table.aliases.items():
        assert getattr(ops, alias) is getattr(ops, name)
        if ops.is_public(alias) and ops.is_public(name):
            if hasattr(torch, alias) and hasattr(torch, name):
                assert getattr(torch, alias) is getattr(torch, name)
            assert hasattr(torch.Tensor, alias) == hasattr(torch.Tensor, name)
        assert alias in dir(ops)


def test_in_place_forms_have_the_aliases_too():
    x = torch.tensor([-1.0, 2.0])
    assert x.absolute_() is x and x.tolist() == [1, 2]
    assert ops.absolute_ is ops.abs_
    with pytest.raises(AttributeError, match="no operator 'concat_'"):
        ops.concat_([x])


def test_every_operator_of_the_shipped_table_has_a_doc():
    shipped = ops.library.table
    docs = {name: shipped.doc(name) for name in shipped.names}
    assert [name for name, doc in docs.items() if doc is None] == []
    assert len({*docs.values()}) == len(docs), "two operators have the same sentence"
