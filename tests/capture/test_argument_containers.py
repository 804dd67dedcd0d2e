"""Lists, dicts, sets and objects among the arguments that a compiled function changes: the caller
finds in them, at each call, what the uncompiled function leaves there.

Each world is built anew for the uncompiled and for the compiled function. It gives the function and
the arguments of its calls, among which the same container may stand again. Compared are arguments
and results, with the identities of all tensors and containers in them, and gradients.
"""

import collections
import dataclasses
import types

import pytest

import jaxgrad as torch

ONE = torch.ones(1)


class Slots:
    """An object with attributes."""


@dataclasses.dataclass
class Batch:
    x: object
    log: list = dataclasses.field(default_factory=list)


def of_calls(*makers):
    """The arguments of calls, each with a container of its own."""
    return [(ONE * number, *containers) for number, containers in enumerate(makers, 1)]


# ---- worlds: what the function does, and what it is called with


def one_list_again_and_again():
    def f(x, items):
        items.append(x * 2)
        return x + len(items)

    items = []
    return f, [*of_calls([items], [items], [items], [[]], [[ONE]])]


def a_history():
    def f(x, items):
        items.append(x * 2)
        return (x * x).sum()

    return f, [(torch.ones(2, requires_grad=True), []) for _ in range(3)]


def items_of_a_dict():
    def f(x, entries):
        entries["y"], entries["x"] = x * 2, entries["x"] + 1
        return x

    return f, of_calls(*[[{"x": ONE * 3}] for _ in range(3)], [{"y": ONE, "x": ONE}])


def a_cache_that_is_returned():
    def f(x, cache):
        cache.append(x * 2)
        return x, cache

    cache = []
    return f, of_calls([cache], [cache], [[]])


def what_is_removed():
    def f(x, entries):
        entries.pop("a")
        del entries["b"][0]
        return x

    return f, of_calls(*[[{"a": ONE, "b": [ONE, ONE * 2]}] for _ in range(3)])


def what_is_cleared():
    def f(x, items):
        total = sum(items) * x
        items.clear()
        return total

    return f, of_calls(*[[[ONE, ONE * 2]] for _ in range(3)])


def another_order():
    def f(x, items):
        items.reverse()
        items.insert(1, x)
        return x

    return f, of_calls(*[[[ONE * 2, ONE * 3]] for _ in range(3)])


def containers_in_containers():
    def f(x, entries):
        entries["a"]["b"].append((x, [x * 2]))
        entries["new"] = []
        return x

    return f, of_calls(*[[{"a": {"b": []}}] for _ in range(3)])


def one_in_another():
    def f(x, first, second):
        first.append(second)
        second.append(x)
        return x

    return f, of_calls(*[[[], []] for _ in range(3)])


def tensors_that_change_places():
    def f(x, first, second):
        first[0], second[0] = second[0], first[0]
        return x

    return f, of_calls(*[[[ONE * 2], [ONE * 3]] for _ in range(3)])


def an_element_that_is_written():
    def f(x, items):
        items[0].add_(x)
        items.append(items[0])
        return items[0] * 2

    return f, of_calls(*[[[ONE * 2]] for _ in range(3)])


def a_counter():
    def f(x, counter):
        counter["n"] += 1
        return x * counter["n"]

    counter = {"n": 0}
    return f, of_calls(*[[counter]] * 4, [{"n": 7}])


def a_rate():
    def f(x, settings):
        settings["rate"] *= 0.5
        return x * settings["rate"]

    settings = {"rate": 1.0}
    return f, of_calls(*[[settings]] * 4)


def one_list_twice():
    def f(x, first, second):
        first.append(x)
        return x * len(second)

    items = []
    return f, of_calls([items, items], [items, items], [[], []], [[], []], [items, items])


def a_list_of_the_function():
    log = []

    def f(x, items):
        items.append(x)
        return x * len(log)

    return f, of_calls([log], [log], [[]], [[]], [log])


def a_list_of_the_function_that_it_changes_by_itself():
    log = []

    def f(x, items):
        log.append(x)
        return x * len(items)

    return f, of_calls([[]], [[]], [log], [log], [[ONE]])


def a_list_that_is_kept():
    kept = Slots()

    def f(x, items):
        kept.items = items
        items.append(x)
        return kept

    return f, of_calls([[]], [[]], [[]])


def a_dataclass():
    def f(x, batch):
        batch.x = batch.x * 2
        batch.log.append(batch.x)
        return batch.x.sum()

    return f, of_calls(*[[Batch(torch.ones(2))] for _ in range(3)])


