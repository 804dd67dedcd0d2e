"""Pytrees of tensors: the order of dicts, and what JAX's trees refuse."""

import collections
import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.tape import pytree
from jaxgrad.utils.checkpoint import checkpoint


def named(first="weight", second="bias"):
    """A dict whose keys are not sorted, as those of `named_parameters()`."""
    return {first: torch.tensor([2.0, 3.0]), second: torch.tensor(5.0)}


def loss(params, *_):
    # the first item times 10, the second times 1: other values and gradients where keys are sorted
    first, second = params.values()
    return (first * first).sum() * 10 + (second * second).sum()


# what each transform gives for the loss above at `named()`: keys in order, and plain numbers
def gradients(values=(40, 60, 10)):
    return [("weight", list(values[:2])), ("bias", values[2])]


def items(tree):
    return [(key, value.tolist()) for key, value in tree.items()]


def backward_under_jit(params):
    params = {name: tensor.clone().requires_grad_() for name, tensor in params.items()}

    @torch.jit
    def step(params):
        loss(params).backward()
        return {name: tensor.grad for name, tensor in params.items()}

    return step(params)


def linear(params, *_):
    return {name: tensor * 2 for name, tensor in params.items()}


DOUBLED = [("weight", [4.0, 6.0]), ("bias", 10.0)]
TRANSFORMS = {
    "func.grad": (lambda p: torch.func.grad(loss)(p), gradients()),
    "func.grad under jit": (lambda p: torch.jit(torch.func.grad(loss))(p), gradients()),
    "grad_and_value": (lambda p: torch.func.grad_and_value(loss)(p)[0], gradients()),
    "vjp": (lambda p: torch.func.vjp(loss, p)[1](torch.tensor(1.0))[0], gradients()),
    "vjp's output": (lambda p: torch.func.vjp(linear, p)[0], DOUBLED),
    "vjp's pullback": (lambda p: torch.func.vjp(linear, p)[1](p)[0], DOUBLED),
    "aux": (
        lambda p: torch.func.grad(lambda p: (loss(p), linear(p)), has_aux=True)(p)[1],
        DOUBLED,
    ),
    "jvp": (lambda p: torch.func.jvp(linear, (p,), (p,))[1], DOUBLED),
    "jvp's aux": (
        lambda p: torch.func.jvp(lambda p: (loss(p), linear(p)), (p,), (p,), has_aux=True)[2],
        DOUBLED,
    ),
    "linearize": (lambda p: torch.func.linearize(linear, p)[1](p), DOUBLED),
    "jacrev": (lambda p: torch.func.jacrev(loss)(p), gradients()),
    "jacfwd": (lambda p: torch.func.jacfwd(loss)(p), gradients()),
    "jit": (lambda p: torch.jit(linear)(p), DOUBLED),
    "jit, by keyword": (lambda p: torch.jit(linear)(params=p), DOUBLED),
    "jit of **": (lambda p: torch.jit(lambda **named: linear(named))(**p), DOUBLED),
    "backward under jit": (backward_under_jit, gradients()),
    "checkpoint": (lambda p: checkpoint(linear, p, use_reentrant=False), DOUBLED),
    "checkpoint in cond": (
        lambda p: torch.jit(
            lambda p: torch.cond(
                p["bias"] > 0, lambda p: checkpoint(linear, p, use_reentrant=False), linear, (p,)
            )
        )(p),
        DOUBLED,
    ),
    "cond": (lambda p: torch.cond(True, linear, linear, (p,)), DOUBLED),
    "while_loop": (
        lambda p: torch.while_loop(lambda p: p["bias"] < 10, lambda p: (linear(p),), (p,))[0],
        DOUBLED,
    ),
    "fori_loop": (lambda p: torch.fori_loop(0, 1, lambda i, p: linear(p), p), DOUBLED),
    "scan": (
        lambda p: torch.scan(lambda p, x: (linear(p), x), p, torch.ones(1))[0],
        DOUBLED,
    ),
    "scan's outputs": (
        lambda p: {
            name: output[0]
            for name, output in torch.scan(
                lambda c, p: (c, linear(p)),
                torch.ones(1),
                {name: tensor[None] for name, tensor in p.items()},
            )[1].items()
        },
        DOUBLED,
    ),
    "from_jax": (
        lambda p: torch.from_jax(lambda p: {name: array * 2 for name, array in p.items()})(p),
        DOUBLED,
    ),
    "to_jax": (
        lambda p: torch.to_jax(linear)({name: tensor.numpy() for name, tensor in p.items()}),
        DOUBLED,
    ),
    "custom_fwd": (lambda p: CastLinear.apply(p), DOUBLED),
}


