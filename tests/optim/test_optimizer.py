"""What all optimizers share: groups, errors, hooks, state dicts, as in PyTorch 2.13."""

import copy
import importlib
import subprocess
import sys

import numpy as np
import pytest
from helpers import hangs
from helpers.as_torch import as_torch, error, leaf, warned

import jaxgrad


def base(torch):
    """The module of the class Optimizer; PyTorch deletes its name from torch.optim."""
    return importlib.import_module(f"{torch.__name__}.optim.optimizer")


def double(torch, *values):
    return leaf(torch, *values, dtype=torch.float64)


def stepped(torch, name="Adam", **options):
    """An optimizer after two steps, and its parameters."""
    x, y = double(torch, 1.0, -2.0), double(torch, 3.0)
    optimizer = getattr(torch.optim, name)(
        [{"params": [x]}, {"params": [y], "lr": 0.5}], 0.1, **options
    )
    for _ in range(2):
        optimizer.zero_grad()
        (x.sum() * y * y).backward()
        optimizer.step()
    return optimizer, x, y


NOT_IMPORTED = """
import sys, jaxgrad
early = {"optax", "safetensors", "jaxgrad.optim", "jaxgrad.serialization"} & sys.modules.keys()
assert not early, early
assert jaxgrad.optim.SGD and jaxgrad.save
"""


@pytest.mark.slow
def test_importing_jaxgrad_imports_no_optimizer():
    child = subprocess.run(
        [sys.executable, "-c", NOT_IMPORTED], capture_output=True, text=True, timeout=hangs.LIMIT
    )
    assert child.returncode == 0, child.stderr


# ---- gradients


@pytest.mark.row("S02")
@as_torch("""
    [tensor([0.0, 0.0]), True, None]
    None
    tensor([0.0, 0.0])
""")
def test_zero_grad_sets_none_or_zeros(torch):
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0)
    optimizer = torch.optim.SGD([x, y], lr=0.1)
    (x * 2).sum().backward()
    held = x.grad
    optimizer.zero_grad(set_to_none=False)
    zeros = x.grad, x.grad is held, y.grad
    optimizer.zero_grad()
    return zeros, x.grad, held


@pytest.mark.row("S02")
@as_torch("""
    tensor(0.0)
    True
""")
def test_zeros_leave_the_graph(torch):
    x = leaf(torch, 2.0)
    optimizer = torch.optim.SGD([x], lr=0.1)
    (x.grad,) = torch.autograd.grad(x**3, x, create_graph=True)
    optimizer.zero_grad(set_to_none=False)
    return x.grad, x.grad.is_leaf


@pytest.mark.row("S03")
@as_torch
def test_parameters_that_optimizers_accept(torch):
    x, optim = leaf(torch, 1.0), torch.optim
    retained = x * 2
    retained.retain_grad()
    optim.SGD([retained], lr=0.1)
    return [
        error(optim.SGD, [x * 2], words="can't optimize a non-leaf Tensor"),
        error(optim.SGD, [], words="optimizer got an empty parameter list"),
        error(optim.SGD, iter(()), words="optimizer got an empty parameter list"),
        error(optim.SGD, x, words="params argument given to the optimizer should be an iterable"),
        error(optim.SGD, [{"params": {x}}], words="ordered collections"),
        error(optim.SGD, [1.0], words="optimizer can only optimize Tensors"),
        error(optim.SGD, [("x", x), leaf(torch, 1.0)], words="Some param names are missing"),
        error(
            optim.SGD,
            [{"params": [x]}, {"params": [x]}],
            words="some parameters appear in more than one parameter group",
        ),
        warned(lambda: optim.SGD([x, x], lr=0.1).param_groups[0]["lr"]),
    ]


