"""A second derivative, which runs a compiled function again, has the state with which the function
was called: what has changed since is put back afterwards.
"""

import os

import jax
import numpy
import pytest

import jaxgrad as torch

nn = torch.nn


class Own:
    """An object with attributes."""


def first(function, x):
    """The result of a function, and its gradient with a history."""
    y = function(x)
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y, gradient


class Power(nn.Module):
    def forward(self, x):
        return x**3 if self.training else x**2


def training():
    module = Power()
    return module, module.eval, lambda: module.training


def option():
    parameter = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1, weight_decay=1.0)
    (group,) = optimizer.param_groups

    def function(x):
        return x**3 * group["weight_decay"] if group["nesterov"] is False else x**2

    def change():
        group["weight_decay"], group["nesterov"] = 3.0, True

    return function, change, lambda: (group["weight_decay"], group["nesterov"])


def of_setting(read, put, before, after):
    def make():
        put(before)
        return (lambda x: x**3 if read() == before else x**2), lambda: put(after), read

    return make


def attribute():
    own, inner = Own(), Own()
    own.inner, inner.power = inner, 3

    def change():
        own.inner, inner.power = Own(), 2

    return lambda x: x**own.inner.power, change, lambda: (own.inner is inner, inner.power)


def elements():
    own, powers = Own(), [3]
    own.powers = powers

    def change():
        own.powers, powers[0] = [2], 1

    return lambda x: x ** own.powers[0], change, lambda: (own.powers, powers)


def hook():
    net = nn.Identity()
    handle = net.register_forward_hook(lambda module, inputs, output: output**3)
    return lambda x: net(x), handle.remove, lambda: len(net._forward_hooks)


def later_hook():
    net = nn.Identity()

    def change():
        net.register_forward_hook(lambda module, inputs, output: output**2)

    return lambda x: net(x) ** 3, change, lambda: len(net._forward_hooks)


def submodule():
    net, cube = nn.Sequential(Power()), Power()
    net[0] = cube
    square = Power().train(False)

    def change():
        net[0] = square

    return lambda x: net(x), change, lambda: (net[0] is square, cube.training)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.power = 3

    def forward(self, x):
        return x**self.power


def attribute_of_a_module():
    net = Scaled()
    return lambda x: net(x), lambda: setattr(net, "power", 2), lambda: net.power


def option_of_a_layer():
    net = nn.LeakyReLU(12.0)

    def change():
        net.negative_slope = 2.0

    # the slope at 2 is 144 * 2 * 2 / 48
    return lambda x: net(-x) ** 2 / 48, change, lambda: net.negative_slope


def forward_of_a_layer():
    net = Scaled()

    def change():
        net.forward = lambda x: x**2

    return lambda x: net(x), change, lambda: "forward" in vars(net)


def environment():
    name = "JAXGRAD_TEST_OF_REPLAYS"
    os.environ[name] = "3"

    def change():
        os.environ[name] = "2"

    return lambda x: x ** int(os.environ[name]), change, lambda: os.environ[name]


CHANGES = {
    "training": training,
    "options": option,
    "deterministic": of_setting(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False, True
    ),
    "dtype": of_setting(
        torch.get_default_dtype, torch.set_default_dtype, torch.float32, torch.float64
    ),
    "autocast": of_setting(
        lambda: torch.get_autocast_dtype("cpu"),
        lambda dtype: torch.set_autocast_dtype("cpu", dtype),
        torch.bfloat16,
        torch.float16,
    ),
    "threads": of_setting(torch.get_num_threads, torch.set_num_threads, 2, 3),
    "anomaly": of_setting(torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, False, True),
    "attribute": attribute,
    "elements": elements,
    "hook": hook,
    "later hook": later_hook,
    "submodule": submodule,
    "attribute of a module": attribute_of_a_module,
    "option of a layer": option_of_a_layer,
    "forward of a layer": forward_of_a_layer,
    "environment": environment,
}