class CastLinear(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, params):
        return linear(params)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMS)
def test_dicts_keep_the_order_of_their_keys(name):
    transform, wanted = TRANSFORMS[name]
    if name == "custom_fwd":
        with torch.autocast("cpu"):
            result = transform(named())
    else:
        result = transform(named())
    assert items(result) == wanted


CONTROL = ["cond", "while_loop", "fori_loop", "scan", "scan's outputs"]


@pytest.mark.parametrize("name", CONTROL)
def test_control_flow_in_a_trace_keeps_the_order(name):
    transform, wanted = TRANSFORMS[name]
    assert items(torch.jit(transform)(named())) == wanted


def test_vmap_keeps_the_order_and_finds_dimensions_by_key():
    def scaled(params):
        first, second = params.values()
        return {"z": first * 10, "a": second}

    params = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0, 4.0])}
    dims = ({"bias": 0, "weight": 1},)
    wanted = [("z", [10.0, 20.0]), ("a", [3.0, 4.0])]
    for size in (None, 1):
        result = torch.func.vmap(scaled, in_dims=dims, chunk_size=size)(params)
        assert items({"z": result["z"][:, 0], "a": result["a"]}) == wanted
    moved = torch.func.vmap(scaled, in_dims=dims, out_dims={"a": 0, "z": 1})(params)
    assert list(moved) == ["z", "a"] and moved["z"].shape == (1, 2)
    ordered = collections.OrderedDict(params)
    result = torch.func.vmap(scaled, in_dims=dims)(ordered)
    assert result["a"].tolist() == [3, 4]


@pytest.mark.slow
def test_gradients_pair_with_the_parameters_of_a_module():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    params = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(params):
        return torch.func.functional_call(model, params, torch.ones(1, 2)).square().sum()

    for transform in (torch.func.grad, torch.func.jacrev):
        for compiled in (lambda f: f, torch.jit):
            grads = compiled(transform(loss))(params)
            for (name, parameter), gradient in zip(params.items(), grads.values(), strict=True):
                assert gradient.shape == parameter.shape and gradient is grads[name]
    state = torch.jit(lambda state: state)(model.state_dict())
    assert list(state) == [name for name, _ in model.named_parameters()]


def test_each_order_of_keys_has_its_own_program():
    step = torch.jit(lambda values: (torch.cat(list(values.values())), dict(values)))
    tensors = {"b": torch.zeros(1), "a": torch.ones(1), "c": torch.full((1,), 2.0)}
    for names in [*itertools.permutations(tensors)] * 2:
        joined, back = step({name: tensors[name] for name in names})
        assert joined.tolist() == [tensors[name].item() for name in names]
        assert list(back) == list(names)
    assert step.count == 6


def test_keywords_in_another_order_share_a_program():
    step = torch.jit(lambda x, a: x - a)
    x, a = torch.tensor(3.0), torch.tensor(1.0)
    assert [step(x=x, a=a).item(), step(a=a, x=x).item(), step.count] == [2, 2, 1]
    seen = torch.jit(lambda **named: torch.stack(list(named.values())))
    assert [seen(x=x, a=a).tolist(), seen(a=a, x=x).tolist()] == [[3, 1], [1, 3]]


class Pair(NamedTuple):
    second: Any
    first: Any


@dataclasses.dataclass
class Batch:
    inputs: dict
    name: str = "batch"


