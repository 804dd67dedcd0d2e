"""What generated programs (test_generated_programs.py) have shown of compiled functions."""

import collections
import dataclasses
import functools
import types

import numpy
import pytest

import jaxgrad as torch

nn = torch.nn
ONE = torch.ones(1)


class Slots:
    """An object with attributes."""


# ---- objects that the function makes are new at each call


CONTAINERS = {
    "list": lambda: [1],
    "dict": lambda: {"a": 1},
    "set": lambda: {1},
    "deque": lambda: collections.deque([1]),
    "nested": lambda: [(1, [2])],
    "namespace": lambda: types.SimpleNamespace(a=1),
    "defaultdict": lambda: collections.defaultdict(list, a=[1]),
}


def spoil(value):
    """Change a container, as a caller may who keeps it."""
    if isinstance(value, list):
        value.append(3)
    elif isinstance(value, dict):
        value["b"] = 3
    elif isinstance(value, set):
        value.add(3)
    elif isinstance(value, types.SimpleNamespace):
        value.a = 3
    else:
        value.append(3)


class WithSlots:
    """A class whose subclasses have slots and attributes."""

    __slots__ = ("first", "second")


def test_the_order_of_attributes_beside_slots():
    own = type("Own", (WithSlots,), {})()
    own.late, own.second, own.kept = ONE, 1, 2

    @torch.jit
    def f(x):
        del own.late
        own.new, own.late, own.first = x * 2, x, x * 3
        return x

    for call in range(3):
        f(ONE * call)
        assert list(vars(own)) == ["kept", "new", "late"]
        assert (own.new.item(), own.first.item(), own.second) == (2 * call, 3 * call, 1)


class Stripped(Slots):
    """An object that leaves an attribute out of files."""

    def __init__(self, other=None):
        self.other, self.x = other, None

    def __getstate__(self):
        return {"x": self.x}

    def __setstate__(self, state):
        raise AssertionError("this is no file")


def test_an_object_that_a_call_makes_has_all_that_it_holds():
    kept = Stripped()

    @torch.jit
    def f(x):
        kept.other = Stripped(kept)
        kept.other.x = x * 2
        return kept.other

    for call in range(3):
        result = f(ONE * call)
        assert kept.other is result and result.other is kept and result.x.item() == 2 * call


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_that_a_call_makes_is_of_that_call(name):
    make, s = CONTAINERS[name], Slots()

    @torch.jit
    def f(x):
        s.log = make()
        return x * 2, types.SimpleNamespace(log=make())

    for _ in range(3):
        _, result = f(ONE)
        assert s.log == result.log == make()
        spoil(s.log)
        spoil(result.log)
    assert len(f.traces) == 1


def test_an_array_and_a_closure_that_a_call_makes():
    s = Slots()

    @torch.jit
    def f(x):
        s.array, count = numpy.zeros(1), 0

        def counter():
            nonlocal count
            count += 1
            return count

        s.counter = counter
        return x

    for _ in range(3):
        f(ONE)
        assert s.array.tolist() == [0] and s.counter() == 1 and s.counter() == 2
        s.array[0] = 5


def test_a_container_that_has_two_names_keeps_them():
    s = Slots()

    @torch.jit
    def f(x):
        s.log = log = [x]
        s.holder = types.SimpleNamespace(log=log)
        return log, [log]

    for _ in range(2):
        log, (same,) = f(ONE)
        assert log is same is s.log is s.holder.log


def test_functions_that_share_a_variable_share_it_later():
    @torch.jit
    def f(x):
        total = 0

        def add(number):
            nonlocal total
            total += number

        return x, types.SimpleNamespace(add=add, get=lambda: total)

    for _ in range(2):
        _, tools = f(ONE)
        tools.add(2)
        assert tools.get() == 2


# ---- objects from before stay what they are


@dataclasses.dataclass(frozen=True)
class Frozen:
    h: object


