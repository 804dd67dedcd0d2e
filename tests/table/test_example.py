"""The key `example:` of an entry: a call and its result."""

import pytest

from jaxgrad.table import TableError, loads

ENTRY = "- name: op(Tensor self) -> Tensor\n  {}\n  forward: self\n  self: grad\n"


def test_an_example_is_a_call_and_its_result():
    table = loads(ENTRY.format("example: torch.op(torch.ones(1)) -> tensor([1.])"))
    table.check()
    assert table.example("op") == ("torch.op(torch.ones(1))", "tensor([1.])")
    assert loads(ENTRY.format("doc: Nothing.")).example("op") is None


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("example: torch.op(torch.ones(1))", "`example:` has no result"),
        ("example: torch.op( -> tensor([1.])", "which is no expression"),
        ("example: [a, b]", "`example:` is no text on one line"),
    ],
)
def test_a_wrong_example_is_a_mistake(line, cause):
    with pytest.raises(TableError) as caught:
        loads(ENTRY.format(line)).check()
    (mistake,) = caught.value.mistakes
    assert cause in mistake.cause and mistake.line == 2


def test_an_example_stands_in_the_first_entry_of_its_operator():
    second = "- name: op.other(Tensor self, Tensor other) -> Tensor\n  example: f() -> 1\n"
    text = ENTRY.format("doc: Nothing.") + second + "  forward: self\n  self, other: zeros\n"
    with pytest.raises(TableError, match="`example:` in a later entry of its operator"):
        loads(text).check()