@pytest.mark.row("S03")
@as_torch
def test_errors_of_options(torch):
    x, optim = leaf(torch, 1.0), torch.optim
    several = torch.ones(2)
    calls = [
        lambda: optim.SGD([x], lr=-1),
        lambda: optim.SGD([x], momentum=-0.5),
        lambda: optim.SGD([x], weight_decay=-0.5),
        lambda: optim.SGD([x], momentum=0.5, dampening=0.1, nesterov=True),
        lambda: optim.SGD([x], nesterov=True),
        lambda: optim.Adam([x], lr=-0.5),
        lambda: optim.Adam([x], betas=(1.0, 0.9)),
        lambda: optim.AdamW([x], betas=(0.9, -0.5)),
        lambda: optim.Adam([x], eps=-0.5),
        lambda: optim.Adam([x], weight_decay=-0.5),
        lambda: optim.RMSprop([x], alpha=-0.5),
        lambda: optim.RMSprop([x], momentum=-0.5),
        lambda: optim.Adagrad([x], lr_decay=-0.5),
        lambda: optim.Adagrad([x], initial_accumulator_value=-0.5),
        lambda: optim.LBFGS([x], lr=-0.5),
        lambda: optim.LBFGS([{"params": [x]}, {"params": [leaf(torch, 1.0)]}]),
        lambda: optim.SGD([x], fused=True, differentiable=True),
    ]
    tensors = [lambda: optim.SGD([x], lr=several), lambda: optim.Adam([x], lr=several)]
    words = "Tensor lr must be 1-element"
    return [error(call) for call in calls], [error(call, words=words) for call in tensors]


# ---- groups