def scale(x, factor=ONE):
    return x * factor


OLD = {
    "list": [1],
    "list with a tensor": [ONE],
    "dict": {"b": ONE, "a": 1},
    "frozen dataclass": Frozen(ONE),
    "function": scale,
    "partial": functools.partial(scale, factor=ONE),
    "cached function": functools.lru_cache(abs),
    "function of the library": nn.functional.relu,
}


@pytest.mark.parametrize("name", OLD)
def test_an_object_from_before_is_returned_and_bound_itself(name):
    old, s = OLD[name], Slots()
    holder = [old]

    @torch.jit
    def f(x):
        s.held = holder[0]
        return x * 2, holder[0], types.SimpleNamespace(held=holder[0], y=x)

    for _ in range(2):
        _, result, space = f(ONE)
        assert result is space.held is s.held is old


# ---- lists whose elements are set


def test_an_element_that_is_set_beside_one_that_is_added():
    log = [True, 1]

    @torch.jit
    def f(x):
        log[0] = False
        log.append(2)
        return x

    for number in range(3):
        f(ONE)
        assert log == [False, 1, *[2] * (number + 1)]


def test_an_element_that_is_set_leaves_the_others():
    log = [0, 1]

    @torch.jit
    def f(x):
        log[0] = 5
        return x

    f(ONE)
    log[:] = [0, 7, 8]
    f(ONE)
    assert log == [5, 7, 8]


# ---- names that are removed, or were absent


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


# ---- what is set to what it was


def test_attributes_that_are_set_to_what_they_were():
    def scale(x):
        return x

    layer, tensor = nn.Identity(), torch.ones(1)
    for owner in (layer, tensor, scale):

        @torch.jit
        def f(x, owner=owner):
            owner.n = 2.0
            return scale(x)

        for _ in range(3):
            f(ONE)
            assert owner.n == 2
            owner.n = 5.0
        del owner.n
        f(ONE)
        assert owner.n == 2


# ---- members of modules, and tensors with two names


def test_parameters_that_change_places():
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    weights = one.weight, other.weight

    @torch.jit
    def f(x):
        one.weight, other.weight = other.weight, one.weight
        return x * one.weight.detach()

    for number in range(4):
        result = f(ONE)
        assert (one.weight, other.weight) == (weights if number % 2 else weights[::-1])
        assert result.item() == one.weight.item()


def test_a_submodule_that_is_replaced():
    net = nn.Sequential(nn.Identity())
    halves = nn.Identity(), nn.Flatten(0)
    net.a, net.b = halves

    @torch.jit
    def f(x):
        net.a, net.b = net.b, net.a
        return x

    for number in range(4):
        f(ONE)
        assert (net.a, net.b) == (halves if number % 2 else halves[::-1])


def test_a_tensor_that_a_tuple_has_too():
    class Kind:
        v = torch.full((1,), 2.0)

    pair, other = (1, Kind.v), torch.full((1,), 3.0)

    @torch.jit
    def f(x):
        nonlocal other
        other, Kind.v = Kind.v, other
        return pair[1] * 10 + Kind.v

    assert [f(ONE).item() for _ in range(4)] == [23, 22, 23, 22]


def test_a_parameter_and_a_plain_tensor_become_different_members():
    layer = nn.Identity()

    @torch.jit
    def f(x):
        layer.h = x
        return x * 2

    f(torch.ones(1, requires_grad=True))
    assert "h" in vars(layer) and not layer._parameters
    f(nn.Parameter(torch.ones(1)))
    assert "h" not in vars(layer) and list(layer._parameters) == ["h"]


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


def test_a_write_before_a_tensor_gets_other_memory():
    s = Slots()
    s.h = torch.tensor([2.0, 4.0])
    shown = s.h.detach()

    @torch.jit
    def f():
        s.h.mul_(0.5)
        s.h.data = s.h.data * 0.5

    f()
    assert shown.tolist() == [1, 2] and s.h.tolist() == [0.5, 1]
    shown = s.h.detach()
    f()
    assert shown.tolist() == [0.25, 0.5] and s.h.tolist() == [0.125, 0.25]


