"""Containers of tensors at places that compiled functions bind anew."""

import collections

import pytest

import jaxgrad as torch

ONE = torch.ones(1)


class Slots:
    """An object with attributes."""


def run_turning(jit, make):
    s = Slots()
    s.a, s.b, s.c = make(1.0), make(2.0), make(3.0)
    calls = []

    @jit
    def turn(x):
        s.a, s.b, s.c = s.b, s.c, s.a
        key = 0 if isinstance(s.a, list) else "h"
        s.b[key] = s.b[key] + x
        return s.a[key] * 1, s.c

    for _ in range(7):
        a, b, c = s.a, s.b, s.c
        result, last = turn(ONE)
        numbers = [part.item() for box in (s.a, s.b, s.c) for part in values_of(box)]
        calls.append((result.item(), numbers, s.a is b, s.b is c, s.c is a, last is a))
    return calls


def values_of(box):
    return box if isinstance(box, list) else list(box.values())


@pytest.mark.parametrize(
    "make", [lambda n: [torch.tensor(n)], lambda n: {"h": torch.tensor(n)}], ids=["list", "dict"]
)
def test_containers_that_change_places(make):
    assert run_turning(torch.jit, make) == run_turning(lambda function: function, make)


def run_pinned(jit):
    box, s = [torch.zeros(1)], Slots()
    s.a, s.b = box, [torch.ones(1)]
    calls = []

    @jit
    def swap(x):
        s.a, s.b = s.b, s.a
        s.a[0] = s.a[0] + x
        return box[0] * 1

    for _ in range(5):
        result = swap(ONE)
        calls.append((result.item(), box[0].item(), s.a is box, s.b is box))
    return calls


def test_a_container_that_changes_places_and_has_another_name():
    assert run_pinned(torch.jit) == run_pinned(lambda function: function)


def run_one_object(jit):
    s = Slots()
    s.a = s.b = [torch.zeros(1)]
    calls = []

    @jit
    def f(x):
        s.a[0] = s.a[0] + x
        s.a, s.b = s.b, s.a
        return s.b[0] * 1

    for number in range(6):
        if number == 3:
            s.b = [torch.ones(1)]
        calls.append((f(ONE).item(), s.a[0].item(), s.b[0].item(), s.a is s.b))
    return calls


def test_a_container_with_two_names_that_becomes_two():
    assert run_one_object(torch.jit) == run_one_object(lambda function: function)


def run_left_container(jit, change):
    """What is in a list that the function changes after it has let go of one of its two names."""
    elsewhere = collections.ChainMap({"h": torch.zeros(1)}, {"n": 2.0})
    own = [1, elsewhere.maps]

    @jit
    def f(x):
        own[1] = 0
        change(elsewhere.maps, x)

    calls = []
    for value in (3.0, 4.0):
        f(torch.tensor([value]))
        calls.append((repr(elsewhere.maps), repr(own)))
    return calls


@pytest.mark.parametrize(
    "change",
    [
        lambda maps, x: maps.__setitem__(0, {"h": x.detach()}),
        lambda maps, x: maps.append({"k": x * 2}),
        lambda maps, x: maps.clear(),
    ],
    ids=["replaced", "appended", "cleared"],
)
def test_a_container_whose_other_name_was_dropped(change):
    assert run_left_container(torch.jit, change) == run_left_container(lambda f: f, change)


# ---- containers without tensors that each call replaces


def emptied(s):
    count = len(s.box)
    s.box = {}
    return count


def filled_anew(s):
    count = len(s.box)
    s.box = {}
    s.box["a"] = 1
    return count


def another_list(s):
    count = len(s.box)
    s.box = []
    return count


def window(s):
    count = len(s.box)
    s.box = [*s.box[-2:], 1]
    return count


def copied(s):
    s.box = dict(s.box)
    return s.box["a"]


def copied_inside(s):
    s.box = {**s.box, "b": [*s.box["b"]]}
    return s.box["a"]


def kept_outside(s):
    s.other, s.box = s.box, list(s.box)
    s.box.append(len(s.other))
    return len(s.box) % 2


REPLACED = [
    (emptied, dict, 1),
    (filled_anew, dict, 2),
    (another_list, list, 1),
    (window, list, 4),
    (copied, lambda: {"a": 2}, 1),
    (copied_inside, lambda: {"a": 2, "b": [3]}, 1),
    (kept_outside, list, None),
]


@pytest.mark.filterwarnings("ignore:.*is traced at every call")
@pytest.mark.parametrize(
    ("change", "make", "count"), REPLACED, ids=lambda c: getattr(c, "__name__", "")
)
def test_a_container_that_each_call_replaces(change, make, count):
    runs = []
    for jit in (lambda f: f, torch.jit):
        s, calls = Slots(), []
        s.box = make()
        f = jit(lambda x, s=s: x * change(s))
        for number in range(8):
            calls.append((f(ONE).item(), repr(vars(s))))
            if number == 5:  # code outside changes the one of now
                s.box = make()
        runs.append(calls)
    assert runs[0] == runs[1] and count in (f.count, None)


# ---- containers that contain themselves


def test_a_container_that_ceases_to_contain_itself():
    inner = [torch.ones(1)]
    inner.append(inner)
    own = [inner]

    @torch.jit
    def f(x):
        if len(own[0]) > 1:
            own[0].pop()
        own[0] = [x]

    f(torch.tensor([3.0]))
    f(torch.tensor([4.0]))
    assert (repr(inner), repr(own)) == ("[tensor([1.])]", "[[tensor([4.])]]")


def run_with_cycles(jit):
    """What a function gives and leaves whose lists and dicts contain themselves."""
    weight = torch.tensor([3.0], requires_grad=True)
    box, values = Slots(), []
    box.items = [weight * 2]
    box.items.append(box.items)

    @jit
    def f(x):
        table = {"x": x * box.items[1][1][0]}
        table["table"] = table
        box.items, box.items[1] = [table["table"]["x"], box.items], box.items[0]
        box.items.append(box.items)
        box.table = table
        return box.items

    for _ in range(3):
        result = f(ONE)
        is_same = result is box.items, box.items[2] is result, box.table["table"] is box.table
        values.append((result[0].item(), box.table["x"].item(), *is_same))
        result[1] = result
    return values


def test_containers_that_contain_themselves():
    assert run_with_cycles(torch.jit) == run_with_cycles(lambda function: function)


def test_an_argument_that_contains_itself():
    box = [ONE]
    box.append({"box": box})
    with pytest.warns(UserWarning, match="runs uncompiled.*contains itself"):
        assert torch.jit(lambda box: box[0])(box) is ONE
    with pytest.raises(ValueError, match="contains itself"):
        torch.func.vmap(lambda box: box[0])(box)
    # JAX would have left this thread without a stack
    assert torch.jit(lambda box: box[0] * 2)([ONE, {"box": [ONE]}]).item() == 2
