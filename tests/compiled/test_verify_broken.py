"""A verified call finds what a broken mechanism would get wrong without an error."""

import pytest

import jaxgrad as torch
from jaxgrad.capture import places
from jaxgrad.capture.guards import DistinctTensors
from jaxgrad.state import guards, merged_guards

nn = torch.nn
ONE = torch.ones(1)


class Slots:
    """An object with attributes."""


def holds(*_):
    return True


def without_values(monkeypatch):
    monkeypatch.setattr(guards.StateGuard, "check", holds)
    monkeypatch.setattr(merged_guards.Bindings, "check", holds)


def without_absence(monkeypatch):
    begin = guards.StateGuard.__init__

    def without(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        self.absent = frozenset()

    monkeypatch.setattr(guards.StateGuard, "__init__", without)


def without_identity(monkeypatch):
    for kind in (places.PinnedTensorGuard, places.SameTensorGuard, DistinctTensors):
        monkeypatch.setattr(kind, "check", holds)


def without_kinds_and_settings(monkeypatch):
    for kind in (guards.AttributeValue, guards.ObjectRead, merged_guards.Reads):
        monkeypatch.setattr(kind, "check", holds)


def a_slot_with_two_names():
    s = Slots()
    s.first = torch.zeros(1)
    s.h = s.first

    def f(x):
        s.h = s.h + x
        return s.first * 10 + s.h

    return f, lambda: None


def a_name_beside_a_member():
    class Ten(nn.Module):
        def forward(self, x):
            return 10 * x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = nn.Identity()

        def forward(self, x):
            return self.sub(x)

    module = Outer()
    return module.forward, lambda: object.__setattr__(module, "sub", Ten())


def an_attribute_that_is_missing():
    s = Slots()
    return lambda x: x * getattr(s, "rate", 1.0), lambda: setattr(s, "rate", 2.0)


def the_dtype_of_autocast():
    def f(x):
        with torch.autocast("cpu"):
            return torch.eye(2) @ torch.eye(2)

    return f, lambda: torch.set_autocast_dtype("cpu", torch.float16)


def what_a_hook_reads():
    weight, scale = torch.ones(1, requires_grad=True), {"by": 1.0}
    weight.register_hook(lambda gradient: gradient * scale["by"])

    def f(x):
        weight.grad = None
        (weight * x).sum().backward()
        return weight.grad.clone()

    return f, lambda: scale.update(by=0.0)


def the_code_of_a_function():
    def inner(x):
        return x * 2

    def other(x):
        return x * 3

    return lambda x: inner(x), lambda: setattr(inner, "__code__", other.__code__)


def the_class_of_an_instance():
    class First:
        def scale(self, x):
            return x * 2

    class Second:
        def scale(self, x):
            return x * 3

    s = First()
    return lambda x: s.scale(x), lambda: setattr(s, "__class__", Second)


@pytest.fixture(autouse=True)
def settings_are_put_back():
    dtype = torch.get_autocast_dtype("cpu")
    yield
    torch.set_autocast_dtype("cpu", dtype)


@pytest.mark.unverified
@pytest.mark.parametrize(
    ("broken", "program"),
    [
        (without_identity, a_slot_with_two_names),
        (without_absence, a_name_beside_a_member),
        (without_absence, an_attribute_that_is_missing),
        (without_kinds_and_settings, the_dtype_of_autocast),
        (without_values, what_a_hook_reads),
        (without_kinds_and_settings, the_code_of_a_function),
        (without_kinds_and_settings, the_class_of_an_instance),
    ],
)
def test_a_verified_call_finds_it(broken, program, monkeypatch):
    broken(monkeypatch)
    function, change = program()
    verified = torch.jit(function, verify=1)
    verified(ONE)
    change()
    with pytest.raises(RuntimeError, match="and the same function uncompiled differ"):
        for _ in range(2):
            verified(ONE)


@pytest.mark.parametrize(
    "program",
    [
        a_slot_with_two_names,
        a_name_beside_a_member,
        an_attribute_that_is_missing,
        the_dtype_of_autocast,
        what_a_hook_reads,
        the_code_of_a_function,
        the_class_of_an_instance,
    ],
)
def test_nothing_differs_where_no_mechanism_is_broken(program):
    function, change = program()
    verified = torch.jit(function, verify=1)
    verified(ONE)
    change()
    for _ in range(2):
        verified(ONE)
