"""Docstrings and signatures of the operators.

The results in the examples are PyTorch's: `make oracle` runs the examples with it.
"""

import doctest
import inspect
import re

import pytest
from helpers.recorded import SAMPLES
from samples import find

import jaxgrad as torch
from jaxgrad import ops
from jaxgrad.ops.documentation import signature_of
from jaxgrad.table import REQUIRED, parse_schema

LIBRARY = ops.library
NAMES = [*LIBRARY.table.names, *(name for name in dir(ops) if LIBRARY.functional(name))]
NUMPYS_NAMES = {"axis": "dim", "keepdims": "keepdim"}
SECTIONS = ("Arguments:", "Returns:", "Raises:", "Formulas:", "Example:")


DESCRIBED = re.compile(r"(\w+) \([^()]*\): (.+)")  # a line of the arguments
SIZES = {"b": 2, "n": 3, "m": 4, "p": 5}  # of the dimensions that descriptions name


def section(name, title):
    """The lines of a section of an operator's docstring."""
    text = getattr(ops, name).__doc__.partition(f"\n\n{title}:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in text.splitlines()]


def required(schema):
    return [argument.name for argument in schema.arguments if argument.default is REQUIRED]


def takes_two_tensors(rule):
    return len(rule.tensor_arguments) == 2 and required(rule.schema) == [*rule.tensor_arguments]


def takes_a_tensor_and_dim(rule):
    is_last = required(rule.schema) in (["self"], ["self", "dim"])
    return is_last and "dim" in rule.schema.names


def operators(condition):
    """The operators with an overload whose rule meets `condition`."""
    return [n for n in LIBRARY.table.names if any(map(condition, LIBRARY.table.rules(n)))]


def takes_one_tensor(rule):
    """Whether a call needs a tensor only; some refuse their own defaults."""
    return required(rule.schema) == ["self"] and rule.schema.name not in ("clamp", "one_hot")


def one_of_twelve(names):
    """The names as parameters, all but every twelfth marked as slow."""
    return [
        pytest.param(n, marks=[pytest.mark.slow] if i % 12 else []) for i, n in enumerate(names)
    ]


def test_the_names_include_in_place_forms():
    assert {"add", "add_", "_select", "fill_diagonal_"} <= set(NAMES)


def test_every_entry_has_a_sentence_and_an_example():
    for name in LIBRARY.table.names:
        assert LIBRARY.table.doc(name).endswith("."), name
        call, result = LIBRARY.table.example(name)
        assert call and result, name


def test_every_docstring_has_all_sections():
    for name in NAMES:
        lines = getattr(ops, name).__doc__.splitlines()
        assert [line for line in lines if line in SECTIONS] == list(SECTIONS), name


def test_every_docstring_lists_the_arguments_and_formulas_of_every_overload():
    for name in NAMES:
        operator = getattr(ops, name)
        for rule in LIBRARY.table.rules(LIBRARY.functional(name) or name):
            assert rule.schema.text in operator.__doc__, name
            assert all(formula.text in operator.__doc__ for formula in rule.formulas), name
        for parameter in inspect.signature(operator).parameters.values():
            assert f"    {parameter.name} (" in operator.__doc__, name


def test_every_argument_and_every_result_has_a_description():
    missing = []
    for name in NAMES:
        missing += [(name, x) for x in section(name, "Arguments") if not DESCRIBED.fullmatch(x)]
        returned = f"{inspect.signature(getattr(ops, name)).return_annotation}: "
        (line,) = section(name, "Returns")
        said = line.removeprefix(returned)
        if said == line or said.startswith("a view"):  # which tells no shape
            missing.append((name, line))
    assert missing == []


def named_shape(text):
    """The shape at the start of a description, as names of sizes; None if it names no shape."""
    if text.startswith("0-D"):
        return ()
    match = re.match(r"(?:broadcasts to )?\(([a-z](?:, [a-z])*),?\)(?! or)", text)
    return match and tuple(match[1].split(", "))


def operators_with_named_shapes():
    """The operators whose tensors all have named shapes, with these."""
    by_name = {}
    for name in LIBRARY.table.names:
        said = LIBRARY.table.arguments(name)
        tensors = LIBRARY.table.rules(name)[0].tensor_arguments
        shapes = [named_shape(said.get(key, "")) for key in (*tensors, "returns")]
        if all(shape is not None and {*shape} <= {*SIZES} for shape in shapes):
            by_name[name] = shapes
    return by_name


def test_products_name_their_shapes():
    products = {"mm", "mv", "dot", "outer", "bmm", "addmm", "addmv", "baddbmm", "addr"}
    assert products <= operators_with_named_shapes().keys()


@pytest.mark.parametrize(("name", "shapes"), operators_with_named_shapes().items())
def test_a_call_has_the_shapes_that_its_docstring_names(name, shapes):
    *operands, result = [tuple(map(SIZES.get, shape)) for shape in shapes]
    assert getattr(ops, name)(*map(torch.ones, operands)).shape == result


# words for a dtype that a call refuses, and for the change from one dtype to another
REFUSED = {
    torch.bool: ("not bool", "floating point", "complex", "float32"),
    torch.int64: ("floating point", "complex", "float32"),
    torch.float32: ("integers or bool", "complex"),
    torch.complex64: ("not complex", "or complex", "floating point", "float32", "integers", "real"),
}
CHANGED = {
    (torch.int64, torch.float32): "floating point for integers too",
    (torch.complex64, torch.float32): "real",
    torch.complex64: "complex",
    torch.int64: "int64",
    torch.uint64: "uint64",
    torch.int32: "int32",
    torch.bool: "bool",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_twelve(operators(takes_one_tensor)))
def test_the_docstring_names_the_dtypes_that_a_call_refuses_or_changes(name):
    taken = " ".join(DESCRIBED.fullmatch(line)[2] for line in section(name, "Arguments"))
    (description,) = section(name, "Returns")
    for dtype, words in REFUSED.items():
        try:
            result = getattr(ops, name)(torch.ones(2, 2, dtype=dtype))
        except (NotImplementedError, RuntimeError):
            assert any(word in taken for word in words), dtype
        else:
            result_dtype = (result if isinstance(result, torch.Tensor) else result[-1]).dtype
            known = torch.int64 if dtype is torch.bool else dtype
            wanted = CHANGED.get((known, result_dtype)) or CHANGED.get(result_dtype)
            assert result_dtype is dtype or wanted in description, dtype


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_twelve(NAMES))
def test_example_runs(name):
    options = doctest.NORMALIZE_WHITESPACE
    (test,) = doctest.DocTestFinder().find(getattr(ops, name), name, module=False, globs={})
    assert len(test.examples) >= 2
    assert doctest.DocTestRunner(optionflags=options).run(test).failed == 0


