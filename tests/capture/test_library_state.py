"""What code sets on objects, classes and modules of libraries is state as any other: the compiled
function does what the same lines do uncompiled.
"""

import abc
import builtins
import collections
import functools
import io
import logging
import math
import queue
import random
import threading
import types
import weakref

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.frontend import methods

nn, F = torch.nn, torch.nn.functional
ONE = torch.ones(2)


class Kept:
    """An object that something refers to."""


KEPT = Kept()


def subclass(kind):
    return type(f"Own{kind.__name__}", (kind,), {})


HOLDERS = {
    "a logger": lambda: logging.Logger("holder"),
    "a function with a cache": lambda: functools.lru_cache(lambda: 1),
    "a queue": queue.Queue,
    "an event": threading.Event,
    "a thread": threading.Thread,
    "an exception": ValueError,
    "a generator of numbers": random.Random,
    "a polynomial": lambda: np.polynomial.Polynomial([1, 2]),
    "a file": io.StringIO,
    "a partial method": lambda: functools.partialmethod(abs),
    "a cached property": lambda: functools.cached_property(abs),
    "a compiled function": lambda: torch.jit(abs),
    "a context": torch.no_grad,
    "an int": lambda: subclass(int)(3),
    "a float": lambda: subclass(float)(3),
    "a string": lambda: subclass(str)("a"),
    "a tuple": lambda: subclass(tuple)([1]),
    "a property": lambda: subclass(property)(abs),
    "a static method": lambda: subclass(staticmethod)(abs),
    "a weak reference": lambda: subclass(weakref.ref)(KEPT),
    "a class of a layer": lambda: nn.Linear,
    "the class of modules": lambda: nn.Module,
    "the class of Functions": lambda: torch.autograd.Function,
    "an optimizer's class": lambda: torch.optim.SGD,
    "a class of Python": lambda: abc.ABC,
    "the package": lambda: torch,
    "a module of the package": lambda: F,
    "a module of Python": lambda: threading,
}


def read(holder):
    """A number that is read, and changes outside."""
    holder.mark = 1.0
    return lambda x: x * holder.mark, lambda call: setattr(holder, "mark", call + 2.0)


def count(holder):
    """A number that the function changes."""
    holder.mark = 1.0

    def function(x):
        holder.mark = holder.mark + 1
        return x * holder.mark

    return function, lambda call: setattr(holder, "mark", 10.0) if call == 2 else None


def absent(holder):
    """A name that comes and goes."""

    def change(call):
        if call == 1:
            holder.mark = 10.0
        if call == 3:
            del holder.mark

    return lambda x: x * getattr(holder, "mark", 3.0), change


def tensor(holder):
    """A tensor that the function sets."""
    holder.mark = None

    def function(x):
        holder.mark = x * 2
        return x + 1

    return function, lambda call: None


def inside(holder):
    """A list that changes in place."""
    holder.mark = [1.0]
    return lambda x: x * holder.mark[0], lambda call: holder.mark.append(holder.mark.pop() + 1)


def drawn(holder):
    """A number that each call draws."""
    holder.mark = 0.0

    def function(x):
        holder.mark = random.random()
        return x * holder.mark

    return function, lambda call: random.seed(call)


def shown(value):
    return value.tolist() if isinstance(value, torch.Tensor) else value


def results(make, program, jit):
    holder = make()
    try:
        random.seed(0)
        function, change = program(holder)
        function, values = jit(function), []
        for call in range(5):
            values.append(function(ONE * (call + 1)).tolist())
            values.append(shown(getattr(holder, "mark", None)))
            change(call)
        return [*values, shown(getattr(holder, "mark", None))]
    finally:
        if hasattr(holder, "mark"):
            del holder.mark


@pytest.mark.filterwarnings("ignore:.*is traced at every call", "ignore:.*runs uncompiled")
@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("program", [read, count, absent, tensor, inside, drawn])
def test_an_attribute_of_a_library_object(name, program):
    make = HOLDERS[name]
    assert results(make, program, torch.jit) == results(make, program, lambda function: function)


def test_a_number_of_ones_own_class_is_told_by_its_attributes():
    kind, s = subclass(int), Kept()
    s.number = kind(3)
    s.number.scale = 2.0
    f = torch.jit(lambda x: x * s.number.scale)
    assert f(ONE).tolist() == [2, 2]
    s.number = kind(3)
    s.number.scale = 5.0
    assert f(ONE).tolist() == [5, 5]


# ---- functions in the place of a library's


FACTOR = 2.0


def doubled(*arguments):
    return arguments[-1] * FACTOR


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    ("place", "name", "function"),
    [
        (nn.Linear, "forward", lambda: nn.Linear(2, 2)),
        (nn.Module, "__call__", lambda: nn.Linear(2, 2)),
        (F, "relu", lambda: lambda x: F.relu(x)),
    ],
    ids=["forward", "call", "function"],
)
def test_a_function_that_replaces_a_library_s(monkeypatch, place, name, function, is_first):
    function = function()
    f = torch.jit(function)
    if not is_first:
        assert torch.equal(f(ONE), function(ONE))
    monkeypatch.setattr(place, name, doubled)
    assert f(ONE).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert f(ONE).tolist() == [5, 5]
    monkeypatch.undo()
    assert torch.equal(f(ONE), function(ONE))