def test_a_tensor_that_a_frozen_dataclass_has_too():
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        h: object

    s, other = Slots(), torch.ones(1)
    s.h = torch.zeros(1)
    frozen = Frozen(s.h)

    @torch.jit
    def f():
        nonlocal other
        s.h, other = other, s.h
        s.h.add_(2)
        return frozen.h * 1, frozen

    # the second call changes the tensor of the dataclass
    assert [f()[0].item() for _ in range(3)] == [0, 2, 2]
    assert f()[1] is frozen


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


def test_an_instance_that_becomes_a_module():
    class Late(nn.Module):
        def other(self, x):
            return x

    class Trainer:
        def step(self, x):
            return x * 2

    trainer = Trainer()
    f = torch.jit(trainer.step)
    assert f(ONE).item() == 2
    trainer.__class__ = Late
    assert f(ONE).item() == 2


def test_an_attribute_of_a_layer_that_is_set_to_what_it_was():
    layer = nn.Identity()
    layer.rate = 3.0

    @torch.jit
    def f(x):
        layer.rate = 3.0
        return x

    f(ONE)
    layer.rate = 2.0
    f(ONE)
    assert layer.rate == 3.0


# ---- what runs again for a derivative finds the state of its call


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


@pytest.mark.parametrize("kind", [list, set, dict, bytearray])
def test_a_container_that_has_grown_is_as_it_was(kind):
    box = kind()

    def add():
        if kind is dict:
            box[len(box)] = 1
        elif kind is set:
            box.add(len(box))
        else:
            box.append(1)
        return len(box)

    x = torch.tensor([2.0], requires_grad=True)
    y = torch.jit(lambda x: x * x * add())(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item(), len(box)) == (4, 2, 1)


def test_a_default_that_has_grown_is_as_it_was():
    def counted(x, log=[]):  # noqa: B006
        log.append(1)
        return x * x * len(log)

    x = torch.tensor([2.0], requires_grad=True)
    f = torch.jit(lambda x: counted(x))
    for calls in (1, 2, 3):
        (first,) = torch.autograd.grad(f(x), x, create_graph=True)
        (second,) = torch.autograd.grad(first, x)
        assert (first.item(), second.item()) == (4 * calls, 2 * calls)


def test_a_tensor_that_is_replaced_and_has_another_name():
    s, weight = Slots(), torch.tensor([3.0], requires_grad=True)
    s.h = weight

    @torch.jit
    def f(x):
        y = (weight * s.h * x).sum()
        s.h = x * 2
        return y

    x = torch.tensor([2.0], requires_grad=True)
    (first,) = torch.autograd.grad(f(x), weight, create_graph=True)
    # y = 9 x, by weight 6 x
    assert first.item() == 12 and torch.autograd.grad(first, x)[0].item() == 6


def test_all_variables_of_a_module():
    module = types.ModuleType("of_test")
    module.a = 1.0
    f = torch.jit(lambda x: x * sum(n for n in vars(module).values() if isinstance(n, float)))
    assert f(ONE).item() == 1
    module.b = 2.0
    assert f(ONE).item() == 3


def test_an_instance_in_a_module_that_becomes_a_module():
    class Late(torch.nn.Module):
        def forward(self, x):
            return x * 2

    late = Slots()
    net = torch.nn.Sequential(torch.nn.Identity())
    f = torch.jit(lambda x: x * (1 + isinstance(net[0], Late)))
    assert f(ONE).item() == 1
    late.__class__ = Late
    net[0] = late
    assert f(ONE).item() == 2


