"""Schemas of both dialects, against PyTorch's own reading of them and against hand-made answers."""

import pytest
from helpers.answers import beside, load

from jaxgrad import coverage
from jaxgrad.table import REQUIRED, SchemaError, Type, parse_schema

RECORDED = load(beside(__file__))
EARLY_SCHEMAS = coverage.early_schemas()


def words(argument):
    """The words that record_schemas.py has for an argument."""
    flags = {
        "tensor": argument.type.tensor,
        "list": argument.type.list,
        "nullable": argument.type.optional or argument.type.optional_items,
        "keyword_only": argument.keyword_only,
        "written": argument.type.written,
    }
    return [word for word, true in flags.items() if true]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["name"])
def test_as_pytorch_reads_it(recorded):
    schema = parse_schema(recorded["text"])
    assert schema.full_name == recorded["name"]
    assert schema.inplace == recorded["inplace"]
    arguments = {a.name: (words(a), a.default is REQUIRED) for a in schema.arguments}
    assert arguments == {name: (w, default is None) for name, w, default in recorded["arguments"]}
    assert [[r.name, r.type.tensor] for r in schema.returns] == recorded["returns"]


def test_all_of_early_pytorch():
    schemas = [parse_schema(text) for text in EARLY_SCHEMAS]
    assert len(schemas) == 384
    assert len({schema.name for schema in schemas}) == 333
    assert [schema.inplace for schema in schemas] == ["_(" in text for text in EARLY_SCHEMAS]
    assert not any(schema.returns_known or schema.overload for schema in schemas)
    types = [a.type for schema in schemas for a in schema.arguments]
    # counted in the text: `Tensor` 669, `TensorList` 5, `SparseTensorRef` 1
    assert sum(type_.tensor for type_ in types) == 675
    assert sum(type_ == Type("int", list=True) for type_ in types) == 212
    assert sum(type_ == Type("bool", list=True, size=3) for type_ in types) == 12


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("Tensor", Type("Tensor")),
        ("Tensor?", Type("Tensor", optional=True)),
        ("Tensor(a!)", Type("Tensor", alias="a!")),
        ("Tensor(a -> *)", Type("Tensor", alias="a -> *")),
        ("Tensor[]", Type("Tensor", list=True)),
        ("Tensor?[]", Type("Tensor", list=True, optional_items=True)),
        ("TensorList", Type("Tensor", list=True)),
        ("int[2]", Type("int", list=True, size=2)),
        ("int[1]?", Type("int", optional=True, list=True, size=1)),
        ("IntList", Type("int", list=True)),
        ("SymInt", Type("int")),
        ("int64_t?", Type("int", optional=True)),
        ("double", Type("float")),
        ("std::array<bool,3>", Type("bool", list=True, size=3)),
        ("MemoryFormat?", Type("MemoryFormat", optional=True)),
    ],
)
def test_types(text, type_):
    assert parse_schema(f"f({text} x)").arguments[0].type == type_


@pytest.mark.parametrize(
    ("argument", "default"),
    [
        ("Tensor? x=None", None),
        ("bool x=True", True),
        ("int x=-1", -1),
        ("float x=1e-05", 1e-5),
        ("Scalar x=1", 1),
        ("int[2] x=1", (1, 1)),
        ("int[2] x=[0, 1]", (0, 1)),
        ("int[] x=[]", ()),
        ("int[]? x=None", None),
        ("str x='mean'", "mean"),
        ('str x="a, b)"', "a, b)"),
        ("int x=Mean", 1),
        ("int x=Sum", 2),
        ("ScalarType x=long", "long"),
        ("MemoryFormat x=contiguous_format", "contiguous_format"),
        ("int x", REQUIRED),
    ],
)
def test_defaults(argument, default):
    value = parse_schema(f"f({argument}) -> Tensor").arguments[0].default
    assert (value, type(value)) == (default, type(default))


def test_parts():
    schema = parse_schema("max.dim(Tensor self, *, int dim=0) -> (Tensor values, Tensor indices)")
    assert (schema.name, schema.overload, schema.full_name) == ("max", "dim", "max.dim")
    assert [argument.keyword_only for argument in schema.arguments] == [False, True]
    assert [r.name for r in schema.returns] == ["values", "indices"]
    assert schema.tensors == ("self",)


def test_what_is_written():
    assert parse_schema("add_(Tensor(a!) self, Tensor other) -> Tensor(a!)").written == ("self",)
    assert parse_schema("add_(Tensor self, Tensor other)").written == ("self",)
    out = parse_schema("add.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    assert (out.written, out.tensors, out.inplace) == (("out",), ("self",), False)


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("", 0, "as a schema"),
        ("sin", 0, "as a schema"),
        ("sin Tensor self", 0, "as a schema"),
        ("sin(Tensor self", 15, "not closed"),
        ("sin(Tensor self) -> ", 20, "a return"),
        ("sin(Tensor self) -> (Tensor", 27, "not closed"),
        ("sin(Tensor self) Tensor", 15, "-> Type"),
        ("sin(Tensor self) -> Tensor; rm", 26, "follows"),
        ("sin(Tensor)", 4, "an argument"),
        ("sin(Tensor self Tensor other)", 16, "a comma"),
        ("sin(Tensro self)", 4, "did you mean 'Tensor'?"),
        ("sin(Tensor self, Tensor self)", 28, "two arguments"),
        ("sin(int x=1.5)", 10, "default"),
        ("sin(Tensor[2] x=0)", 16, "default"),
        ("sin(int x=None)", 10, "default"),
        ("sin(bool x=1)", 11, "default"),
        ("sin(int x=99999999999999999999)", 10, "default"),
        ("sin(Tensor(!!) self)", 4, "alias"),
        ("__sin__(Tensor self)", 0, "name"),
        ("_(Tensor self)", 0, "name"),
        ("sin.__a(Tensor self)", 4, "overload"),
        ("s\u0456n(Tensor self)", 0, "as a schema"),
        ("f(" + ", ".join(f"int a{i}" for i in range(65)) + ")", None, "65 arguments"),
        ("f(int a" + " " * 2000 + ")", 0, "as a schema"),
    ],
)
def test_refused(text, offset, words):
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert words in str(caught.value)
    assert offset in (caught.value.offset, None)
