"""Entries that are found by their lines: those that the strict reader finds in the whole file."""

from pathlib import Path

import pytest

from jaxgrad.table import TableError, load, reader
from jaxgrad.table.outline import outline
from jaxgrad.table.source import decode

SHIPPED = Path(__file__).parents[2] / "derivatives.yaml"
SAMPLE = Path(__file__).with_name("sample.yaml")

BEFORE = "- name: sin(Tensor self) -> Tensor\n  forward: lax.sin(self)\n  self: grad * self.cos()\n"
AFTER = "- name: cos(Tensor self) -> Tensor\n  forward: lax.cos(self)\n  self: grad * -self.sin()\n"
ENTRY = "- name: op(Tensor self) -> Tensor\n  alias: same, other\n  self: grad\n"


def loaded_late(tmp_path, text, **known):
    path = tmp_path / "t.yaml"
    path.write_text(text)
    return load(path, late=True, **known)


@pytest.mark.parametrize("path", [path for path in (SHIPPED, SAMPLE) if path.exists()])
def test_a_table_has_the_entries_that_the_reader_finds(path):
    source = decode(path.read_bytes(), str(path))
    assert [entry.read() for entry in outline(source)] == reader.read(source)
    assert not source.mistakes


def test_names_aliases_and_lines_are_known_before_an_entry_is_read():
    late = outline(decode(b"# a comment\n\n" + ENTRY.encode() + AFTER.encode(), "t.yaml"))
    assert [entry.name[:3] for entry in late] == [
        ("op(Tensor self) -> Tensor", 3, 9),
        ("cos(Tensor self) -> Tensor", 6, 9),
    ]
    assert late[0].value("alias")[:3] == ("same, other", 4, 10)
    assert late[1].value("alias") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "name: op(Tensor self)\n",
        "- op\n",
        "- {name: op(Tensor self)}\n",
        "-  name: op(Tensor self)\n",
        "- self: grad\n  name: op(Tensor self)\n",
        "- name: 'op(Tensor self)'\n",
        "- name: &a op(Tensor self)\n",
        "- name: !!str op(Tensor self)\n",
        "- name: op(Tensor self,\n    Tensor other)\n",
        "- name: op(Tensor self)  # a comment\n",
        "- name: op\n",
        "  self: grad\n" + ENTRY,
        "%YAML 1.1\n---\n" + ENTRY,
        ENTRY + "---\n" + ENTRY,
        ENTRY + "...\n",
        ENTRY + "\tself: grad\n",
        ENTRY + "  doc: caf\xe9\n",
        ENTRY + " other: grad\n",
        ENTRY + "  'alias': third\n",
        ENTRY + "  alias: third\n",
        ENTRY + "  ? alias\n  : third\n",
        ENTRY.replace("alias: same, other", "alias: [same]"),
        ENTRY.replace("alias: same, other", "alias: 'same'"),
        ENTRY.replace("alias: same, other", "alias : same"),
        ENTRY.replace("alias: same, other", "alias: same,\n    other"),
        ENTRY.replace("alias: same, other", "alias:\n    same"),
        ENTRY.replace("\n", "\r"),
    ],
)
def test_lines_that_leave_a_doubt_are_read_as_yaml(text):
    assert outline(decode(text.encode(), "t.yaml")) is None


def test_a_mistake_in_structure_is_raised_where_its_operator_is_used(tmp_path):
    broken = "- name: twice(Tensor self) -> Tensor\n  self: grad\n  self: grad\n"
    table = loaded_late(tmp_path, BEFORE + broken + AFTER)
    assert table.names == ("sin", "twice", "cos")
    assert table.rules("cos")[0].line == 7
    for use in (lambda: table.rules("twice"), lambda: table.doc("twice"), table.check):
        with pytest.raises(TableError, match=r"t.yaml:6:3: twice: the key 'self' stands twice"):
            use()
    with pytest.raises(TableError, match="stands twice"):
        load(table.path)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (BEFORE + BEFORE, "a second entry for it"),
        (BEFORE + ENTRY.replace("same", "sin"), "has an entry of its own"),
        (BEFORE + ENTRY + ENTRY.replace("op(", "op2("), "a second alias 'same'"),
        (BEFORE + "- self: grad\n", "it has no name"),
    ],
)
def test_mistakes_of_names_and_of_unusual_lines_are_raised_at_once(tmp_path, text, cause):
    with pytest.raises(TableError, match=cause):
        loaded_late(tmp_path, text)


def test_lines_that_only_look_like_an_alias_are_a_mistake(tmp_path):
    text = ENTRY.replace("alias: same, other", 'doc: "text\n  alias: same\n  and more."')
    table = loaded_late(tmp_path, BEFORE + text + AFTER)
    with pytest.raises(TableError, match=r"t.yaml:4:9: op: its name and alias are not what"):
        table.rules("op")
    assert table.rules("sin")


def test_functions_are_asked_for_when_a_formula_is_read(tmp_path):
    asked = []

    class Functions:
        def __iter__(self):
            asked.append("names")
            return iter(["f"])

    table = loaded_late(tmp_path, ENTRY + "  forward: f(self)\n", functions=Functions())
    assert "op" in table and "same" in table and not asked
    assert table.rules("same")[0].forward.calls == {"f"}
    assert asked == ["names"]