@as_torch
def test_groups_of_parameters(torch):
    x, y, z = (leaf(torch, value) for value in (1.0, 2.0, 3.0))
    optimizer = torch.optim.SGD([{"params": x, "lr": 0.5}, {"params": [y]}], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": [z], "nesterov": True})
    shown = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return [
        shown,
        [len(group["params"]) for group in optimizer.param_groups],
        optimizer.param_groups[0]["params"][0] is x,
        repr(optimizer),
        error(optimizer.add_param_group, {"params": [y]}, words="more than one parameter group"),
        error(optimizer.add_param_group, [y], words="param_group must be a dict"),
    ]


@as_torch
def test_optimizers_of_named_parameters(torch):
    x, y, z = (leaf(torch, value) for value in (1.0, 2.0, 3.0))
    optimizer = torch.optim.SGD([("weight", x), ("bias", y)], lr=0.1)
    told = optimizer.state_dict()
    adding = error(optimizer.add_param_group, {"params": [z]}, words="with/without names")
    plain = torch.optim.SGD([x, y], lr=0.1)
    plain.load_state_dict(told)
    return told, adding, plain.state_dict()["param_groups"][0]["param_names"]


@as_torch("""
    ValueError("parameter group didn't specify a value of required optimization parameter lr")
    1.0
    'NotImplementedError'
""")
def test_options_that_groups_must_say(torch):
    x = leaf(torch, 1.0)
    required = base(torch).required
    words = "didn't specify a value of required optimization parameter lr"
    refused = error(torch.optim.Optimizer, [x], {"lr": required}, words=words)
    optimizer = torch.optim.Optimizer([{"params": [x], "lr": 1.0}], {"lr": required})
    return refused, optimizer.param_groups[0]["lr"], error(optimizer.step, words="")["error"]


# ---- a step


@as_torch("""
    [tensor(4.0, dtype=float64), tensor(2.2500000037500003, dtype=float64)]
    [True, True]
    tensor(1.0087124618718393, dtype=float64, requires_grad=True)
""")
def test_closures_run_with_grad_mode_on(torch):
    x, seen = double(torch, 2.0), []
    optimizer = torch.optim.Adam([x], lr=0.5)

    def closure():
        seen.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = x * x
        loss.backward()
        return loss

    with torch.no_grad():
        losses = [optimizer.step(closure).detach() for _ in range(2)]
    return losses, seen, x


@as_torch("""
    ['all', ['before', True, 1, {}], ['after', ['closure']], 'end']
    [7, None]
    RuntimeError(
     '<function SGD.step at 0x7f2135b27a60> must return None or a tuple of (new_args, '
     'new_kwargs), but got 1.')
""")
def test_hooks_of_steps(torch):
    x, calls = double(torch, 2.0), []
    optimizer = torch.optim.SGD([x], lr=0.5)

    def before(owner, args, kwargs):
        calls.append(("before", owner is optimizer, len(args), dict(kwargs)))

    def turned(owner, args, kwargs):
        return args, {"closure": lambda: 7}

    handles = [
        optimizer.register_step_pre_hook(before),
        optimizer.register_step_pre_hook(turned),
        optimizer.register_step_post_hook(lambda o, a, k: calls.append(("after", sorted(k)))),
        base(torch).register_optimizer_step_pre_hook(lambda *_: calls.append("all")),
        base(torch).register_optimizer_step_post_hook(lambda *_: calls.append("end")),
    ]
    results = [optimizer.step()]
    for handle in handles:
        handle.remove()
    results.append(optimizer.step())
    optimizer.register_step_pre_hook(lambda *_: 1)
    return calls, results, error(optimizer.step, words="must return None or a tuple of (new_args")


@pytest.mark.slow
@as_torch("""
    tensor([0.25, -1.25], dtype=float64, requires_grad=True)
    {'state': {'0': {'count': 2}}, 'param_groups': [{'lr': 0.5, 'params': [0]}]}
    2
""")
def test_a_user_defined_optimizer(torch):
    calls = []

    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for param in group["params"]:
                    state = self.state[param]
                    state["count"] = state.get("count", 0) + 1
                    param.sub_(group["lr"] * param.grad.sign() / state["count"])

    x = double(torch, 1.0, -2.0)
    optimizer = Signs([x], 0.5)
    optimizer.register_step_post_hook(lambda *_: calls.append(None))
    for _ in range(2):
        optimizer.zero_grad()
        (x**2).sum().backward()
        optimizer.step()
    return x, optimizer.state_dict(), len(calls)


class Twice(jaxgrad.optim.SGD):
    def step(self):
        super().step()
        super().step()


def test_hooks_run_once_around_a_step_of_steps():
    x, calls = double(jaxgrad, 1.0), []
    optimizer = Twice([x], lr=0.25)
    optimizer.register_step_post_hook(lambda *_: calls.append(x.item()))
    x.backward()
    optimizer.step()
    assert calls == [0.5]


@as_torch("""
    tensor([1.5], dtype=float64)
    tensor([0.5, 1.5], dtype=float64)
    True
    True
    True
""")
def test_who_sees_a_step(torch):
    x = double(torch, 1.0, 2.0)
    piece, data = x.detach()[1:], x.data
    y = (x * x).sum()
    version = x._version
    x.grad = torch.ones_like(x)
    torch.optim.SGD([x], lr=0.5).step()
    y.backward() if not hasattr(torch, "__version__") else None
    return piece, data, x.is_leaf, x.requires_grad, x._version > version


def test_a_parameter_that_is_a_part_of_a_tensor():
    base = jaxgrad.zeros(3)
    x = base[1:].requires_grad_()
    x.grad = jaxgrad.ones(2)
    jaxgrad.optim.SGD([x], lr=0.5).step()
    assert base.tolist() == [0.0, -0.5, -0.5]


def test_a_step_raises_the_version():
    x = double(jaxgrad, 1.0, 2.0)
    x.grad = jaxgrad.ones_like(x)
    optimizer = jaxgrad.optim.SGD([x], lr=0.5)
    optimizer.step()
    assert x._version == 1
    with jaxgrad.autograd.graph.strict_versions():
        y = (x * x).sum()
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


@pytest.mark.parametrize("name", ["Adam", "Adadelta", "ASGD", "SGD"])
def test_a_differentiable_step_passes_the_check_of_versions(name):
    """PyTorch's steps are operators on copies: what they save is not written to."""
    g = jaxgrad.tensor([0.5, -2.0], requires_grad=True)
    x = jaxgrad.ones(2, requires_grad=True).clone()
    optimizer = getattr(jaxgrad.optim, name)([x], lr=0.1, differentiable=True)
    with jaxgrad.autograd.graph.strict_versions():
        for _ in range(2):
            x.grad = g * g
            optimizer.step()
        x.sum().backward()
    assert g.grad.isfinite().all()


def test_an_expanded_parameter_is_refused():
    x = jaxgrad.zeros(1).expand(3).requires_grad_()
    x.grad = jaxgrad.ones(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        jaxgrad.optim.SGD([x], lr=0.5).step()


# ---- steps that are recorded


@pytest.mark.slow
@as_torch(precision=1e-9)
def test_steps_through_which_gradients_flow(torch):
    results, usual = {}, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # otherwise PyTorch's bias correction has 32 bits here
    for name in ("SGD", "Adam", "RMSprop", "Adagrad"):
        begin, rate = double(torch, 1.0, -2.0), double(torch, 0.1)
        x = begin.clone()
        lr = rate if name in ("SGD", "Adam") else 0.1  # PyTorch accepts these
        optimizer = getattr(torch.optim, name)([x], lr=lr, differentiable=True)
        for number in range(2):
            x.grad = (begin + number + 1).square()
            optimizer.step()
        (x * x).sum().backward()
        gradients = begin.grad, rate.grad
        results[name] = x.detach(), gradients
    torch.set_default_dtype(usual)
    return results


@as_torch("""
    RuntimeError('a leaf Variable that requires grad is being used in an in-place operation.')
""")
def test_a_leaf_cannot_take_a_recorded_step(torch):
    x = double(torch, 1.0)
    optimizer = torch.optim.SGD([x], lr=0.1, differentiable=True)
    x.grad = torch.ones_like(x)
    words = "a leaf Variable that requires grad is being used in an in-place operation"
    return error(optimizer.step, words=words)


@as_torch("""
    tensor(0.0)
    tensor(-1.0)
""")
def test_tangents_go_through_a_step(torch):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
        x.grad = x * x
        torch.optim.SGD([x], lr=0.5).step()
        return tuple(forward_ad.unpack_dual(x))


# ---- state


@as_torch
def test_state_is_there_after_the_first_step(torch):
    x, states = double(torch, 1.0), {}
    for name in ("SGD", "Adam", "RMSprop", "Adagrad"):
        optimizer = getattr(torch.optim, name)([x], lr=0.1)
        before = optimizer.state_dict()
        x.grad = None
        optimizer.step()
        between = len(optimizer.state)
        x.grad = torch.ones_like(x)
        optimizer.step()
        states[name] = before, between, optimizer.state_dict()["state"]
    return states


@as_torch(precision=1e-9)
def test_state_dicts_go_on_where_they_ended(torch):
    states = []
    for name in ("SGD", "Adam", "RMSprop", "Adagrad"):
        options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
        optimizer, x, y = stepped(torch, name, **options)
        a, b = double(torch, *x.tolist()), double(torch, y.item())
        other = getattr(torch.optim, name)([{"params": [a]}, {"params": [b]}], lr=7.0)
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for p, q in ((x, a), (y, b)):
            p.grad = q.grad = torch.ones_like(p)
        optimizer.step()
        other.step()
        assert (a == x).all() and (b == y).all()
        states.append(other.state_dict())
    return states


@as_torch("""
    ValueError('loaded state dict has a different number of parameter groups')
    ValueError(
     "loaded state dict contains a parameter group that doesn't match the size of "
     "optimizer's group")
""")
def test_state_dicts_of_other_groups(torch):
    optimizer, x, _ = stepped(torch)
    told = optimizer.state_dict()
    words = [
        "a different number of parameter groups",
        "doesn't match the size of optimizer's group",
    ]
    one = torch.optim.Adam([x])
    two = torch.optim.Adam([{"params": [x, leaf(torch, 1.0)]}, {"params": [leaf(torch, 1.0)]}])
    return [
        error(one.load_state_dict, told, words=words[0]),
        error(two.load_state_dict, told, words=words[1]),
    ]


@as_torch("""
    'first'
    'before'
    'after'
    ['more', 'param_groups', 'state']
    'loaded'
""")
def test_hooks_of_state_dicts_of_optimizers(torch):
    optimizer, calls = stepped(torch)[0], []

    def without_groups(owner, state_dict):
        calls.append("after")
        return state_dict | {"more": 1}

    optimizer.register_state_dict_pre_hook(lambda owner: calls.append("before"))
    optimizer.register_state_dict_pre_hook(lambda owner: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(without_groups)
    optimizer.register_load_state_dict_pre_hook(lambda owner, told: calls.append(sorted(told)))
    optimizer.register_load_state_dict_post_hook(lambda owner: calls.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    return calls


@as_torch("""
    step = 'torch.float32'
    exp_avg = 'torch.float32'
    exp_avg_sq = 'torch.float32'
""")
def test_state_is_loaded_in_the_dtype_of_the_parameter(torch):
    told = stepped(torch)[0].state_dict()
    x, y = leaf(torch, 1.0, -2.0), leaf(torch, 3.0)
    optimizer = torch.optim.Adam([{"params": [x]}, {"params": [y]}])
    optimizer.load_state_dict(told)
    return {name: str(value.dtype) for name, value in optimizer.state[x].items()}


def test_what_is_loaded_is_a_copy():
    optimizer, x, _ = stepped(jaxgrad)
    told = optimizer.state_dict()
    mean = told["state"][0]["exp_avg"].tolist()
    other = jaxgrad.optim.Adam([{"params": [x]}, {"params": [double(jaxgrad, 3.0)]}])
    other.load_state_dict(told)
    other.step()
    assert told["state"][0]["exp_avg"].tolist() == mean
    assert other.state[x]["step"].item() == 3 and optimizer.state[x]["step"].item() == 2


class OfTorch:
    """The part of PyTorch's Tensor that a state dict needs."""

    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_a_state_dict_of_another_library():
    optimizer, x, _ = stepped(jaxgrad)
    told = copy.deepcopy(optimizer.state_dict())
    for state in told["state"].values():
        state.update({name: OfTorch(value.numpy()) for name, value in state.items()})
    other = jaxgrad.optim.Adam([{"params": [x]}, {"params": [double(jaxgrad, 3.0)]}])
    other.load_state_dict(told)
    assert other.state[x]["exp_avg"].tolist() == optimizer.state[x]["exp_avg"].tolist()
    assert other.state[x]["step"].item() == 2


def test_a_copy_of_an_optimizer_has_a_life_of_its_own():
    optimizer, x, _ = stepped(jaxgrad, "SGD", momentum=0.9)
    other = copy.deepcopy(optimizer)
    (twin,) = other.param_groups[0]["params"]
    assert twin is not x and twin.tolist() == x.tolist()
    before = x.tolist()
    other.step()
    assert x.tolist() == before != twin.tolist()


@pytest.mark.slow
def test_a_wrapper_need_not_call_the_init_of_optimizer():
    """As the Lookahead optimizers of several packages: it shares the groups of another."""

    class Wrapper(jaxgrad.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer, self.param_groups = optimizer, optimizer.param_groups

        def step(self, closure=None):
            self.optimizer.step(closure)
            self.count = getattr(self, "count", 0) + 1

    x = jaxgrad.tensor([1.0], requires_grad=True)
    wrapper = Wrapper(jaxgrad.optim.SGD([x], lr=0.5))
    for _ in range(2):
        wrapper.zero_grad()
        (x * 2).sum().backward()
        wrapper.step()
    assert x.item() == -1 and wrapper.count == 2


# ---- what optimizers of other packages ask


@as_torch("""
    [False, False]
    [True, False]
    [False, False]
    [False, False]
    [True, False]
""")
def test_the_default_kind_of_step(torch):
    default = base(torch)._default_to_fused_or_foreach
    x, whole = leaf(torch, 1.0), torch.tensor([1])
    parameters = [torch.nn.Parameter(x), None]
    return (
        list(default(parameters, differentiable=False)),
        list(default(parameters, False, use_fused=True)),
        list(default(parameters, True, use_fused=True)),
        list(default([x, whole], False, True)),
        list(default([], False, True)),
    )


@as_torch("""
    [[tensor(3.0), 3], [tensor(3.0), 3]]
    [tensor(3.0), tensor(3.0)]
""")
def test_steps_that_an_own_optimizer_counts_in_place_after_loading(torch):
    class Counting(base(torch).Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @torch.no_grad()
        def step(self):
            for param in self.param_groups[0]["params"]:
                state = self.state[param]
                if not state:
                    state |= {"step": torch.tensor(0.0), "mu": 0}
                state["step"] += 1
                state["mu"] += 1

    class CountingAdam(torch.optim.Adam):
        @torch.no_grad()
        def step(self):
            for param in self.param_groups[0]["params"]:
                self.state[param].setdefault("step", torch.tensor(0.0)).add_(1)

    counts = []
    for kind in (Counting, CountingAdam):
        params = [leaf(torch, 1.0), leaf(torch, 2.0)]
        optimizer, other = kind(params), kind(params)
        optimizer.step()
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        other.step()
        other.step()
        counts.append([list(other.state[param].values()) for param in params])
    first, second = counts
    return first, [count for (count,) in second]


def test_order_of_the_options_of_a_group():
    named = [("a", jaxgrad.nn.Parameter(jaxgrad.ones(1)))]
    optimizer = jaxgrad.optim.SGD([{"params": named, "lr": 0.1}], lr=1.0)
    assert list(optimizer.param_groups[0])[:4] == ["params", "lr", "param_names", "momentum"]
    assert list(jaxgrad.optim.SGD(named).state_dict()["param_groups"][0])[:2] == [
        "param_names",
        "lr",
    ]


def test_lbfgs_with_a_sparse_gradient():
    param = jaxgrad.nn.Parameter(jaxgrad.tensor([1.0, 2.0]))

    def closure():
        param.grad = param.detach().to_sparse()
        return (param * param).sum() / 2

    jaxgrad.optim.LBFGS([param]).step(closure)
    assert abs(param).max().item() < 1e-6  # the minimum of a quadratic function


def test_hooks_under_the_names_of_pytorch():
    optimizer = jaxgrad.optim.SGD([jaxgrad.ones(1, requires_grad=True)])
    for kind in ("step", "state_dict", "load_state_dict"):
        for when in ("pre", "post"):
            handle = getattr(optimizer, f"register_{kind}_{when}_hook")(lambda *arguments: None)
            assert list(getattr(optimizer, f"_optimizer_{kind}_{when}_hooks")) == [handle.id]


def test_names_that_modules_import():
    assert jaxgrad.optim.sgd.Optimizer is jaxgrad.optim.optimizer.Optimizer
    packed = jaxgrad.nn.utils.rnn.PackedSequence
    assert jaxgrad.nn.modules.rnn.PackedSequence is packed
    assert jaxgrad.storage.TypedStorage is jaxgrad.TypedStorage
    for module in (jaxgrad.optim.adam, jaxgrad.nn.modules.rnn, jaxgrad.storage):
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = module.nonsense


@pytest.mark.parametrize("params", [jaxgrad.nn.Linear(3, 2).parameters, None, 3])
def test_parameters_that_cannot_be_iterated(params):
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts, but got"):
        jaxgrad.optim.SGD(params)


def test_a_list_of_parameters_is_iterated_and_other_modules_are_refused():
    """As in PyTorch 2.13."""
    nn, weight = jaxgrad.nn, jaxgrad.nn.Parameter(jaxgrad.ones(1))
    optimizer = jaxgrad.optim.SGD(nn.ParameterList([weight]), lr=0.5)
    assert optimizer.param_groups[0]["params"] == [weight]
    for module in (
        nn.Linear(1, 1),
        nn.ModuleList([nn.Linear(1, 1)]),
        nn.ParameterDict({"a": weight}),
    ):
        with pytest.raises(TypeError, match=r"but got the module .*: pass its parameters"):
            jaxgrad.optim.SGD(module)


def test_one_beta():
    with pytest.raises(IndexError, match=r"betas must be a pair of numbers, not \(0.9,\)"):
        jaxgrad.optim.Adam([jaxgrad.ones(1, requires_grad=True)], betas=(0.9,))


def test_an_optimizer_that_asks_about_graphs_of_kernels():
    """As those of timm do in each step."""

    class Descent(jaxgrad.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.5})

        @jaxgrad.no_grad()
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            for group in self.param_groups:
                for param in group["params"]:
                    param.add_(param.grad, alpha=-group["lr"])

    x = jaxgrad.ones(2, requires_grad=True)
    (x * x).sum().backward()
    Descent([x]).step()
    assert x.tolist() == [0, 0]
