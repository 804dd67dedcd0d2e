"""Names that a compiled function binds anew, where other names hold the same tensor or object."""

import dataclasses

import pytest

import jaxgrad as torch

nn = torch.nn


ONE = torch.ones(1)


class Slots:
    """An object with attributes."""


def numbers(function, calls, before=lambda number: None):
    """The numbers that the calls of a function return."""
    results = []
    for number, arguments in enumerate(calls):
        before(number)
        results.append(function(*arguments).tolist())
    return results


def begin_again():
    s = Slots()
    s.start = s.h = torch.zeros(1)

    def f(x, begin):
        if begin:
            s.h = s.start
        s.h = s.h + x
        return s.start * 10 + s.h

    return f, [(ONE, begin) for begin in (True, False, False, True, False)]


def attribute_and_item():
    state = {"start": torch.zeros(1)}
    state["h"] = state["start"]

    def f(x):
        state["h"] = state["h"] + x
        return state["start"] * 10 + state["h"]

    return f, [(ONE,)] * 3


def closure_variables():
    start = h = torch.zeros(1)

    def f(x):
        nonlocal h
        h = h + x
        return start * 10 + h

    return f, [(ONE,)] * 3


def elements():
    state = [torch.zeros(1)] * 2

    def f(x):
        state[1] = state[1] + x
        return state[0] * 10 + state[1]

    return f, [(ONE,)] * 3


def leaf_of_a_tuple():
    s = Slots()
    s.h = torch.zeros(1), torch.zeros(1)
    s.first = s.h[0]

    def f(x):
        s.h = s.h[0] + x, s.h[1] + 2 * x
        return s.first * 100 + s.h[0] + s.h[1]

    return f, [(ONE,)] * 3


def parameter():
    layer, s = nn.Linear(1, 1), Slots()
    nn.init.ones_(layer.weight)
    s.h = layer.weight

    def f(x):
        s.h = s.h + x
        return (layer.weight * 10 + s.h).detach()[0]

    return f, [(ONE,)] * 3


def buffer():
    layer, s = nn.BatchNorm1d(1), Slots()
    s.h = layer.running_mean

    def f(x):
        s.h = s.h + x
        return layer.running_mean * 10 + s.h

    return f, [(ONE,)] * 3


def buffer_of_an_own_module():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("start", torch.zeros(1))
            self.slots = Slots()
            self.slots.h = self.start

        def forward(self, x):
            self.slots.h = self.slots.h + x
            return self.slots.h + 10 * self.start

    return Layer(), [(ONE,)] * 3


def written():
    s = Slots()
    s.start = s.h = torch.zeros(1)

    def f(x):
        s.h.add_(x)
        result = s.start * 10 + s.h
        s.h = s.h * 1
        return result

    return f, [(ONE,)] * 3


def best_so_far():
    s = Slots()
    s.h = s.best = torch.zeros(1)

    def f(x, is_best):
        s.h = s.h + x
        if is_best:
            s.best = s.h
        return s.best * 100 + s.h

    return f, [(ONE, is_best) for is_best in (False, True, False, False, True, True, False)]


ALIASES = {
    begin_again: [1, 2, 3, 1, 2],
    attribute_and_item: [1, 2, 3],
    closure_variables: [1, 2, 3],
    elements: [1, 2, 3],
    leaf_of_a_tuple: [3, 6, 9],
    parameter: [12, 13, 14],
    buffer: [1, 2, 3],
    buffer_of_an_own_module: [1, 2, 3],
    written: [11, 12, 13],
    best_so_far: [1, 202, 203, 204, 505, 606, 607],
}


@pytest.mark.parametrize("world", ALIASES, ids=lambda world: world.__name__)
def test_a_tensor_with_two_names(world):
    for compiled in (lambda function: function, torch.jit):
        function, calls = world()
        assert numbers(compiled(function), calls) == [[number] for number in ALIASES[world]]


def test_a_name_that_is_bound_at_each_call_is_traced_twice():
    # by itself, and beside a list that the function only appends to
    s, log = Slots(), []
    s.h = torch.zeros(1)
    log.append(s.h)

    @torch.jit
    def f(x):
        s.h = s.h + x
        log.append(s.h)
        return s.h

    assert numbers(f, [(ONE,)] * 6) == [[number] for number in range(1, 7)]
    assert len(f.traces) == 1 and [tensor.item() for tensor in log] == list(range(7))


@dataclasses.dataclass(frozen=True)
class Frozen:
    h: object


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
