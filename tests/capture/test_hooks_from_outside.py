"""Hooks that are registered outside of a compiled function, and what they read."""

import functools

import pytest

import jaxgrad as torch

nn = torch.nn


ONE = torch.ones(1)


def numbers(function, calls, before=lambda number: None):
    """The numbers that the calls of a function return."""
    results = []
    for number, arguments in enumerate(calls):
        before(number)
        results.append(function(*arguments).tolist())
    return results


def set_item(state, values):
    """Before each call that `values` names, set the item "k" of a dict."""
    return lambda number: state.update(k=values[number]) if number in values else None


def leaf_hook(k):
    w = torch.ones(1, requires_grad=True)
    w.register_hook(lambda gradient: gradient * k["k"])

    def f(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.clone()

    return f


def post_accumulate_hook(k):
    w = torch.ones(1, requires_grad=True)

    def hook(leaf):
        with torch.no_grad():
            leaf.copy_(leaf.grad * k["k"])
        leaf.grad = None

    w.register_post_accumulate_grad_hook(hook)

    def f(x):
        (w * x).sum().backward()
        return w.detach().clone()

    return f


def hook_of_a_parameter(k):
    layer = nn.Linear(1, 1)
    layer.weight.register_hook(lambda gradient: gradient * k["k"])

    def f(x):
        layer.zero_grad()
        layer(x).sum().backward()
        return layer.weight.grad.clone()[0]

    return f


def hook_that_is_a_method(k):
    class Factor:
        def of(self, gradient):
            return gradient * k["k"]

    w = torch.ones(1, requires_grad=True)
    w.register_hook(functools.partial(Factor.of, Factor()))

    def f(x):
        return torch.autograd.grad((w * x).sum(), w)[0]

    return f


def hook_of_a_node(k):
    w = torch.ones(1, requires_grad=True)
    y = w * 1
    y.grad_fn.register_hook(lambda inputs, _: (inputs[0] * k["k"], *inputs[1:]))

    def f(x):
        return torch.autograd.grad((y * x).sum(), w, retain_graph=True)[0]

    return f


def prehook_of_an_inner_node(k):
    w = torch.ones(1, requires_grad=True)
    y = (w * 1).reshape(1, 1)
    inner = y.grad_fn.next_functions[0][0]
    inner.register_prehook(lambda gradients: (gradients[0] * k["k"],))

    def f(x):
        return torch.autograd.grad((y * x).sum(), w, retain_graph=True)[0]

    return f


def stepping(k, register):
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    register(optimizer, w)

    def f(x):
        with torch.no_grad():
            w.zero_()
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return -w.detach().clone()

    return f


def step_pre_hook(k):
    def register(optimizer, w):
        def scale(*_):
            w.grad.mul_(k["k"])

        optimizer.register_step_pre_hook(scale)

    return stepping(k, register)


def step_post_hook(k):
    return stepping(
        k,
        lambda optimizer, w: optimizer.register_step_post_hook(lambda *_: w.data.mul_(k["k"])),
    )


def rate_of_a_schedule(k):
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: k["k"])

    def f(x):
        with torch.no_grad():
            w.zero_()
        w.grad = x.clone()
        schedule.optimizer.step()
        schedule.step()
        return w.detach().clone()

    return f


HOOKS = [
    *(leaf_hook, post_accumulate_hook, hook_of_a_parameter, hook_that_is_a_method, hook_of_a_node),
    *(prehook_of_an_inner_node, step_pre_hook, step_post_hook),
]


@pytest.mark.parametrize("world", HOOKS, ids=lambda world: world.__name__)
def test_what_a_hook_from_outside_reads(world):
    for compiled in (lambda function: function, torch.jit):
        k = {"k": 1.0}
        before = set_item(k, {2: 0.0, 4: 3.0})
        function = compiled(world(k))
        assert numbers(function, [(ONE,)] * 5, before) == [[1], [1], [0], [0], [3]]


def test_the_lr_that_a_schedule_returns():
    # a step has the rate that the schedule computed after the step before
    for compiled in (lambda function: function, torch.jit):
        k = {"k": 1.0}
        function = compiled(rate_of_a_schedule(k))
        before = set_item(k, {1: 0.0, 3: 3.0})
        assert numbers(function, [(ONE,)] * 5, before) == [[-1], [-1], [0], [0], [-3]]


def test_a_hook_of_all_modules():
    k, layer = {"k": 1.0}, nn.Identity()
    compiled = torch.jit(lambda x: layer(x) * 1)
    register = nn.modules.module.register_module_forward_hook
    with register(lambda module, inputs, output: output * k["k"]):
        before = set_item(k, {2: 0.0, 4: 3.0})
        assert numbers(compiled, [(ONE,)] * 5, before) == [[1], [1], [0], [0], [3]]
    assert compiled(ONE).tolist() == [1]


def test_a_hook_of_all_optimizers():
    k = {"k": 1.0}
    compiled = torch.jit(stepping(k, lambda optimizer, w: None))
    register = torch.optim.optimizer.register_optimizer_step_post_hook
    handle = register(
        lambda optimizer, *_: optimizer.param_groups[0]["params"][0].data.mul_(k["k"])
    )
    try:
        before = set_item(k, {2: 0.0, 4: 3.0})
        assert numbers(compiled, [(ONE,)] * 5, before) == [[1], [1], [0], [0], [3]]
    finally:
        handle.remove()
    assert compiled(ONE).tolist() == [1]


def test_a_hook_that_an_optimizer_gets_later():
    held = []
    compiled = torch.jit(stepping({}, lambda optimizer, w: held.extend((optimizer, w))))
    optimizer, w = held
    assert compiled(ONE).tolist() == [1]
    with optimizer.register_step_post_hook(lambda *_: w.data.mul_(5)):
        assert compiled(ONE).tolist() == [5]
    assert compiled(ONE).tolist() == [1]
