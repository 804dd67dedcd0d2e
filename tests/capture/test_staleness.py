"""No compiled function goes on with a value that has changed.

The tests come from a grammar: a kind of state, with a way to read it and a way to change it, times
a way in which the function reaches it. Each function runs compiled and uncompiled, before and after
the change, and calls without a change must not trace again. Here runs a sample;
tests/oracle/live_staleness.py runs all of them.
"""

import collections
import dataclasses
import functools
import operator
import types
from typing import NamedTuple

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn

# ---- kinds of state: what makes it, reads a number from it, and changes it


class Plain:
    scale = 1.0

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def times(self, x):
        return x * self.k

    def __call__(self, x):
        return x + self.k

    def __mul__(self, x):
        return x * self.k

    def __getitem__(self, name):
        return getattr(self, name)

    def __iter__(self):
        return iter((self.k, self.k))

    def __len__(self):
        return int(self.k)

    def __contains__(self, value):
        return value < self.k

    def __enter__(self):
        return self.k

    def __exit__(self, *_):
        return None

    @property
    def double(self):
        return self.k * 2

    @classmethod
    def shared(cls):
        return cls.scale

    @staticmethod
    def fixed():
        return Plain.scale


class Slots:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k


@dataclasses.dataclass(slots=True, eq=False)
class Record:
    k: float
    rest: dict = dataclasses.field(default_factory=dict)


class Pair(NamedTuple):
    first: object
    second: object


class Lookup:
    def __init__(self):
        self.values = {"k": 2.0}

    def __getattr__(self, name):
        return self.values[name]


class Guarded:
    def __init__(self):
        self.k = 2.0

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Hidden(nn.Module):
    def __init__(self):
        super().__init__()
        self.config, self.k, self.parts = Plain(k=2.0), 2.0, [Plain(k=2.0)]

    def forward(self, x):
        return x * self.config.k + self.k + self.parts[0].k


def set_k(target, value=5.0):
    target.k = value


def default(x, k=2.0, *, extra=1.0):
    return x * k * extra


def plain(k=2.0):
    return Plain(k=k)


def with_config(config):
    with config as k:
        return k


def replaced_method(obj):
    obj.times = lambda x: x * 7


def change_class(obj):
    obj.scale = 3.0


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


