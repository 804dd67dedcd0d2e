"""A compiled function sees the changes of whatever its code can reach: objects of Python's library,
of classes with ways of their own, of jaxgrad's modules, optimizers and schedulers.

Each case is compared with the uncompiled function after each change, and is traced once for each.
"""

import argparse
import array
import collections
import contextlib
import contextvars
import dataclasses
import operator
import sys
import threading
import types
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn, optim

CASES = {}


def case(build):
    """A function without arguments that builds what is compiled and a list of changes."""
    CASES[build.__name__] = build
    return build


class Plain:
    def __init__(self, **attributes):
        vars(self).update(attributes)


# ---- jaxgrad's own objects


@case
def a_buffer_that_is_registered_later():
    layer = nn.Linear(1, 1)
    changes = [
        lambda: layer.register_buffer("scale", torch.tensor(3.0)),
        lambda: setattr(layer, "scale", torch.tensor(4.0)),
        lambda: delattr(layer, "scale"),
    ]
    return lambda x: x * layer.scale if hasattr(layer, "scale") else x, changes


@case
def a_parameter_that_becomes_none():
    layer = nn.Linear(1, 1)
    changes = [
        lambda: setattr(layer, "bias", None),
        lambda: setattr(layer, "bias", nn.Parameter(torch.ones(1))),
    ]
    return lambda x: x if layer.bias is None else x * 2, changes


@case
def the_state_dict_of_a_module():
    model = nn.Sequential(nn.Linear(1, 1))
    return lambda x: x * len(model.state_dict()), [lambda: model.append(nn.Linear(1, 1))]


@case
def the_hooks_of_a_module():
    layer = nn.Linear(1, 1)
    change = [lambda: layer.register_forward_hook(lambda *_: None)]
    return lambda x: x * (1 + len(layer._forward_hooks)), change


@case
def a_plain_attribute_of_a_layer():
    layer = nn.Linear(1, 1)
    return lambda x: x * layer.in_features, [lambda: setattr(layer, "in_features", 5)]


@case
def a_dict_that_a_layer_holds():
    layer = nn.Tanh()
    layer.settings = {"k": 1}
    changes = [
        lambda: layer.settings.update(k=4),
        lambda: setattr(layer, "settings", {"k": 9}),
    ]
    return lambda x: x * layer.settings["k"], changes


def sgd():
    return optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)


@case
def the_defaults_of_an_optimizer():
    optimizer = sgd()
    return lambda x: x * optimizer.defaults["lr"], [lambda: optimizer.defaults.update(lr=2.0)]


@case
def the_number_of_groups():
    optimizer = sgd()
    group = {"params": [torch.ones(1, requires_grad=True)]}
    return lambda x: x * len(optimizer.param_groups), [lambda: optimizer.add_param_group(group)]


@case
def the_parameters_of_a_group():
    optimizer = sgd()
    (group,) = optimizer.param_groups
    change = [lambda: group["params"].append(torch.ones(1, requires_grad=True))]
    return lambda x: x * len(optimizer.param_groups[0]["params"]), change


GROUP_READS = {
    "get": lambda group: group.get("mine", 1),
    "in": lambda group: 2 if "mine" in group else 1,
    "len": len,
    "loop": lambda group: sum(name == "mine" for name in group) + 1,
    "keys": lambda group: len(list(group.keys())),
    "items": lambda group: dict(group.items()).get("mine", 1),
    "values": lambda group: sum(value == 3 for value in group.values()) + 1,
    "dict": lambda group: dict(group).get("mine", 1),
    "unpacked": lambda group: {**group}.get("mine", 1),
}


@pytest.mark.parametrize("read", GROUP_READS.values(), ids=GROUP_READS)
def test_an_option_that_is_new(read):
    def build():
        optimizer = sgd()
        (group,) = optimizer.param_groups
        changes = [lambda: group.update(mine=3), lambda: dict.pop(group, "mine")]
        return lambda x: x * read(optimizer.param_groups[0]), changes

    compare(build)


@case
def the_state_of_an_optimizer():
    weight = torch.ones(1, requires_grad=True)
    optimizer = optim.Adam([weight])

    def step():
        weight.grad = torch.ones(1)
        optimizer.step()

    return lambda x: x * (1 + len(optimizer.state)), [step]


@case
def the_epoch_of_a_scheduler():
    optimizer = sgd()
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    changes = [scheduler.step, lambda: setattr(scheduler, "gamma", 0.5)]
    return lambda x: x * (scheduler.last_epoch + scheduler.gamma), changes


# ---- tensors whose shape alone is read

SHAPE_READS = {
    "shape": lambda t: t.shape[0],
    "len": len,
    "numel": lambda t: t.numel(),
    "dim": lambda t: t.dim(),
    "dtype": lambda t: 1 + t.dtype.is_floating_point,
    "stride": lambda t: t.stride()[0],
}