def other_classes():
    def f(x, default, ordered):
        default["a"].append(x)
        ordered.move_to_end("a")
        return x

    def make():
        return collections.defaultdict(list), collections.OrderedDict(a=ONE, b=ONE * 2)

    return f, of_calls(*[make() for _ in range(3)])


def a_set():
    def f(x, names):
        names.add(3)
        return x * len(names)

    names = {1}
    return f, of_calls([names], [names], [{5}])


def a_deque():
    def f(x, last):
        last.append(x)
        return x

    last = collections.deque(maxlen=2)
    return f, of_calls([last], [last], [last], [collections.deque()])


def an_object():
    def f(x, slots):
        slots.items.append(x)
        slots.y = x * 2
        return x

    objects = [types.SimpleNamespace(items=[]) for _ in range(2)]
    return f, of_calls(*[objects[:1]] * 3, objects[1:])


def keywords():
    def inner(x, **options):
        options["items"].append(x)
        options["n"] = 1
        return x

    return inner, [(ONE, {"items": []}) for _ in range(3)]


def new_containers():
    kept = Slots()

    def f(x, entries):
        kept.all = entries["list"], entries["dict"], entries["deque"] = [], {}, collections.deque()
        kept.pair = (x, [])
        return kept

    return f, of_calls(*[[{}] for _ in range(3)])


WORLDS = [
    *(one_list_again_and_again, a_history, items_of_a_dict, a_cache_that_is_returned),
    *(what_is_removed, what_is_cleared, another_order, containers_in_containers, one_in_another),
    *(tensors_that_change_places, an_element_that_is_written, a_counter, a_rate, one_list_twice),
    *(a_list_of_the_function, a_list_of_the_function_that_it_changes_by_itself),
    *(a_list_that_is_kept, a_dataclass, other_classes, a_set, a_deque, an_object, keywords),
    new_containers,
]


# ---- the comparison


def shown(value, met):
    """A value with all that it holds; what was met before is a number. met: by id."""
    if isinstance(value, torch.Tensor | list | dict | collections.deque | Slots | Batch):
        if id(value) in met:
            return met[id(value)]
        met[id(value)] = len(met)
    if isinstance(value, torch.Tensor):
        gradient = value.grad.tolist() if value.is_leaf and value.grad is not None else None
        return value.tolist(), value.requires_grad, value._version, gradient
    if isinstance(value, list | tuple | collections.deque):
        return type(value), [shown(part, met) for part in value]
    if isinstance(value, dict):
        return type(value), [(key, shown(part, met)) for key, part in value.items()]
    if hasattr(value, "__dict__"):
        return type(value), shown(vars(value), met)
    return value


def outcome(world, compiled):
    """What each call leaves, and the arguments and results of all calls at the end."""
    function, calls = world()
    function, results, snapshots = compiled(function), [], []
    for *args, last in calls:
        is_named = world is keywords
        results.append(function(*args, **last) if is_named else function(*args, last))
        if world is a_history:
            (results[-1] + last[-1].sum()).backward()
        snapshots.append(shown((args, last, results[-1]), {}))
    return [*snapshots, shown((calls, results), {})]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_what_a_function_changes_of_its_arguments(world):
    assert outcome(world, torch.jit) == outcome(world, lambda function: function)


def test_one_program_changes_the_list_of_each_call():
    @torch.jit
    def f(x, items):
        items.append(x * 2)
        return x

    for number in (1.0, 2.0, 3.0):
        items = [ONE]
        f(ONE * number, items)
        assert [tensor.item() for tensor in items] == [1, 2 * number] and items[0] is ONE
    assert len(f.traces) == 1


def test_an_error_leaves_the_list_as_it_was():
    @torch.jit
    def f(x, items):
        items.append(x)
        if len(items) > 1:
            raise ValueError("full")
        return x

    items = []
    f(ONE, items)
    with pytest.raises(ValueError, match="full"):
        f(ONE, items)
    assert len(items) == 1 and items[0] is ONE


def test_second_derivatives_of_what_is_put_into_a_list():
    def f(x, items):
        items.append(x**3)
        return x * 2

    for compiled in (lambda function: function, torch.jit):
        x, items = torch.full((1,), 2.0, requires_grad=True), []
        total = compiled(f)(x, items).sum() + items[0].sum()
        (slope,) = torch.autograd.grad(total, x, create_graph=True)
        assert slope.item() == 14 and torch.autograd.grad(slope, x)[0].item() == 12