# name: (make, read, change)
OBJECTS = {
    "attribute": (plain, lambda c: c.k, set_k),
    "attribute of an attribute": (
        lambda: Plain(inner=plain()),
        lambda c: c.inner.k,
        lambda c: set_k(c.inner),
    ),
    "attribute by getattr": (plain, lambda c: getattr(c, "k"), set_k),  # noqa: B009
    "attribute by a computed name": (plain, lambda c: getattr(c, "kx"[:1]), set_k),
    "attribute by attrgetter": (plain, operator.attrgetter("k"), set_k),
    "attribute by vars": (plain, lambda c: vars(c)["k"], set_k),
    "attribute by __dict__": (plain, lambda c: c.__dict__.get("k"), set_k),
    "attribute with a default": (
        plain,
        lambda c: getattr(c, "later", 1.0),
        lambda c: setattr(c, "later", 4.0),
    ),
    "attribute by hasattr": (
        plain,
        lambda c: 3.0 if hasattr(c, "later") else 1.0,
        lambda c: setattr(c, "later", 0),
    ),
    "attribute that is removed": (plain, lambda c: getattr(c, "k", 9.0), lambda c: delattr(c, "k")),
    "attribute set in the dict": (plain, lambda c: c.k, lambda c: vars(c).update(k=6.0)),
    "method": (plain, lambda c: c.times(1.0), set_k),
    "method that is replaced": (plain, lambda c: c.times(1.0), replaced_method),
    "call": (plain, lambda c: c(1.0), set_k),
    "operator": (plain, lambda c: c * 1.0, set_k),
    "item": (plain, lambda c: c["k"], set_k),
    "loop": (plain, lambda c: total(c), set_k),
    "unpacking": (plain, lambda c: next(iter([*c])), set_k),
    "length": (plain, len, set_k),
    "containment": (plain, lambda c: 2.0 if 3.0 in c else 1.0, set_k),
    "with": (plain, with_config, set_k),
    "property": (plain, lambda c: c.double, set_k),
    "class method": (plain, lambda c: c.shared(), None),
    "static method": (plain, lambda c: c.fixed(), None),
    "class attribute": (plain, lambda c: c.scale, None),
    "class attribute that an instance hides": (plain, lambda c: c.scale, change_class),
    "slots": (lambda: Slots(2.0), lambda c: c.k, set_k),
    "dataclass with slots": (lambda: Record(2.0), lambda c: c.k, set_k),
    "dict in a dataclass": (
        lambda: Record(2.0, {"a": 1.0}),
        lambda c: c.rest["a"],
        lambda c: c.rest.update(a=3.0),
    ),
    "__getattr__": (Lookup, lambda c: c.k, lambda c: c.values.update(k=5.0)),
    "__getattribute__": (Guarded, lambda c: c.k, set_k),
    "namespace": (lambda: types.SimpleNamespace(k=2.0), lambda c: c.k, set_k),
    "namespace by a computed name": (
        lambda: types.SimpleNamespace(k=2.0),
        lambda c: getattr(c, "kx"[:1]),
        set_k,
    ),
    "None that becomes a number": (
        lambda: Plain(k=None),
        lambda c: 1.0 if c.k is None else c.k,
        set_k,
    ),
    "int that becomes a float": (
        lambda: Plain(k=2),
        lambda c: c.k / 4 if isinstance(c.k, float) else c.k,
        set_k,
    ),
    "text": (
        lambda: Plain(k="relu"),
        lambda c: 1.0 if c.k == "relu" else 2.0,
        lambda c: set_k(c, "gelu"),
    ),
    "function": (
        lambda: Plain(k=lambda x: x * 2),
        lambda c: c.k(1.0),
        lambda c: set_k(c, lambda x: x * 3),
    ),
    "object that is replaced": (
        lambda: Plain(inner=plain()),
        lambda c: c.inner.k,
        lambda c: setattr(c, "inner", plain(8.0)),
    ),
    "list attribute": (
        lambda: Plain(k=[1.0, 2.0]),
        lambda c: c.k[1],
        lambda c: c.k.__setitem__(1, 7.0),
    ),
    "dict attribute": (
        lambda: Plain(k={"a": 1.0}),
        lambda c: c.k["a"],
        lambda c: c.k.update(a=7.0),
    ),
    "dict attribute by a local name": (
        lambda: Plain(k={"a": 1.0}),
        lambda c: (lambda d: d["a"])(c.k),
        lambda c: c.k.update(a=7.0),
    ),
    "object in a tuple": (
        lambda: Plain(k=(plain(), 1)),
        lambda c: c.k[0].k,
        lambda c: set_k(c.k[0]),
    ),
    "dict in a named tuple": (
        lambda: Plain(k=Pair({"a": 1.0}, 0)),
        lambda c: c.k.first["a"],
        lambda c: c.k.first.update(a=4.0),
    ),
    "array": (
        lambda: Plain(k=np.array([1.0, 2.0])),
        lambda c: float(c.k[1]),
        lambda c: c.k.__setitem__(1, 7.0),
    ),
}