@pytest.fixture
def settings():
    before = torch.get_num_threads()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_default_dtype(torch.float32)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_num_threads(before)
    torch.autograd.set_detect_anomaly(False)
    os.environ.pop("JAXGRAD_TEST_OF_REPLAYS", None)


@pytest.mark.usefixtures("settings")
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_since_the_call(name):
    function, change, state = CHANGES[name]()
    x = torch.tensor([2.0], requires_grad=True)
    _, gradient = first(torch.jit(function), x)
    assert gradient.item() == 12
    (known,) = torch.autograd.grad(gradient.sum(), x, retain_graph=True)
    change()
    changed = state()
    (second,) = torch.autograd.grad(gradient.sum(), x)
    assert known.item() == second.item() and state() == changed


def test_a_submodule_that_is_gone():
    net = nn.Sequential(nn.Tanh())
    x = torch.tensor([2.0], requires_grad=True)
    _, gradient = first(torch.jit(lambda x: net(x)), x)
    net[0] = nn.ReLU()
    with pytest.raises(RuntimeError, match="a submodule of the Sequential that it uses is gone"):
        torch.autograd.grad(gradient.sum(), x)
    assert type(net[0]) is nn.ReLU


def test_an_object_that_is_gone():
    own = Own()
    own.inner = Own()
    own.inner.power = 3
    x = torch.tensor([2.0], requires_grad=True)
    _, gradient = first(torch.jit(lambda x: x**own.inner.power), x)
    own.inner = Own()
    with pytest.raises(RuntimeError, match="runs again for a derivative, and what inner was when"):
        torch.autograd.grad(gradient.sum(), x)


def with_a_pass_inside(jit):
    """A function with a backward pass of its own through a hook; its input, result and the hook."""
    weight = torch.tensor([1.0, 1.5], requires_grad=True)
    handle = weight.register_hook(lambda gradient: gradient * 3)

    def f(x):
        loss = ((x + weight) * weight).tanh().sum()
        return torch.autograd.grad(loss, weight, create_graph=True)[0]

    x = torch.tensor([-1.0, 0.5], requires_grad=True)
    y = jit(f)(x)
    (gradient,) = torch.autograd.grad((y * y).sum(), weight, create_graph=True)
    return x, weight, gradient, handle


def test_a_hook_of_a_leaf_in_a_pass_inside():
    seconds = []
    for jit in (torch.jit, lambda function: function):
        x, weight, gradient, _ = with_a_pass_inside(jit)
        weight.register_hook(lambda gradient: gradient * 2)
        seconds.append(torch.autograd.grad((gradient * gradient).sum(), [x, weight]))
    torch.testing.assert_close(*seconds)


def test_a_hook_that_is_gone():
    x, weight, gradient, handle = with_a_pass_inside(torch.jit)
    handle.remove()
    with pytest.raises(RuntimeError, match="a hook that its backward pass has called is removed"):
        torch.autograd.grad((gradient * gradient).sum(), [x, weight])


def exchanging(weight, net, other):
    """A function that exchanges two parameters at each call."""

    def function(x):
        nonlocal other
        net.weight, other = other, net.weight
        return (weight * x).tanh()

    return function


def test_parameters_that_change_places():
    seconds, x = [], torch.tensor([2.0, -1.0])
    for jit in (torch.jit, lambda function: function):
        weight = nn.Parameter(torch.tensor([0.25, 0.5]))
        f = jit(exchanging(weight, nn.Linear(2, 2), nn.Parameter(torch.ones(2, 2))))
        for _ in range(2):
            (gradient,) = torch.autograd.grad((f(x) ** 2).sum(), weight, create_graph=True)
            seconds.append(torch.autograd.grad(gradient.sum(), weight)[0])
    torch.testing.assert_close(seconds[:2], seconds[2:])