@jax.tree_util.register_pytree_node_class
class Registered:
    def __init__(self, held):
        self.held = held

    def tree_flatten(self):
        return (self.held,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Hashable, and without tensors: a leaf."""

    rate: float


def shown(tree):
    """A tree as nested lists, with the types and keys that it has, in order."""
    if isinstance(tree, torch.Tensor):
        return tree.tolist()
    if isinstance(tree, dict):
        return type(tree).__name__, [(key, shown(child)) for key, child in tree.items()]
    if isinstance(tree, Registered | Batch):
        return type(tree).__name__, shown(list(vars(tree).values()))
    if isinstance(tree, list | tuple):
        return type(tree).__name__, [shown(child) for child in tree]
    return tree


def trees():
    counts = collections.defaultdict(list, b=torch.zeros(1), a=torch.ones(1))
    return {
        "nested": {"z": named(), "a": [named(), {"y": {"d": torch.zeros(1), "c": None}}]},
        "OrderedDict": collections.OrderedDict(z=torch.zeros(1), a=named()),
        "defaultdict": {"z": counts, "a": torch.ones(1)},
        "NamedTuple": Pair(named(), named("a", "b")),
        "dataclass": Batch({"z": torch.zeros(1), "a": {"y": torch.ones(1), "x": 1}}),
        "dataclass in a dict": {"z": Batch(named()), "a": named()},
        "registered": Registered({"z": torch.zeros(1), "a": Registered(named())}),
        "keys of several types": {"z": torch.zeros(1), 1: torch.ones(1), None: named()},
        "no tensors": {"z": 1, "a": {"y": None, "b": "text"}},
        "empty": {"z": {}, "a": (), "b": None},
    }


@pytest.mark.parametrize("name", trees())
def test_trees_come_back_as_they_were(name):
    tree = trees()[name]
    leaves, structure = pytree.flatten(tree)
    assert shown(jax.tree.unflatten(structure, leaves)) == shown(tree)
    again, same = pytree.flatten(trees()[name])
    assert structure == same and hash(structure) == hash(same) and len(again) == len(leaves)
    assert shown(torch.jit(lambda tree: tree)(tree)) == shown(tree)
    assert type(torch.jit(lambda tree: tree)(trees()["defaultdict"])["z"]).__name__ == "defaultdict"


def test_a_dataclass_without_tensors_is_a_leaf():
    setting = {"z": Setting(0.5), "a": Setting(2.0)}
    assert pytree.flatten(setting)[0] == list(setting.values())
    assert torch.jit(lambda s, x: x * s["z"].rate)(setting, torch.tensor(4.0)).item() == 2


def test_trees_match_by_key():
    x = torch.tensor([1.0, 2.0])
    outputs = {"z": torch.tensor([1.0, 1.0]), "a": torch.tensor([0.0, 0.0])}
    other = dict(reversed(outputs.items()))
    _, pullback = torch.func.vjp(lambda x: {"z": x * 3, "a": x * 5}, x)
    assert pullback(outputs)[0].tolist() == pullback(other)[0].tolist() == [3, 3]

    def weighted(d):
        return d["z"] * 3 + d["a"] * 5

    point = {"a": x, "z": x}
    assert torch.func.jvp(weighted, (point,), (outputs,))[1].tolist() == [3, 3]
    assert torch.func.linearize(weighted, point)[1](outputs).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="structure"):
        pullback({"z": x, "b": x})
    with pytest.raises(RuntimeError, match="structure"):
        pullback({1: x, "b": x})


@pytest.mark.parametrize("way", [lambda f: f, torch.jit], ids=["eager", "jit"])
def test_branches_and_bodies_may_give_another_order(way):
    def swapped(d):
        return {"a": d["a"] * 3, "z": d["z"] * 2}

    start = {"z": torch.tensor([1.0]), "a": torch.tensor([1.0])}
    wanted = [("z", [2.0]), ("a", [3.0])]
    choose = way(lambda d, flag: torch.cond(flag, lambda d: {**d}, swapped, (d,)))
    chosen = choose(start, torch.tensor(False))
    assert {key: tensor.item() for key, tensor in chosen.items()} == {"z": 2, "a": 3}
    repeated = way(
        lambda d: torch.while_loop(lambda d: d["z"].sum() < 2, lambda d: (swapped(d),), (d,))[0]
    )
    assert items(repeated(start)) == wanted
    carried = way(lambda d: torch.scan(lambda d, x: (swapped(d), x), d, torch.ones(1))[0])
    assert items(carried(start)) == wanted


def test_outputs_of_scan_are_stacked_by_key():
    turns = iter([("b", "a"), ("a", "b")])

    def step(carry, x):
        values = {"a": x, "b": x * 10}
        return carry, {name: values[name] for name in next(turns)}

    outputs = torch.scan(step, torch.zeros(1), torch.tensor([1.0, 2.0]))[1]
    assert items(outputs) == [("b", [10, 20]), ("a", [1, 2])]
    changing = iter([{"a": torch.ones(1)}, {"b": torch.ones(1)}])
    with pytest.raises(RuntimeError, match="outputs of combine_fn have different structure"):
        torch.scan(lambda c, x: (c, next(changing)), torch.zeros(1), torch.ones(2))


# ---- JAX's trees and tensors that require grad


LOSE = {
    "jax.tree.map": lambda t: jax.tree.map(lambda p: (p**2).sum(), t),
    "jax.tree.leaves": jax.tree.leaves,
    "jax.device_put": jax.device_put,
    "jax.vmap": lambda t: jax.vmap(lambda t: jnp.sin(t["w"]))(t),
    "jax.eval_shape": lambda t: jax.eval_shape(lambda t: t, t),
}


@pytest.mark.parametrize("name", LOSE)
def test_a_tree_of_jax_refuses_what_would_lose_a_gradient(name):
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match=r"gradient would be lost.*is_leaf=jaxgrad.is_tensor"):
        LOSE[name]({"w": weight})
    with pytest.raises(TypeError, match=r"gradient would be lost"):
        LOSE[name]({"w": weight * 2})
    LOSE[name]({"w": weight.detach()})
    with torch.no_grad():
        LOSE[name]({"w": weight})


def test_whole_tensors_keep_their_gradient_in_trees_of_jax():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    squares = jax.tree.map(lambda p: (p**2).sum(), {"w": weight}, is_leaf=torch.is_tensor)
    ((weight * 2).sum() + sum(squares.values())).backward()
    assert weight.grad.tolist() == [4, 6]  # 2 + 2 * weight


def test_jax_may_look_at_tensors_that_require_grad():
    tree = {"w": torch.tensor([1.0], requires_grad=True)}
    assert jax.tree.structure(tree) == jax.tree.structure({"w": torch.ones(1)})
    assert jax.block_until_ready(tree) is tree


def frozen(function, *args):
    with pytest.warns(UserWarning, match="constant of JAX's program.*func.functional_call") as told:
        result = function(*args)
    assert {warning.filename for warning in told} == {__file__}
    return result


def exact_layer():
    """A layer whose kernels are all exact."""
    layer = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(layer.weight, 0.5)
    torch.nn.init.constant_(layer.bias, -3.25)
    return layer


def test_a_trace_of_jax_tells_that_it_freezes_a_weight():
    model, x = exact_layer(), np.ones((1, 2), np.float32)
    compiled = jax.jit(torch.to_jax(model))
    wanted = model(torch.tensor(x)).tolist()
    assert frozen(compiled, x).tolist() == wanted
    with torch.no_grad():
        assert frozen(jax.jit(model), torch.tensor(x)).tolist() == wanted
    weight = torch.tensor([1.0], requires_grad=True)
    once = jax.jit(torch.to_jax(lambda x: torch.jit(lambda x: x * weight)(x)))
    assert frozen(once, x[0, :1]).tolist() == [1]


@pytest.mark.slow
def test_traces_of_jax_that_freeze_nothing_tell_nothing():
    model, x = exact_layer(), np.ones((1, 2), np.float32)
    params = dict(model.named_parameters())
    arrays = {name: parameter.detach().numpy() for name, parameter in params.items()}
    call = torch.to_jax(lambda params, x: torch.func.functional_call(model, params, x))
    wanted = model(torch.tensor(x)).tolist()
    assert jax.jit(call)(arrays, x).tolist() == wanted
    # each call reads the weights anew
    assert jax.vmap(torch.to_jax(model))(x).tolist() == wanted
    slope = jax.grad(lambda x: torch.to_jax(model)(x).sum())(x)
    assert slope.tolist() == params["weight"].tolist()
    scale = torch.tensor([2.0])
    assert jax.jit(torch.to_jax(lambda x: x * scale))(x).tolist() == [[2, 2]]
    model.requires_grad_(False)
    assert jax.jit(torch.to_jax(model))(x).tolist() == wanted


def test_what_a_tree_holds_in_place_of_arrays_is_printed():
    tree = jax.tree.map(np.shape, {"w": torch.ones(2, 3)})
    assert str(tree) == "{'w': Tensor((2, 3))}" and jax.tree.leaves(tree) == [2, 3]