CONTAINERS = {
    "dict item": (lambda: {"k": 2.0}, lambda c: c["k"], lambda c: c.update(k=5.0)),
    "dict item by get": (lambda: {"a": 2.0}, lambda c: c.get("k", 1.0), lambda c: c.update(k=5.0)),
    "dict by containment": (
        lambda: {"a": 2.0},
        lambda c: 2.0 if "k" in c else 1.0,
        lambda c: c.update(k=5.0),
    ),
    "dict item by a computed key": (
        lambda: {"k": 2.0},
        lambda c: c["kx"[:1]],
        lambda c: c.update(k=5.0),
    ),
    "dict values": (lambda: {"k": 2.0}, lambda c: total(c.values()), lambda c: c.update(z=5.0)),
    "dict order": (
        lambda: {"a": 2.0, "b": 3.0},
        lambda c: next(iter(c.values())),
        lambda c: c.update(a=c.pop("a")),
    ),
    "dict length": (lambda: {"k": 2.0}, len, lambda c: c.update(z=5.0)),
    "dict item that is removed": (
        lambda: {"k": 2.0},
        lambda c: c.get("k", 9.0),
        lambda c: c.pop("k"),
    ),
    "dict in a dict": (
        lambda: {"a": {"k": 2.0}},
        lambda c: c["a"]["k"],
        lambda c: c["a"].update(k=5.0),
    ),
    "object in a dict": (lambda: {"a": plain()}, lambda c: c["a"].k, lambda c: set_k(c["a"])),
    "defaultdict": (
        lambda: collections.defaultdict(float, k=2.0),
        lambda c: c["k"],
        lambda c: c.update(k=5.0),
    ),
    "counter": (lambda: collections.Counter("aab"), lambda c: c["a"], lambda c: c.update("a")),
    "list item": (lambda: [1.0, 2.0], lambda c: c[1], lambda c: c.__setitem__(1, 5.0)),
    "last list item": (lambda: [1.0, 2.0], lambda c: c[-1], lambda c: c.append(5.0)),
    "list length": (lambda: [1.0, 2.0], len, lambda c: c.append(5.0)),
    "list loop": (lambda: [1.0, 2.0], total, lambda c: c.pop()),
    "list slice": (lambda: [1.0, 2.0], lambda c: total(c[1:]), lambda c: c.extend([3.0])),
    "list in a list": (lambda: [[1.0]], lambda c: c[0][0], lambda c: c[0].__setitem__(0, 5.0)),
    "list in a list in a dict": (
        lambda: {"a": [[1.0]]},
        lambda c: c["a"][0][0],
        lambda c: c["a"][0].__setitem__(0, 5.0),
    ),
    "object in a list": (lambda: [plain()], lambda c: c[0].k, lambda c: set_k(c[0])),
    "tuple in a list": (
        lambda: [(1.0, 2.0)],
        lambda c: c[0][1],
        lambda c: c.reverse() or c.__setitem__(0, (1.0, 6.0)),
    ),
    "list in a tuple": (lambda: ([1.0],), lambda c: c[0][0], lambda c: c[0].__setitem__(0, 5.0)),
    "set": (lambda: {1, 2}, lambda c: 2.0 if 3 in c else 1.0, lambda c: c.add(3)),
    "object in a set": (
        lambda: {plain()},
        lambda c: total(entry.k for entry in c),
        lambda c: set_k(next(iter(c))),
    ),
    "deque": (lambda: collections.deque([1.0, 2.0]), lambda c: c[0], lambda c: c.appendleft(4.0)),
    "bytes": (lambda: bytearray(b"ab"), lambda c: float(c[0]), lambda c: c.__setitem__(0, 99)),
    "array": (
        lambda: np.array([1.0, 2.0]),
        lambda c: float(c.sum()),
        lambda c: c.__setitem__(0, 9.0),
    ),
    "sorted keys": (lambda: {"b": 1.0, "a": 2.0}, lambda c: c[min(c)], lambda c: c.update(a=4.0)),
}

# ---- the ways in which a function reaches it

shared_global = None


def by_closure(state, read):
    return lambda x: x * read(state), None


def by_global(state, read):
    global shared_global
    shared_global = state
    return lambda x: x * read(shared_global), None


def by_attribute(state, read):
    holder = Plain(state=state)
    return lambda x: x * read(holder.state), None