def test_an_array_that_is_written_to_in_part():
    array = numpy.array([1.0, 2.0])

    @torch.jit
    def f(x):
        array[0] = -1.0
        return x * 2

    f(torch.ones(1))
    array *= 0.5
    f(torch.ones(1))
    assert array.tolist() == [-1.0, 1.0]


def test_tensors_at_places_that_are_out_of_reach_by_now():
    own, inner, weight = Own(), Own(), torch.tensor([1.0, 2.0], requires_grad=True)
    own.inner, inner.state, inner.both = inner, torch.ones(2), [torch.ones(2), 3.0, Own()]

    @torch.jit
    def f(x):
        held = own.inner
        held.state = held.state * 1.5
        held.both = [held.both[0] * 2, held.both[1], held.both[2]]
        return weight * x * held.state * held.both[0]

    f(torch.ones(2))
    y = f(torch.ones(2))
    (gradient,) = torch.autograd.grad((y**2).sum(), weight, create_graph=True)
    mine = inner.state = torch.zeros(2)
    own.inner, inner.both = Own(), 5
    # y is 9 times the weight, so the second derivative of its square is 2 * 81
    assert torch.autograd.grad(gradient.sum(), weight)[0].tolist() == [162, 162]
    assert inner.state is mine and inner.both == 5


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_an_optimizer_that_has_gone_on(kind):
    seconds = []
    for jit in (torch.jit, lambda function: function):
        weight = torch.tensor([3.0, 1.0], requires_grad=True)
        x = torch.tensor([2.0, 1.0], requires_grad=True)
        options = {"momentum": 0.9} if kind == "SGD" else {}
        optimizer = getattr(torch.optim, kind)([weight], lr=0.1, **options)

        def f(x, weight=weight, optimizer=optimizer):
            weight.grad = torch.ones(2) * 2
            optimizer.step()
            return (weight * x**3).sum()

        f = jit(f)
        results = [first(f, x)[1] for _ in range(4)]
        optimizer.param_groups[0]["weight_decay"] = 0.5
        f(x)
        seconds.append([torch.autograd.grad(g.sum(), x)[0] for g in results])
    torch.testing.assert_close(*seconds)


def changing(own, weight):
    """Leaves results with a history in several objects, which a replay meets in another order."""

    def function(x):
        own.both = [own.both[0] * 2, own.both[1]]
        own.both.append(weight * x)
        own.items["k"] = weight * weight * x
        own.inner.linear = weight * 5
        own.inner.cubic = weight**3
        return weight * x * own.both[0]

    return function


def test_a_gradient_goes_to_the_result_that_it_is_of():
    known = []
    for jit in (torch.jit, lambda function: function):
        own, weight = Own(), torch.tensor([1.0, 2.0], requires_grad=True)
        own.both, own.items, own.inner = [torch.ones(2), 3.0], {}, Own()
        f, values = jit(changing(own, weight)), []
        for _ in range(3):
            y = f(torch.ones(2))
            parts = [y, own.both[2], own.items["k"], own.inner.linear, own.inner.cubic]
            for part in parts:
                (gradient,) = torch.autograd.grad((part**2).sum(), weight, create_graph=True)
                values.append(torch.autograd.grad(gradient.sum(), weight)[0].tolist())
        known.append(values)
    assert known[0] == known[1]


# ---- settings that a function reads and then changes


def setting(read, put, before, after):
    return read, put, before, after