@pytest.mark.slow
@pytest.mark.parametrize("read", SHAPE_READS.values(), ids=SHAPE_READS)
@pytest.mark.parametrize("place", ["attribute", "cell", "tuple"])
def test_the_shape_of_a_tensor(read, place):
    def build():
        tensor = torch.ones(2)
        holder, pair = SimpleNamespace(t=tensor), (tensor, 1)
        functions = {
            "attribute": lambda x: x * read(holder.t),
            "cell": lambda x: x * read(tensor),
            "tuple": lambda x: x * read(pair[0]),
        }
        changes = [
            lambda: tensor.unsqueeze_(1),
            lambda: tensor.resize_(4),
            lambda: setattr(tensor, "data", torch.ones(3, 2, dtype=torch.int32)),
        ]
        return functions[place], changes

    compare(build)


@case
def the_version_of_a_tensor():
    tensor = torch.ones(1)
    return lambda x: x * (1 + tensor._version), [lambda: tensor.add_(1)]


# ---- Python's library


@case
def a_context_variable():
    variable = contextvars.ContextVar("variable", default=1)
    return lambda x: x * variable.get(), [lambda: variable.set(5)]


@case
def a_namespace_of_arguments():
    arguments = argparse.Namespace(k=2)
    return lambda x: x * arguments.k, [lambda: setattr(arguments, "k", 3)]


@case
def a_thread_local():
    local = threading.local()
    local.k = 2
    return lambda x: x * local.k, [lambda: setattr(local, "k", 3)]


@case
def weak_references():
    target = Plain(k=2)
    reference, proxy = weakref.ref(target), weakref.proxy(target)
    return lambda x: x * reference().k * proxy.k, [lambda: setattr(target, "k", 3)]


@case
def proxies_of_objects_that_are_gone():
    state = Plain(k=2, proxies=[weakref.proxy(Plain(k=3)), weakref.proxy(lambda: None)])

    def scaled(x):
        return x * state.k if len(state.proxies) else x

    return scaled, [lambda: setattr(state, "k", 3), lambda: state.proxies.clear()]


@case
def weak_containers():
    first, second = Plain(k=2), Plain(k=3)
    keys, members = weakref.WeakKeyDictionary({first: 2}), weakref.WeakSet([first])
    values = weakref.WeakValueDictionary(a=first)
    changes = [
        lambda: keys.update({first: 5}),
        lambda: members.add(second),
        lambda: setattr(first, "k", 7),
    ]
    return lambda x: x * keys[first] * len(members) * values["a"].k, changes


@case
def a_view_of_a_dict():
    inner = {"k": 1}
    view = types.MappingProxyType(inner)
    return lambda x: x * view["k"], [lambda: inner.update(k=3)]


@case
def getters():
    holder = SimpleNamespace(inner=SimpleNamespace(k=2), half=lambda: 0.5)
    get, call = operator.attrgetter("inner.k"), operator.methodcaller("half")
    changes = [
        lambda: setattr(holder.inner, "k", 3),
        lambda: setattr(holder, "half", lambda: 0.25),
    ]
    return lambda x: x * get(holder) * call(holder), changes


@case
def arrays():
    numbers, objects = array.array("d", [1.0]), np.array([None, [2.0]], dtype=object)
    changes = [lambda: numbers.append(3.0), lambda: objects[1].append(4.0)]
    return lambda x: x * numbers[-1] * objects[1][-1], changes


# ---- code


@case
def code_without_a_module():
    names = {"k": 2}
    exec("def scaled(x): return x * k", names)
    scaled = names["scaled"]
    return lambda x: scaled(x), [lambda: names.update(k=3)]


@case
def an_import_inside():
    module = sys.modules["a_module_of_this_test"] = types.ModuleType("a_module_of_this_test")
    module.k = 2

    def run(x):
        import a_module_of_this_test
        from a_module_of_this_test import k

        return x * a_module_of_this_test.k * k

    return run, [lambda: setattr(module, "k", 3)]


@case
def globals_by_name():
    globals()["a_global_of_this_test"] = 2
    change = [lambda: globals().update(a_global_of_this_test=3)]
    return lambda x: x * globals()["a_global_of_this_test"], change


@case
def a_property_of_a_metaclass():
    class Meta(type):
        @property
        def twice(cls):
            return cls.k * 2

    class Scale(metaclass=Meta):
        k = 2

    return lambda x: x * Scale.twice, [lambda: setattr(Scale, "k", 3)]


@case
def an_attribute_that_comes_to_hide_another():
    class Base:
        k = 1

        def scaled(self, x):
            return x * self.k

    class Derived(Base):
        def scaled(self, x):
            return super().scaled(x) * 2

    derived = Derived()
    changes = [
        lambda: setattr(Base, "k", 4),
        lambda: setattr(Derived, "k", 5),
        lambda: setattr(derived, "k", 6),
        lambda: delattr(derived, "k"),
        lambda: delattr(Derived, "k"),
    ]
    return lambda x: derived.scaled(x), changes


