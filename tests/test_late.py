"""Modules that are imported at their first use."""

import sys

import pytest

from jaxgrad.late import LateModule


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that nothing has imported."""
    (tmp_path / "imported_late.py").write_text("value = 1\ndef read():\n    return value\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "imported_late"
    sys.modules.pop("imported_late", None)


def test_a_module_is_imported_when_a_name_is_used(module):
    late = LateModule(module)
    assert module not in sys.modules
    assert late.value == 1
    assert late.read is sys.modules[module].read


def test_a_global_that_changes_is_seen_on_both_sides(module):
    late = LateModule(module)
    assert late.read() == 1
    sys.modules[module].value = 2
    assert late.value == late.read() == 2
    late.value = 3
    assert sys.modules[module].value == 3


def test_a_name_that_the_module_lacks_is_an_attribute_error(module):
    late = LateModule(module)
    for _ in range(2):
        with pytest.raises(AttributeError, match="module 'imported_late' has no attribute 'other'"):
            late.other  # noqa: B018


def test_a_module_that_is_missing_is_an_import_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        LateModule("no_such_module").value  # noqa: B018


def test_names_that_a_module_gives_by_its_getattr_are_found(module, tmp_path):
    (tmp_path / "imported_late.py").write_text("def __getattr__(name):\n    return name.upper()\n")
    late = LateModule(module)
    assert (late.one, late.two) == ("ONE", "TWO")