def test_a_forward_of_an_instance_reads_a_global(monkeypatch):
    net = nn.Sequential(nn.Linear(2, 2))
    net.forward = doubled
    f = torch.jit(lambda x: net(x))
    assert f(ONE).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    assert f(ONE).tolist() == [7, 7]


def test_a_name_among_the_builtins(monkeypatch):
    monkeypatch.setattr(builtins, "FACTOR_OF_ALL", 2.0, raising=False)
    f = torch.jit(lambda x: x * FACTOR_OF_ALL)  # noqa: F821
    assert f(ONE).tolist() == [2, 2]
    monkeypatch.setattr(builtins, "FACTOR_OF_ALL", 3.0)
    assert f(ONE).tolist() == [3, 3]
    monkeypatch.setattr(math, "pi", 3.0)
    g = torch.jit(lambda x: x * math.pi)
    assert g(ONE).tolist() == [3, 3]


def test_what_a_library_changes_by_itself_is_no_state():
    calls = queue.SimpleQueue()
    waiting = queue.Queue()

    @torch.jit
    def f(x):
        calls.put(1)
        return x * (2 + 0 * waiting.unfinished_tasks)

    waiting.put(1)
    f(ONE)
    assert waiting.get() == 1 and waiting.unfinished_tasks == 1
    f(ONE)
    assert waiting.unfinished_tasks == 1


# ---- functions and methods that users replace, made at their first use or before


RATE = 2.0


def tripled(x):
    return x * 3


def forget(monkeypatch, owner, name):
    """Let a function be made anew at its next use, as in a new process."""
    if owner is torch.Tensor:
        again = methods.operator_method(name, name)
        monkeypatch.setattr(torch.Tensor, name, again)
    else:
        monkeypatch.delitem(vars(owner), name, raising=False)


OPERATORS = {
    "torch": (torch, "sin", lambda x: torch.sin(x)),
    "functional": (F, "softplus", lambda x: F.softplus(x)),
    "method": (torch.Tensor, "sin", lambda x: x.sin()),
}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("kind", OPERATORS)
def test_an_operator_that_is_replaced(kind, is_known, monkeypatch):
    owner, name, function = OPERATORS[kind]
    want = function(ONE)
    if not is_known:
        forget(monkeypatch, owner, name)
    f = torch.jit(function)
    assert torch.equal(f(ONE), want)
    monkeypatch.setattr(owner, name, tripled)
    assert f(ONE).tolist() == [3, 3]
    monkeypatch.undo()
    assert torch.equal(f(ONE), want)


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_replay_runs_the_operators_of_its_call(kind, monkeypatch):
    owner, name, function = OPERATORS[kind]
    x = torch.tensor([1.0], requires_grad=True)

    def second(f, between=lambda: None):
        (first,) = torch.autograd.grad(f(x), x, create_graph=True)
        between()
        return torch.autograd.grad(first, x)[0]

    want = second(function)
    f = torch.jit(function)
    assert torch.allclose(second(f, lambda: monkeypatch.setattr(owner, name, tripled)), want)
    assert getattr(owner, name) is tripled
    monkeypatch.undo()
    assert torch.allclose(second(f, lambda: monkeypatch.delattr(owner, name)), want)
    assert name not in vars(owner)


def test_a_second_derivative_after_a_method_was_removed(monkeypatch):
    x = torch.tensor([1.0], requires_grad=True)
    f = torch.jit(lambda x: x.sin())
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    monkeypatch.delattr(torch.Tensor, "sin")
    (second,) = torch.autograd.grad(first, x)
    assert math.isclose(second.item(), -math.sin(1), rel_tol=1e-6)
    assert "sin" not in vars(torch.Tensor)
    with pytest.raises(AttributeError, match="sin"):
        f(x)


def test_what_methods_of_the_users_read(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "rated", lambda x: x * RATE, raising=False)
    f = torch.jit(lambda x: x.rated())
    assert f(ONE).tolist() == [2, 2]
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert f(ONE).tolist() == [5, 5]
    monkeypatch.setattr(torch.Tensor, "rated", tripled)
    assert f(ONE).tolist() == [3, 3]


def test_a_method_of_tensors_of_a_class(monkeypatch):
    class Own(torch.Tensor):
        pass

    f = torch.jit(lambda x: x.cos())
    x = torch.zeros(1).as_subclass(Own)
    assert f(x).tolist() == [1]
    monkeypatch.setattr(torch.Tensor, "cos", lambda x: x + 7)
    assert f(x).tolist() == [7]