LASTING = {
    "autocast's dtype": setting(
        lambda: torch.get_autocast_dtype("cpu"),
        lambda dtype: torch.set_autocast_dtype("cpu", dtype),
        torch.bfloat16,
        torch.float16,
    ),
    "autocast": setting(
        lambda: torch.is_autocast_enabled("cpu"),
        lambda enabled: torch.set_autocast_enabled("cpu", enabled),
        False,
        True,
    ),
    "autocast's cache": setting(
        torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, True, False
    ),
    "the grad mode": setting(torch.is_grad_enabled, torch.set_grad_enabled, True, False),
    "the default dtype": setting(
        torch.get_default_dtype, torch.set_default_dtype, torch.float32, torch.float64
    ),
    "anomaly mode": setting(
        torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, False, True
    ),
    "the precision of products": setting(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest", "high"
    ),
    "threads of a pass": setting(
        torch.autograd.is_multithreading_enabled,
        torch.autograd.set_multithreading_enabled,
        True,
        False,
    ),
    "warnings": setting(torch.is_warn_always_enabled, torch.set_warn_always, False, True),
}


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", LASTING)
def test_a_setting_that_is_read_and_changed(name):
    read, put, before, after = LASTING[name]

    def function(x):
        known = read()
        put(after)
        return known, x * 2

    try:
        put(before)
        f, values = torch.jit(function), []
        for call in range(5):
            values.append((f(torch.ones(2))[0], read()))
            if call == 2:
                put(before)
        wanted = [(before, after), (after, after), (after, after), (before, after), (after, after)]
        assert values == wanted
    finally:
        put(before)
        jax.config.update("jax_default_matmul_precision", None)  # as it is at first


def test_a_setting_that_a_trace_reads_before_its_module_is_imported():
    def function(x):
        with torch.autocast("cpu"):
            y = x.reshape(1, 2) @ torch.ones(2, 1)
        torch.set_autocast_dtype("cpu", torch.float16)
        return y

    f = torch.jit(function)
    try:
        dtypes = [f(torch.ones(2)).dtype for _ in range(3)]
        assert dtypes == [torch.bfloat16, torch.float16, torch.float16]
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)


@pytest.mark.parametrize("kind", [list, set, dict, bytearray])
def test_a_container_that_has_grown_is_as_it_was(kind):
    box = kind()

    def add():
        if kind is dict:
            box[len(box)] = 1
        elif kind is set:
            box.add(len(box))
        else:
            box.append(1)
        return len(box)

    x = torch.tensor([2.0], requires_grad=True)
    y = torch.jit(lambda x: x * x * add())(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item(), len(box)) == (4, 2, 1)


def test_a_default_that_has_grown_is_as_it_was():
    def counted(x, log=[]):  # noqa: B006
        log.append(1)
        return x * x * len(log)

    x = torch.tensor([2.0], requires_grad=True)
    f = torch.jit(lambda x: counted(x))
    for calls in (1, 2, 3):
        (first,) = torch.autograd.grad(f(x), x, create_graph=True)
        (second,) = torch.autograd.grad(first, x)
        assert (first.item(), second.item()) == (4 * calls, 2 * calls)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_a_module_keeps_the_mode_that_it_got_after_the_call():
    module, x = nn.Linear(3, 1), torch.ones(2, 3, requires_grad=True)

    @torch.jit
    def function(x, memory):
        module.train()
        memory.copy_(Doubled.apply(x))  # so that the gradient needs another run
        return module(memory).sum()

    result = function(x * 1, torch.zeros(2, 3))
    module.eval()
    result.backward()
    assert not module.training
    row = [2 * number for number in module.weight.tolist()[0]]
    assert x.grad.flatten().tolist() == pytest.approx(row * 2)


def test_an_optimizer_keeps_its_counters():
    """Another run meets no gradient of `w`, which arrives through the graph from outside."""
    w, c = torch.ones(3, requires_grad=True), torch.ones((), requires_grad=True)
    optimizer, memory = torch.optim.Adam([w, c]), torch.zeros(3)

    @torch.jit
    def function(x, y):
        (y.sum() + c).backward()
        memory.copy_(Doubled.apply(x))
        optimizer.step()
        return memory.sum()

    result = function(w * 1.5, w * 0.5)
    result.backward()
    assert [optimizer.state[p]["step"].item() for p in (w, c)] == [1.0, 1.0]
    assert w.grad.tolist() == [3.5, 3.5, 3.5]
