"""The keys `tags:` and `protocol:` of an entry: what is true of an operator besides formulas."""

import pytest

import jaxgrad as torch
from jaxgrad import ops
from jaxgrad.table import TableError, load, loads

ENTRY = "- name: {}(Tensor self, Tensor other) -> Tensor\n  forward: self\n  self, other: zeros\n"
SCALED = ENTRY.replace("Tensor other)", "Tensor other, *, Scalar alpha=1)")
VIEW = "- name: {}(Tensor(a) self) -> Tensor(a)\n  forward: self\n  self: grad\n"
WRITING = "- name: {}_(Tensor(a!) self) -> Tensor(a!)\n  forward: self\n  self: grad\n"
FACTORY = "- name: {}(Scalar value) -> Tensor\n  forward: value\n"
COMBINING = "- name: {}(Tensor[] tensors, Scalar x) -> Tensor\n  forward: tensors[0]\n"
COMBINING += "  tensors: non_differentiable\n"


def entry(*lines, form=ENTRY, name="op"):
    return form.format(name) + "".join(f"  {line}\n" for line in lines)


def only(text):
    """The one mistake of a table."""
    with pytest.raises(TableError) as caught:
        loads(text).check()
    (mistake,) = caught.value.mistakes
    return mistake


def test_tags_hold_for_all_overloads_and_aliases():
    text = entry("alias: same", "tags: inplace, float8") + entry(form=SCALED, name="op.Scaled")
    table = loads(text)
    table.check()
    assert table.tags == {"op": {"inplace", "float8"}}
    assert [rule.tags for rule in table.rules("same")] == [{"inplace", "float8"}] * 2
    assert loads(entry()).rules("op")[0].tags == frozenset()


def test_protocols_call_the_operator_or_its_form_in_place():
    table = loads(entry("tags: inplace", "protocol: __sub__, __rsub__, __isub__"))
    table.check()
    assert table.protocols == {"__sub__": "op", "__rsub__": "op", "__isub__": "op_"}


def test_both_are_known_from_the_lines(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(entry("tags: inplace, float8", "alias: same", "protocol: __add__"))
    table = load(path, late=True)
    assert table.tags == {"op": {"inplace", "float8"}} and table.protocols == {"__add__": "op"}
    table.check()


@pytest.mark.parametrize(
    ("line", "column", "cause", "cure"),
    [
        ("tags:", 8, "`tags:` holds no words", "separated by commas"),
        ("tags: [inplace]", 9, "`tags:` holds no words", "separated by commas"),
        ("tags: {inplace: true}", 9, "`tags:` holds no words", "separated by commas"),
        ("tags: in_place", 9, "'in_place' is no tag", "did you mean 'inplace'?"),
        ("tags: float8, nothing", 17, "'nothing' is no tag", "the head of derivatives.yaml"),
        ("tags: float8, float8", 17, "'float8' stands twice", "remove one"),
        ("protocol:", 12, "`protocol:` holds no words", "separated by commas"),
        (
            "protocol: __subb__",
            13,
            "'__subb__' is no operator of Python",
            "did you mean '__sub__'?",
        ),
        ("protocol: add", 13, "'add' is no operator of Python", "__add__"),
        ("protocol: __len__", 13, "'__len__' is no operator of Python", ""),
        ("protocol: __add__, __add__", 22, "'__add__' stands twice", "remove one"),
        ("protocol: __iadd__", 13, "__iadd__, but the operator has no in-place form", "`inplace`"),
    ],
)
def test_words_that_mean_nothing_are_mistakes(line, column, cause, cure):
    mistake = only(entry(line))
    assert cause in mistake.cause and cure in mistake.cure
    assert (mistake.line, mistake.column, mistake.entry) == (4, column, "op")


@pytest.mark.parametrize(
    "tags",
    [
        ("inplace", "inplace_function"),
        ("inplace_function", "inplace"),
        ("autocast_fp32", "autocast_promote"),
        ("sparse", "sparse_linear"),
        ("sparse_linear", "sparse_zero_to_zero"),
    ],
)
def test_tags_that_contradict_each_other_are_mistakes(tags):
    mistake = only(entry(f"tags: {', '.join(tags)}"))
    assert mistake.cause == f"the tags {tags[0]!r} and {tags[1]!r} exclude each other"


@pytest.mark.parametrize(
    ("tag", "form", "cause"),
    [
        ("inplace", FACTORY, "no `Tensor self` that it leaves alone"),
        ("inplace", WRITING, "no `Tensor self` that it leaves alone"),
        ("inplace_function", COMBINING, "no `Tensor self` that it leaves alone"),
        ("inplace_only", ENTRY, "it is a public operator"),
        ("no_method", COMBINING, "no `Tensor self`"),
        ("foreach", FACTORY, "no `Tensor self`"),
        ("may_copy", ENTRY, "it is no view"),
        ("float8", VIEW, "it is a view, which takes every dtype"),
        ("number_first", VIEW, "its first two arguments are no tensors"),
        ("old_form", ENTRY, "it has no numbers that only keywords pass"),
    ],
)
def test_tags_that_contradict_the_schema_are_mistakes(tag, form, cause):
    mistake = only(entry(f"tags: {tag}", form=form))
    assert mistake.cause.startswith(f"the tag {tag!r}, but ") and mistake.cause.endswith(cause)


@pytest.mark.parametrize("key", ["tags: float8", "protocol: __add__"])
def test_a_later_entry_has_neither(key):
    mistake = only(entry() + entry(key, form=SCALED, name="op.Scaled"))
    assert mistake.cause == f"`{key.partition(':')[0]}:` in a later entry of its operator"
    assert mistake.cure == "write it in the first, in line 1"


def test_a_special_method_calls_one_operator():
    mistake = only(entry("protocol: __add__") + entry("protocol: __add__", name="other"))
    assert (mistake.line, mistake.entry) == (8, "other")
    assert mistake.cause == "__add__ calls 'op' already"


def test_tags_of_a_table_of_ones_own_count(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(
        "- name: halved(Tensor self) -> Tensor\n  tags: autocast_fp32, float8\n"
        "  forward: self\n  self: grad\n"
    )
    my = ops.load(path, namespace="tagged")
    x = torch.ones(2)
    assert my.halved(x.to(torch.float8_e5m2)).dtype is torch.float8_e5m2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert my.halved(x.to(torch.bfloat16)).dtype is torch.float32
