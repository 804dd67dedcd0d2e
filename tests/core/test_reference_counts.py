"""Whether an owner alone holds a value."""

import ast
import operator
import types
from pathlib import Path

import jaxgrad
from jaxgrad.core.reference_counts import Held

ROOT = Path(jaxgrad.__file__).parent


def owner_of(value):
    return types.SimpleNamespace(value=value)


def test_an_owner_is_sole_until_something_else_holds_its_value():
    held = Held(operator.attrgetter("value"), owner_of(object()))
    first = owner_of(object())
    assert held.is_sole(first)
    second = owner_of(first.value)
    assert not held.is_sole(first) and not held.is_sole(second)
    del second
    assert held.is_sole(first)


def test_counts_of_many_are_those_of_one():
    held = Held(operator.getitem, [object()], 0)
    shared = object()
    values = [object(), shared, object()]
    counts = [*held.counts([values] * 3, range(3))]
    assert [count - held.sole for count in counts] == [0, 1, 0]
    assert held.count(values, 1) == counts[1]


def test_references_to_arrays_are_counted_in_one_module():
    # that of the state of Python counts its own snapshots
    modules = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "getrefcount"
    ]
    assert set(modules) == {"core/reference_counts.py", "state/reads.py"}