def test_a_class_attribute_that_is_hidden_and_replaced():
    class Settings:
        scale = torch.tensor([0.25])

    box, scale = Settings(), Settings.scale

    @torch.jit
    def f(x):
        y = x * 2
        box.scale = y * 3
        return y

    y = f(torch.ones(1, requires_grad=True))
    Settings.scale = torch.tensor([4.0])
    assert torch.autograd.grad(box.scale, y)[0].item() == 3
    assert scale.item() == 0.25 and Settings.scale.item() == 4


def run_setting(owner, jit):
    """What a function sets on an object, from numbers that two names exchange."""
    box, values = Slots(), []
    box.a, box.b = 1.0, 2.0

    @jit
    def f(x):
        box.a, box.b = box.b, box.a
        owner.scale = box.a + box.b * 2
        return x * owner.scale

    for _ in range(4):
        values.append((f(ONE).item(), owner.scale))
        box.a += 1
    owner.scale = 7.0
    return [*values, jit(lambda x: x * owner.scale)(ONE).item()]


@pytest.mark.parametrize("make", [lambda: functools.partial(print), lambda: lambda: None, Slots])
def test_attributes_of_functions(make):
    assert run_setting(make(), torch.jit) == run_setting(make(), lambda function: function)


# by class: one, an attribute, its value of a number, and what gives that number
LIBRARYS_OWN = {
    "Normal": (
        lambda: torch.distributions.Normal(torch.zeros(1), 1.0),
        *("loc", lambda number: torch.tensor([number])),
        lambda normal: normal.mean,
    ),
    "AffineTransform": (
        lambda: torch.distributions.AffineTransform(0.0, 1.0),
        *("loc", float),
        lambda transform: transform(torch.zeros(1)),
    ),
    "TensorDataset": (
        lambda: torch.utils.data.TensorDataset(ONE),
        *("tensors", lambda number: (torch.tensor([number]),)),
        lambda dataset: dataset[0][0],
    ),
    "GradScaler": (
        lambda: torch.amp.GradScaler("cpu"),
        *("_growth_factor", float),
        lambda scaler: scaler.get_growth_factor(),
    ),
}


@pytest.mark.parametrize("kind", LIBRARYS_OWN)
def test_attributes_of_the_librarys_own_objects(kind):
    make, name, value_of, read = LIBRARYS_OWN[kind]
    owner, kept = make(), []
    f = torch.jit(lambda x: x * read(owner))
    for number in (2.0, 3.0, 4.0):
        kept.append(getattr(owner, name))  # a tensor that is gone would be missed
        setattr(owner, name, value_of(number))
        assert f(ONE).item() == number


@dataclasses.dataclass
class Data:
    h: object
    n: int = 2


def test_a_dataclass_in_a_result_is_the_one_that_is_bound():
    s = Slots()

    @torch.jit
    def f(x):
        s.data = Data(x * 2)
        other = Data(x * 3)
        return {"bound": s.data, "other": other, "both": [other, Data(s.data)]}

    for call in range(3):
        result = f(ONE * call)
        assert result["bound"] is s.data and s.data.h.item() == 2 * call
        assert result["both"][0] is result["other"] and result["both"][1].h is s.data


def test_a_class_with_slots_that_is_exchanged():
    kinds = [type("Kind", (), {"__slots__": ("a", "b"), "w": ONE * n}) for n in (1, 2)]
    own = kinds[0]()
    f = torch.jit(lambda x: x * own.w)
    assert f(ONE).item() == 1
    own.__class__ = kinds[1]
    assert f(ONE).item() == 2


def test_the_size_of_a_tensor_at_a_place_that_each_call_binds_anew():
    s = Slots()
    s.h = torch.ones(3)

    @torch.jit
    def f(x):
        size = sum(part.numel() for part in vars(s).values())
        s.h = x.sum()
        return x * size

    assert [f(torch.ones(2)).tolist() for _ in range(3)] == [[3, 3], [1, 1], [1, 1]]
    s.h = torch.ones(4)
    assert f(torch.ones(2)).tolist() == [4, 4]
