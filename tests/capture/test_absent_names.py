"""Attributes, keys and variables that are absent while a function is traced, or removed by it."""

import collections
import dataclasses
import functools
import types

import pytest

import jaxgrad as torch

nn = torch.nn


ONE = torch.ones(1)


class Scaled(nn.Module):
    scale = 2.0

    def __init__(self):
        super().__init__()
        self.sub = nn.Identity()
        self.register_buffer("shift", torch.zeros(1))
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.sub(self.scale * x * self.weight.detach() + self.shift)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [("sub", nn.Flatten(0), 2), ("scale", 20.0, 20), ("shift", 3.0, 5), ("weight", ONE * 7, 14)],
)
def test_an_attribute_beside_a_member(name, value, wanted):
    module, x = Scaled(), torch.ones(1)
    compiled = torch.jit(lambda x: module(x))
    assert compiled(x).tolist() == [2]
    object.__setattr__(module, name, value)
    assert compiled(x).tolist() == module(x).tolist() == [wanted]
    del module.__dict__[name]
    assert compiled(x).tolist() == module(x).tolist() == [2]


def test_a_submodule_beside_a_submodule():
    class Ten(nn.Module):
        def forward(self, x):
            return 10 * x

    module, x = Scaled(), torch.ones(1)
    compiled = torch.jit(lambda x: module(x))
    assert compiled(x).tolist() == [2]
    object.__setattr__(module, "sub", Ten())
    assert compiled(x).tolist() == module(x).tolist() == [20]


def test_a_cached_property_that_is_set():
    class Cached:
        @functools.cached_property
        def factor(self):
            return 3.0

    cached = Cached()
    compiled = torch.jit(lambda x: x * cached.factor)
    assert compiled(ONE).tolist() == [3]
    cached.__dict__["factor"] = 5.0
    assert compiled(ONE).tolist() == [5]
    del cached.factor
    assert compiled(ONE).tolist() == [3]


class Slots:
    """An object with attributes."""


@dataclasses.dataclass
class Data:
    h: object
    n: int = 2


def test_a_name_that_is_removed_must_be_there():
    s, state, layer = Slots(), {"k": 1}, nn.Linear(1, 1)
    s.h = ONE

    def of_attribute(x):
        del s.h
        return x

    def of_item(x):
        del state["k"]
        return x

    def of_parameter(x):
        del layer.weight
        return x

    for function, kind in (
        (of_attribute, AttributeError),
        (of_item, KeyError),
        (of_parameter, AttributeError),
    ):
        compiled = torch.jit(function)
        compiled(ONE)
        with pytest.raises(kind):
            compiled(ONE)
    s.h = ONE * 2
    torch.jit(of_attribute)(ONE)
    assert not vars(s)


def test_a_member_of_the_class_that_appears():
    class Kind:
        pass

    held = Kind()
    f = torch.jit(lambda x: x * getattr(held, "factor", 1.0))
    assert f(ONE).item() == 1
    Kind.factor = property(lambda self: 3.0)
    assert f(ONE).item() == 3
    del Kind.factor
    assert f(ONE).item() == 1


def test_an_attribute_of_a_module_or_a_class_that_appears():
    library, kind = types.ModuleType("library"), type("Kind", (), {})
    for owner in (library, kind):
        f = torch.jit(lambda x, owner=owner: x * getattr(owner, "factor", 1.0))
        assert f(ONE).item() == 1
        owner.factor = 3.0
        assert f(ONE).item() == 3


def test_an_attribute_that_a_class_inherits_until_it_has_its_own():
    class Base:
        n = 1

    class Derived(Base):
        pass

    @torch.jit
    def f(x):
        Derived.n -= 2
        return x * Derived.n

    assert [f(ONE).item() for _ in range(4)] == [-1, -3, -5, -7] and Base.n == 1


def test_all_attributes_of_an_object():
    s = Slots()

    @torch.jit
    def f(x):
        vars(s).pop("k", None)
        return x * len(vars(s))

    assert f(ONE).item() == 0
    s.k, s.n = 1.0, 2.0
    assert f(ONE).item() == 1 and not hasattr(s, "k")


def test_a_key_of_a_defaultdict_that_is_gone_is_not_made_by_a_guard():
    state = collections.defaultdict(float)

    @torch.jit
    def f(x):
        state["h"] = state.get("h", x)
        return x

    f(ONE), f(ONE)
    state.pop("h")
    f(ONE * 3)
    assert state["h"].item() == 3


def test_an_attribute_that_a_function_gets_at_its_first_call():
    def counted(x):
        counted.calls = getattr(counted, "calls", 0) + 1
        return x * counted.calls

    f = torch.jit(lambda x: counted(x))
    assert [f(ONE).item() for _ in range(4)] == [1, 2, 3, 4]
    assert counted.calls == 4
    del counted.calls
    assert f(ONE).item() == 1


def test_an_attribute_of_a_tensor_that_each_call_finds_anew():
    s = Slots()
    s.a, s.b = torch.zeros(1), torch.ones(1)

    @torch.jit
    def swap(x):
        s.a, s.b = s.b, s.a
        s.a.marks = 2.0
        return x + s.a

    for _ in range(3):
        before = s.b
        swap(ONE)
        assert s.a is before and before.marks == 2.0
        del before.marks


def test_a_dataclass_without_a_field():
    @dataclasses.dataclass
    class Data:
        h: object
        n: object

    data = Data(ONE, 1.0)

    @torch.jit
    def f(x):
        del data.n
        return x, data

    assert f(ONE)[1] is data and vars(data) == {"h": ONE}


def test_a_name_that_was_absent_is_absent_again():
    class Scaled:
        k = 1.0

    s, x = Scaled(), torch.tensor([1.0], requires_grad=True)

    @torch.jit
    def f(x):
        s.k *= -1.0
        h = x * s.k
        return h * h * s.k, h

    y, h = f(x)
    # k was -1 inside: y = -x ** 2, h = -x
    first, of_h = torch.autograd.grad(y, (x, h), create_graph=True)
    assert (first.item(), of_h.item()) == (-2, 2)
    (second,) = torch.autograd.grad(first, x)
    assert second.item() == -2 and s.k == -1.0
