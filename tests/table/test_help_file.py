"""The file of help beside a table: what `help` says about the operators, by their names."""

import pytest

from jaxgrad import ops
from jaxgrad.cli import main
from jaxgrad.table import TableError, help_file, load

TABLE = """- name: twice(Tensor self) -> Tensor
  alias: doubled
  forward: self * 2
  self: grad * 2

- name: twice.Scaled(Tensor self, Scalar scale) -> Tensor
  forward: self * 2 * scale
  self: grad * 2 * scale

- name: half(Tensor self) -> Tensor
  forward: self / 2
  self: grad / 2
"""
HELP = """# texts

twice:
  doc: Twice the input.
  arguments: {self: of any shape, scale: a factor,
    returns: as self}

# ---- a section

half:
  doc: Half of the input.
  example: torch.half(4.0) -> 2.0
"""


@pytest.fixture
def load_with(tmp_path):
    """Loads a table with a text beside it."""

    def load_with(help_text, text=TABLE):
        path = tmp_path / "derivatives.yaml"
        path.write_text(text)
        (tmp_path / "help.yaml").write_text(help_text)
        return load(path, help_path=help_file.beside(path))

    return load_with


@pytest.fixture
def mistakes(load_with, tmp_path):
    """The mistakes of a table with a text beside it, without the folder."""

    def mistakes(help_text, text=TABLE):
        with pytest.raises(TableError) as caught:
            load_with(help_text, text).check()
        return str(caught.value).replace(f"{tmp_path}/", "").splitlines()

    return mistakes


def test_the_file_describes_operators_and_their_aliases(load_with):
    table = load_with(HELP)
    table.check()
    assert table.doc("twice") == table.doc("doubled") == "Twice the input."
    assert table.arguments("twice") == {
        "self": "of any shape",
        "scale": "a factor",
        "returns": "as self",
    }
    assert table.example("twice") is None
    assert table.example("half") == ("torch.half(4.0)", "2.0")
    with pytest.raises(KeyError):
        table.doc("third")


def test_the_file_is_read_when_help_is_asked_for(load_with):
    table = load_with("\0")
    assert table.rules("twice")[0].node == "TwiceBackward0"
    with pytest.raises(TableError, match="it has no help"):
        table.check()


def test_a_mistake_in_an_entry_leaves_the_others_readable(load_with):
    table = load_with(HELP.replace("{self", "[self"))
    assert table.doc("half") == "Half of the input."
    with pytest.raises(TableError, match=r"help.yaml:6:21: twice: not YAML"):
        table.doc("twice")


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ("half:", "haff:", "help.yaml:10:1: haff: 'haff' is no operator of derivatives.yaml; did"),
        ("half:", "half: 3", "help.yaml:10:1: half: 3: 'half: 3' is no operator of"),
        ("# texts", "half:\n", "help.yaml:11:1: half: a second entry for it; the first is in line"),
        ("  doc: Half", "  dok: Half", "help.yaml:11:3: half: 'dok' is no key of help; did you"),
        ("  doc: Half of the input.\n", "", "help.yaml:10:1: half: it has no `doc:`; write what"),
        ("input.\n  e", "input\n  e", "help.yaml:11:8: half: `doc:` does not end with a full"),
        ("scale:", "scael:", "help.yaml:5:35: twice: `arguments:` describes 'scael', which is no"),
        ("-> 2.0", "", "help.yaml:12:12: half: `example:` has no result; write `torch.sin"),
        ("  example", "  doc", "help.yaml:12:3: half: the key 'doc' stands twice; remove one of"),
        ("{self: of any shape", "{self: !!str any", "help.yaml:5:21: twice: the tag"),
    ],
)
def test_a_mistake_is_reported_with_its_place(mistakes, old, new, mistake):
    assert old in HELP
    assert any(line.startswith(mistake) for line in mistakes(HELP.replace(old, new)))


FAMILY = """{twice|half}:
  doc: "{Twice|Half} of the input."
  arguments: {self: "({n|m})", scale: a factor}
  example: torch.{twice(4.0) -> 8.0
    |half(4.0) -> 2.0}
"""


def test_an_entry_may_describe_a_family(load_with):
    table = load_with(FAMILY)
    table.check()
    assert [table.doc(name) for name in table.names] == [
        "Twice of the input.",
        "Half of the input.",
    ]
    assert table.arguments("half")["self"] == "(m)"
    assert table.example("doubled") == ("torch.twice(4.0)", "8.0")
    assert table.example("half") == ("torch.half(4.0)", "2.0")


def test_braces_without_alternatives_for_each_operator_are_a_mistake(mistakes):
    first, *_ = mistakes(FAMILY.replace("{n|m}", "{n|m|k}"))
    assert first == (
        "help.yaml:3:23: twice: '{n|m|k}' has not 2 alternatives; write one for each of twice, half"
    )


def test_braces_are_text_where_an_entry_is_for_one_operator(load_with):
    table = load_with(HELP.replace("Half of", "Half {a|b} of"))
    assert table.doc("half") == "Half {a|b} of the input."


def test_an_operator_without_help_is_a_mistake(mistakes):
    (mistake,) = mistakes(HELP.partition("half:")[0])
    assert mistake == (
        "derivatives.yaml:10:9: half: it has no help; describe it in help.yaml: "
        "write `name:`, and under it `doc: text` and the like"
    )


def test_help_inside_the_table_is_a_mistake_where_a_file_has_it(mistakes):
    (mistake,) = mistakes(HELP, TABLE + "  doc: Half.\n")
    assert mistake == "derivatives.yaml:13:3: half: `doc:` is help; write it in help.yaml"


def test_a_file_that_is_no_text_is_a_mistake(tmp_path):
    path = tmp_path / "derivatives.yaml"
    path.write_text(TABLE)
    (tmp_path / "help.yaml").write_bytes(b"twice:\n  doc: \xff.\n")
    with pytest.raises(TableError, match=r"help.yaml:2:1: file: it is not UTF-8"):
        load(path, help_path=help_file.beside(path)).check()


def test_the_check_command_reads_both_files(tmp_path, capsys):
    path = tmp_path / "derivatives.yaml"
    path.write_text(TABLE.replace("half", "halved"))
    assert main(["check", str(path)]) == 0
    (tmp_path / "help.yaml").write_text(HELP)
    assert main(["check", str(path)]) == 1
    assert "help.yaml:10:1: half: 'half' is no operator" in capsys.readouterr().out


def test_a_table_of_users_holds_its_help(tmp_path):
    (tmp_path / "help.yaml").write_text(HELP)
    assert help_file.beside(tmp_path / "mine.yaml") is None
    assert help_file.beside(tmp_path / "derivatives.yaml") == str(tmp_path / "help.yaml")


def test_the_help_of_the_shipped_table_has_no_mistakes():
    ops.library.table.help.check(ops.library.table)