def test_every_signature_binds_the_arguments_of_the_samples():
    bound = 0
    for _, sample in SAMPLES:
        operator = find(torch, sample.name)
        if not hasattr(operator, "operator"):
            continue
        if sample.name == "Tensor.expand" and "size" in sample.kwargs:
            operator = ops.expand  # the method shows `*size`
        signature = inspect.signature(operator)
        keywords = {
            name if name in signature.parameters else NUMPYS_NAMES.get(name, name): value
            for name, value in sample.kwargs.items()
        }
        signature.bind(*sample.args, **keywords)  # names what does not fit
        bound += 1
    assert bound > 1000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "sum",
            "(input: Tensor, dim: int | Sequence[int] | None = ..., keepdim: bool = False, *, "
            "dtype: dtype | None = None, out: Tensor | None = None) -> Tensor",
        ),
        ("sin_", "(input: Tensor) -> Tensor"),
        (
            "where",
            "(condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, "
            "out: Tensor | None = None) -> Tensor",
        ),
        (
            "split",
            "(input: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]",
        ),
        (
            "max",
            "(input: Tensor, dim: int | Tensor = ..., keepdim: bool = False, *, "
            "other: Tensor = ..., out: tuple[Tensor, ...] | Tensor | None = None) "
            "-> (values: Tensor, indices: Tensor) | Tensor",
        ),
    ],
)
def test_signature(name, expected):
    assert str(inspect.signature(getattr(ops, name))) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sin", "(self) -> Tensor"),
        ("sin_", "(self) -> Tensor"),
        ("expand", "(self, *size: int | Sequence[int], implicit: bool = False) -> Tensor"),
        ("view", "(self, *size: int | Sequence[int] | dtype, dtype: dtype = ...) -> Tensor"),
        ("cumsum", "(self, dim: int, *, dtype: dtype | None = None) -> Tensor"),
    ],
)
def test_signature_of_a_method(name, expected):
    assert str(inspect.signature(getattr(torch.Tensor, name))) == expected


def test_a_type_of_a_schema_is_shown_as_pythons():
    schema = parse_schema("f(Tensor?[] a, int[2]? b, ScalarType c, *, Scalar d=1) -> Tensor[]")
    assert str(signature_of(schema)) == (
        "(a: Sequence[Tensor | None], b: int | Sequence[int] | None, c: dtype, *, d: Number = 1) "
        "-> tuple[Tensor, ...]"
    )


@pytest.mark.parametrize("name", operators(takes_two_tensors))
def test_shapes_that_do_not_broadcast_raise_what_the_docstring_says(name):
    operator = getattr(ops, name)
    if "RuntimeError: the shapes do not broadcast" in operator.__doc__:
        with pytest.raises(RuntimeError):
            operator(torch.ones(2), torch.ones(3))


@pytest.mark.parametrize("name", operators(takes_a_tensor_and_dim))
def test_a_dimension_out_of_range_raises_what_the_docstring_says(name):
    assert "IndexError: a dimension is out of range" in getattr(ops, name).__doc__
    with pytest.raises(IndexError):
        getattr(ops, name)(torch.ones(2, 3), dim=7)


def test_an_operator_of_ones_own_documents_itself(tmp_path):
    path = tmp_path / "cube.yaml"
    path.write_text(
        "- name: cube(Tensor self, *, Scalar scale=1) -> Tensor\n"
        "  doc: The third power, scaled.\n"
        "  forward: self * self * self * scale\n"
        "  self: 3 * scale * grad * self * self\n"
    )
    cube = ops.load(path, namespace="documented").cube
    assert cube.__doc__.startswith("The third power, scaled.\n")
    assert "value: self * self * self * scale" in cube.__doc__
    assert str(inspect.signature(cube)).startswith("(input: Tensor, *, scale: Number = 1")
