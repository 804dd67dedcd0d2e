"""What the file of templates keeps of the operators: what their entries and functions say."""

import dataclasses
import inspect
from pathlib import Path

import pytest

import jaxgrad as torch
from jaxgrad import rules
from jaxgrad.core import template_store
from jaxgrad.core.primitive import marks_of
from jaxgrad.ops import documentation, kept, namespace
from jaxgrad.table import Formula, load

PATH = torch.ops.library.table.path


@pytest.fixture(scope="module")
def library():
    """The operators of the shipped table, read from its text."""
    functions = rules.Functions()
    return namespace.Library(load(PATH, functions, late=True), functions)


@pytest.fixture(scope="module")
def file(library, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "templates.tsv"
    template_store.write(path, kept.records(library))
    return template_store.File(path)


@pytest.fixture
def shipped(file, monkeypatch):
    """The file in place of the one that is shipped, which may be of other sources."""
    monkeypatch.setattr(template_store, "shipped", lambda: file)


def fields(value):
    """A rule or a formula as what can be compared."""
    if isinstance(value, tuple | list):
        return [fields(item) for item in value]
    if isinstance(value, dict):
        return {name: fields(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return type(value), {name: fields(getattr(value, name)) for name in names}
    return value


def test_the_rules_are_those_of_the_entries(library, shipped):
    for name in library.table.names:
        assert fields(kept.rules_of(name, PATH)) == fields(library.table.rules(name)), name


def test_a_kept_formula_computes_what_the_formula_of_the_entry_does(shipped):
    (rule, *_) = kept.rules_of("mul", PATH)
    (formula,) = [value for names, value in rule.gradients if names == ("self",)]
    assert isinstance(formula, Formula)
    function = formula.compile(("grad", "other"), {"conj": lambda number: number.conjugate()})
    assert function(2, 3 + 1j) == 2 * (3 - 1j)


def test_the_marks_are_those_of_the_value_functions(library, shipped):
    marked = 0
    for name in library.table.names:
        for rule in library.table.rules(name):
            marks = kept.marks_of(rule.schema.full_name)
            assert marks == marks_of(library.value_function(rule)), name
            marked += bool(marks)
    assert marked > 50


def test_the_functions_are_those_of_the_modules(library, shipped):
    functions = rules.Functions(kept.functions)
    assert functions.families == library.functions.families
    assert functions.pointwise == library.functions.pointwise
    assert functions["gather"] is library.functions["gather"]


def test_help_is_that_of_the_entries(library, shipped):
    for name in [n for n in (*library.table.names, *dir(torch.ops)) if library.has(n)]:
        if library.canonical(name) == name:
            doc, signature = kept.help_of(name)
            assert (doc, signature) == documentation.texts(library, name), name
            assert str(signature) == str(documentation.texts(library, name)[1]), name
            assert isinstance(signature, inspect.Signature)


def test_nothing_is_kept_in_a_file_of_other_sources(monkeypatch):
    missing = template_store.File(Path("/missing"))
    monkeypatch.setattr(template_store, "shipped", lambda: missing)
    assert kept.rules_of("add", PATH) is kept.marks_of("add.Tensor") is kept.help_of("add") is None
    assert kept.functions() is None


def test_a_table_asks_for_kept_rules_and_reads_the_others(library):
    def rules_of(name, path):
        asked.append((name, path))
        return library.table.rules("sin") if name == "sin" else None

    asked = []
    table = load(PATH, rules.Functions(), late=True, kept=rules_of)
    assert table.rules("sin") is library.table.rules("sin")
    assert fields(table.rules("cos")) == fields(library.table.rules("cos"))
    assert table.rules("absolute")[0].schema.name == "abs"
    assert asked == [("sin", PATH), ("cos", PATH), ("abs", PATH)]
    with pytest.raises(KeyError):
        table.rules("no_such_operator")