def by_nested_attributes(state, read):
    holder = Plain(a=Plain(b=Plain(state=state)))
    return lambda x: x * read(holder.a.b.state), None


def by_slot(state, read):
    holder = Slots(state)
    return lambda x: x * read(holder.k), None


def by_list(state, read):
    holder = [0, [state]]
    return lambda x: x * read(holder[1][0]), None


def by_dict(state, read):
    holder = {"one": {"two": state}}
    return lambda x: x * read(holder["one"]["two"]), None


def by_tuple(state, read):
    holder = Pair(0, (state,))
    return lambda x: x * read(holder.second[0]), None


def by_default(state, read):
    def function(x, kept=state):
        return x * read(kept)

    return function, None


def by_partial(state, read):
    return functools.partial(lambda kept, x: x * read(kept), state), None


def by_method(state, read):
    class Owner:
        def __init__(self):
            self.state = state

        def run(self, x):
            return x * read(self.state)

    return Owner().run, None


def by_module(state, read):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.state = state

        def forward(self, x):
            return x * read(self.state)

    return nn.Sequential(nn.Identity(), Inner()), None


def by_callback(state, read):
    def callback():
        return read(state)

    callbacks = {"name": callback}
    return lambda x: x * callbacks["name"](), None


def by_decorator(state, read):
    def decorate(function):
        @functools.wraps(function)
        def wrapped(x):
            return function(x) * read(state)

        return wrapped

    return decorate(lambda x: x), None


def by_hook(state, read):
    layer = nn.Identity()
    layer.register_forward_hook(lambda module, args, output: output * read(state))
    return lambda x: layer(x), None


def by_tensor_hook(state, read):
    def function(x):
        x = x.detach().requires_grad_()
        x.register_hook(lambda grad: grad * read(state))
        return torch.autograd.grad((x * x).sum(), x)[0]

    return function, None


def by_argument(state, read):
    return lambda x, state: x * read(state), state


REACHES = [
    by_closure,
    by_global,
    by_attribute,
    by_nested_attributes,
    by_slot,
    by_list,
    by_dict,
    by_tuple,
    by_default,
    by_partial,
    by_method,
    by_module,
    by_callback,
    by_decorator,
    by_hook,
    by_tensor_hook,
]


def check(make, read, change, reach):
    state = make()
    function, argument = reach(state, read)
    arguments = () if argument is None else (argument,)
    compiled, x = torch.jit(function), torch.tensor([1.0, 2.0])
    scale = Plain.scale
    try:
        for _ in range(2):
            assert compiled(x, *arguments).tolist() == function(x, *arguments).tolist()
        assert compiled.count == 1, compiled.explain()
        if change is None:
            Plain.scale = 3.0
        else:
            change(state)
        expected = function(x, *arguments).tolist()
        for _ in range(3):
            assert compiled(x, *arguments).tolist() == expected
        assert compiled.count == 2, compiled.explain()
    finally:
        Plain.scale = scale


def pairs(kinds, every: int) -> list:
    """Pairs of a kind of state and a way to reach it: by closure, and one of `every` others, which
    are slow.
    """
    return [
        pytest.param(
            kind, reach, id=f"{kind}-{reach.__name__}", marks=[pytest.mark.slow] if column else []
        )
        for row, kind in enumerate(kinds)
        for column, reach in enumerate(REACHES)
        if column == 0 or (row + column) % every == 0
    ]


@pytest.mark.parametrize(("kind", "reach"), pairs(OBJECTS, every=5))
def test_objects(kind, reach):
    check(*OBJECTS[kind], reach)


@pytest.mark.parametrize(("kind", "reach"), pairs(CONTAINERS, every=5))
def test_containers(kind, reach):
    check(*CONTAINERS[kind], reach)


@pytest.mark.parametrize("kind", OBJECTS)
def test_arguments(kind):
    check(*OBJECTS[kind], by_argument)