def test_a_method_that_the_function_replaces_for_a_while():
    def f(x):
        before = torch.Tensor.tanh
        torch.Tensor.tanh = tripled
        try:
            return x.tanh()
        finally:
            torch.Tensor.tanh = before

    compiled = torch.jit(f)
    assert [compiled(ONE).tolist() for _ in range(3)] == [[3, 3]] * 3
    assert torch.allclose(ONE.tanh(), torch.full((2,), math.tanh(1)))


def test_methods_stay_that_a_failed_trace_uses_for_the_first_time(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "neg", methods.operator_method("neg", "neg"))
    counts = types.SimpleNamespace(neg=0)

    @torch.compile
    def f(x):
        assert type(x) is torch.Tensor
        setattr(counts, "neg", counts.neg + 1)  # noqa: B010 - by its name
        return x.neg().unique()  # whose size depends on numbers

    with pytest.warns(UserWarning, match="runs uncompiled"):
        values = [f(torch.tensor([3.0, 3.0])).tolist() for _ in range(3)]
    assert values == [[-3.0]] * 3 and counts.neg == 3
    assert torch.ones(1).neg().item() == -1


def test_a_counter_on_the_class_of_tensors():
    def f(x):
        torch.Tensor.calls = getattr(torch.Tensor, "calls", 0) + 1
        return x * torch.Tensor.calls

    try:
        compiled = torch.jit(f)
        assert [compiled(ONE).tolist()[0] for _ in range(4)] == [1, 2, 3, 4]
        assert torch.Tensor.calls == 4
    finally:
        del torch.Tensor.calls


# ---- names that are set and deleted again


def places():
    class Own:
        pass

    class Slots:
        __slots__ = ("late",)

    yield from [Own, Own(), Slots(), nn.Module(), nn.Linear, nn.Linear(2, 2), torch]
    yield from [lambda: 1, types.SimpleNamespace(), logging.Logger("late"), torch.ones(1)]


def set_by_name(place, x):
    place.late = x
    del place.late


def set_by_string(place, x):
    for name in ("late",):
        setattr(place, name, x)
        delattr(place, name)


@pytest.mark.parametrize("place", list(places()), ids=lambda place: type(place).__name__)
@pytest.mark.parametrize("change", [set_by_name, set_by_string])
def test_a_name_that_is_set_and_deleted(place, change):
    f = torch.jit(lambda x: change(place, x) or x * 2)
    f(ONE)
    for value in (ONE * 0, 3):
        place.late = value
        assert f(ONE).tolist() == [2, 2] and not hasattr(place, "late")


def test_an_item_that_is_set_and_deleted():
    items = {}

    @torch.jit
    def f(x):
        global late
        late = x
        del late
        items["a"] = x
        items.pop("a")
        return x * 2

    f(ONE)
    globals()["late"], items["a"] = 3, 3
    f(ONE)
    assert "late" not in globals() and not items


# ---- places that hold the same tensor, and exchange their tensors


def in_a_list(first):
    held = [first, first]

    def swap(x):
        held[0] = x
        held[0], held[1] = held[1], held[0]

    return swap, lambda: held


def in_a_dict(first):
    held = {"p": first, "q": first}

    def swap(x):
        held["p"] = x
        held["p"], held["q"] = held["q"], held["p"]

    return swap, lambda: list(held.values())


def in_variables(first):
    p = q = first

    def swap(x):
        nonlocal p, q
        p = x
        p, q = q, p

    return swap, lambda: [p, q]


def in_a_class(first):
    class Own:
        p = first

    own = Own()

    def swap(x):
        Own.p = x
        Own.p, own.p = own.p, Own.p

    return swap, lambda: [Own.p, own.p]


def in_a_deque(first):
    held = collections.deque([first, first])

    def swap(x):
        held[0] = x
        held.rotate(1)

    return swap, lambda: list(held)


@pytest.mark.filterwarnings("ignore:.*is traced at every call")
@pytest.mark.parametrize("make", [in_a_list, in_a_dict, in_variables, in_a_class, in_a_deque])
def test_places_that_hold_one_tensor_and_change_places(make):
    tensors = [torch.zeros(2), torch.ones(2, requires_grad=True), torch.ones(2)]
    known = []
    for jit in (torch.jit, lambda function: function):
        swap, held = make(tensors[0])
        swap, states = jit(swap), []
        for number in (0, 1, 1, 0, 0, 1, 2, 2, 1):
            swap(tensors[number])
            numbers = {id(known): n for n, known in enumerate(tensors)}
            states.append([numbers[id(tensor)] for tensor in held()])
        known.append(states)
    assert known[0] == known[1]


class Logged(nn.Module):
    """A module of a library: no module of the user's has its name."""

    __module__ = "builtins"

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.utils.weight_norm(nn.Linear(6, 6), dim=1)
        self.means = []

    def forward(self, x):
        x = torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False)
        self.means.append(x.detach().mean())
        return self.second(x)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_list_that_a_pass_meets_again_keeps_what_the_call_has_added():
    compiled = torch.compile(Logged())
    for count in (1, 2, 3):
        compiled(torch.ones(6, 6)).sum().backward()
        assert len(compiled.means) == count
