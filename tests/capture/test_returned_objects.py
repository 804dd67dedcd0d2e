"""Objects that a compiled function makes or returns: each call has its own, and one stays one."""

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


class Stripped(Slots):
    """An object that leaves an attribute out of files."""

    def __init__(self, other=None):
        self.other, self.x = other, None

    def __getstate__(self):
        return {"x": self.x}

    def __setstate__(self, state):
        raise AssertionError("this is no file")


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


@dataclasses.dataclass
class Data:
    h: object
    n: int = 2


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


def numbers(function, calls, before=lambda number: None):
    """The numbers that the calls of a function return."""
    results = []
    for number, arguments in enumerate(calls):
        before(number)
        results.append(function(*arguments).tolist())
    return results


class Mapping(dict):
    """A dict of the user's."""


class Sequence(list):
    """A list of the user's."""


class Pair(tuple):
    """A tuple of the user's."""

    __slots__ = ()


class Output:
    """An object with attributes."""

    def __init__(self, loss):
        self.loss = loss

    def get(self):
        return self.loss


class Slotted:
    """An object with slots."""

    __slots__ = ("loss",)

    def __init__(self, loss):
        self.loss = loss


class Cycle:
    """An object that refers to itself."""

    def __init__(self, loss):
        self.loss, self.cycle = loss, self


@dataclasses.dataclass(frozen=True)
class FrozenLoss:
    """A dataclass that cannot be changed."""

    loss: object


def closure(loss):
    return lambda: loss


HOLDERS_OF_LOSSES = {
    "a class of dict": (lambda loss: Mapping(loss=loss), lambda output: output["loss"]),
    "OrderedDict": (
        lambda loss: collections.OrderedDict(loss=loss),
        lambda output: output["loss"],
    ),
    "defaultdict": (
        lambda loss: collections.defaultdict(list, loss=[loss]),
        lambda output: output["loss"][0],
    ),
    "a class of list": (lambda loss: Sequence([loss]), lambda output: output[0]),
    "a class of tuple": (lambda loss: Pair((loss, 1)), lambda output: output[0]),
    "SimpleNamespace": (lambda loss: types.SimpleNamespace(loss=loss), lambda output: output.loss),
    "deque": (lambda loss: collections.deque([loss], maxlen=2), lambda output: output[0]),
    "set": (lambda loss: {loss}, lambda output: next(iter(output))),
    "frozenset": (lambda loss: frozenset([loss]), lambda output: next(iter(output))),
    "UserDict": (lambda loss: collections.UserDict(loss=loss), lambda output: output["loss"]),
    "ChainMap": (lambda loss: collections.ChainMap({"loss": loss}), lambda output: output["loss"]),
    "partial": (lambda loss: functools.partial(abs, loss), lambda output: output()),
    "object": (Output, lambda output: output.loss),
    "slots": (Slotted, lambda output: output.loss),
    "frozen dataclass": (FrozenLoss, lambda output: output.loss),
    "method": (lambda loss: Output(loss).get, lambda output: output()),
    "closure": (closure, lambda output: output()),
    "cycle": (Cycle, lambda output: output.cycle.cycle.loss),
    "nested": (lambda loss: [Mapping(a=Output((loss,)))], lambda output: output[0]["a"].loss[0]),
}


@pytest.mark.parametrize("name", HOLDERS_OF_LOSSES)
def test_a_result_with_a_history_in_a_container(name):
    make, take = HOLDERS_OF_LOSSES[name]
    compiled, outputs = torch.jit(lambda x: make((x * x).sum())), []
    for number in (1.0, 2.0, 3.0):
        x = torch.tensor([number, number], requires_grad=True)
        outputs.append(compiled(x))
        assert type(outputs[-1]) is type(make(x.sum()))
        take(outputs[-1]).backward()
        assert x.grad.tolist() == [2 * number] * 2
    assert [take(output).item() for output in outputs] == [2, 8, 18]
    assert len(compiled.traces) == 1


def test_results_that_are_one_object_stay_one():
    held = Output(3)

    @torch.jit
    def f(x):
        h = x * 2
        output = Output(h)
        output.log = [1]
        return output, [output], h, types.SimpleNamespace(held=held, y=x * 3)

    for number in (1.0, 2.0):
        first, (second,), h, space = f(ONE * number)
        assert first is second and first.loss is h and first.log == [1]
        first.log.append(2)  # of this call alone
        assert space.held is held and space.y.tolist() == [number * 3]


def test_an_object_that_each_call_puts_into_another():
    s = Slots()
    s.state = Output(torch.zeros(1))

    @torch.jit
    def f(x):
        s.state = Output(s.state.loss + x)
        return s.state.loss * 2

    assert numbers(f, [(ONE * number,) for number in range(5)]) == [[0], [2], [6], [12], [20]]