@case
def a_context_manager():
    holder = SimpleNamespace(k=2)

    @contextlib.contextmanager
    def rate():
        yield holder.k

    def run(x):
        with rate() as k:
            return x * k

    return run, [lambda: setattr(holder, "k", 3)]


@case
def patterns():
    @dataclasses.dataclass
    class Pair:
        a: int
        b: int

    pair, table = Pair(1, 2), {"kind": "a", "v": 2}

    def run(x):
        match pair, table:
            case Pair(1, b), {"kind": "a", "v": v}:
                return x * b * v
        return x * pair.a

    changes = [
        lambda: setattr(pair, "b", 3),
        lambda: table.update(v=5),
        lambda: setattr(pair, "a", 4),
    ]
    return run, changes


# ---- the comparison


def results(build, jit):
    function, changes = build()
    function, values = jit(function), []
    for change in (lambda: None, *changes):
        change()
        values += [function(torch.tensor([1.0])).item() for _ in range(2)]
    return values, getattr(function, "count", None)


def compare(build):
    values, count = contextvars.copy_context().run(results, build, torch.jit)
    expected, _ = contextvars.copy_context().run(results, build, lambda function: function)
    assert values == expected
    assert len(set(expected)) > 1
    assert count <= 1 + len(build()[1])


@pytest.mark.slow
@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_a_change_is_seen(build):
    compare(build)


# ---- what a function changes


def changes_attributes_of_library_objects():
    optimizer, layer = sgd(), nn.Dropout(0.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.n = layer.n = 1

    def run(x):
        optimizer.n += 1
        layer.n += optimizer.n
        scheduler.last_epoch += 1
        return x * optimizer.n * layer.n * scheduler.last_epoch

    return run


def changes_containers_of_library_objects():
    optimizer, layer = sgd(), nn.Dropout(0.0)
    layer.seen = [1]

    def run(x):
        optimizer.defaults["lr"] *= 2
        layer.seen.append(len(layer.seen) + 1)
        return x * optimizer.defaults["lr"] * layer.seen[-1]

    return run


def changes_options():
    optimizer = sgd()

    def run(x):
        (group,) = optimizer.param_groups
        group["n"] = group.get("n", 0) + 1
        group |= {"m": group["n"] * 2}
        assert "m" in group and "n" in list(group)
        return x * group["n"] * group["m"] * group.setdefault("k", 3)

    return run


def changes_the_state_of_an_optimizer():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.5, momentum=0.5)

    def run(x):
        own = optimizer.state[weight]
        own["n"] = own.get("n", 0) + 1
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return (weight.detach() * own["n"]).sum() * len(own)

    return run


def changes_the_mode():
    layer = nn.Dropout(0.0)

    def run(x):
        result = x * 2 if layer.training else x
        layer.train(not layer.training)
        return result

    return run


def changes_arrays_and_variables():
    numbers, variable = array.array("d", [1.0]), contextvars.ContextVar("variable", default=1)

    def run(x):
        numbers.append(numbers[-1] + 1)
        variable.set(variable.get() + 1)
        return x * numbers[-1] * variable.get()

    return run


def changes_what_is_weakly_held():
    target, local = Plain(k=1), threading.local()
    keys, local.k = weakref.WeakKeyDictionary({target: 1}), 1

    def run(x):
        keys[target] += 1
        local.k += keys[target]
        return x * local.k

    return run


@pytest.mark.parametrize("build", [build for n, build in globals().items() if n[:8] == "changes_"])
def test_a_change_is_made_at_each_call(build):
    def called(jit):
        function = jit(build())
        return [function(torch.tensor([1.0])).item() for _ in range(4)]

    expected = contextvars.copy_context().run(called, lambda function: function)
    assert contextvars.copy_context().run(called, torch.jit) == expected
    assert len(set(expected)) > 1


def test_an_option_is_not_removed_inside():
    optimizer = sgd()
    (group,) = optimizer.param_groups
    with pytest.raises(RuntimeError, match=r"'momentum' of param_groups.* is removed"):
        torch.jit(lambda x: x * group.pop("momentum"))(torch.ones(1))
    assert group["momentum"] == 0


# ---- what cannot be watched

ITERATORS = {
    "generator": lambda: (number for number in range(1, 9)),
    "list": lambda: iter([1, 2, 3]),
    "zip": lambda: zip([1, 2], [3, 4], strict=True),
}


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_an_iterator_goes_on(make):
    iterator, other = make(), make()

    def run(x):
        next(iterator)
        return x * 2

    compiled = torch.jit(run)
    for _ in range(2):
        compiled(torch.ones(1))
        next(other)
    assert [*iterator] == [*other] and compiled.count == 1


def test_an_iterator_of_ones_own_goes_on():
    """By hand: 1, 2, 3."""

    class Counter(collections.abc.Iterator):
        def __init__(self):
            self.count = 0

        def __next__(self):
            self.count += 1
            return self.count

    counter = Counter()
    counted = torch.jit(lambda x: x * next(counter))
    assert [counted(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]
