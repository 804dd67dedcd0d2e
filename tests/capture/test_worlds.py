"""Small worlds of Python state: a compiled function does in each what the same lines do uncompiled.

Each world is built anew for the uncompiled and for the compiled function. It gives the function,
the arguments of its calls, and what happens to the world before each call.
"""

import collections
import dataclasses
import functools
import types

import jax
import pytest

import jaxgrad as torch

nn = torch.nn
ONE = torch.ones(1)


class Slots:
    """An object with attributes."""


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


# ---- a tensor has two names, and the function binds one of them to another tensor


def begin_again():
    s = Slots()
    s.start = s.h = torch.zeros(1)

    def f(x, begin):
        if begin:
            s.h = s.start
        s.h = s.h + x
        return s.start * 10 + s.h

    return f, [(ONE, begin) for begin in (True, False, False, True, False)]


def attribute_and_item():
    state = {"start": torch.zeros(1)}
    state["h"] = state["start"]

    def f(x):
        state["h"] = state["h"] + x
        return state["start"] * 10 + state["h"]

    return f, [(ONE,)] * 3


def closure_variables():
    start = h = torch.zeros(1)

    def f(x):
        nonlocal h
        h = h + x
        return start * 10 + h

    return f, [(ONE,)] * 3


def elements():
    state = [torch.zeros(1)] * 2

    def f(x):
        state[1] = state[1] + x
        return state[0] * 10 + state[1]

    return f, [(ONE,)] * 3


def leaf_of_a_tuple():
    s = Slots()
    s.h = torch.zeros(1), torch.zeros(1)
    s.first = s.h[0]

    def f(x):
        s.h = s.h[0] + x, s.h[1] + 2 * x
        return s.first * 100 + s.h[0] + s.h[1]

    return f, [(ONE,)] * 3


def parameter():
    layer, s = nn.Linear(1, 1), Slots()
    nn.init.ones_(layer.weight)
    s.h = layer.weight

    def f(x):
        s.h = s.h + x
        return (layer.weight * 10 + s.h).detach()[0]

    return f, [(ONE,)] * 3


def buffer():
    layer, s = nn.BatchNorm1d(1), Slots()
    s.h = layer.running_mean

    def f(x):
        s.h = s.h + x
        return layer.running_mean * 10 + s.h

    return f, [(ONE,)] * 3


def buffer_of_an_own_module():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("start", torch.zeros(1))
            self.slots = Slots()
            self.slots.h = self.start

        def forward(self, x):
            self.slots.h = self.slots.h + x
            return self.slots.h + 10 * self.start

    return Layer(), [(ONE,)] * 3


def written():
    s = Slots()
    s.start = s.h = torch.zeros(1)

    def f(x):
        s.h.add_(x)
        result = s.start * 10 + s.h
        s.h = s.h * 1
        return result

    return f, [(ONE,)] * 3


def best_so_far():
    s = Slots()
    s.h = s.best = torch.zeros(1)

    def f(x, is_best):
        s.h = s.h + x
        if is_best:
            s.best = s.h
        return s.best * 100 + s.h

    return f, [(ONE, is_best) for is_best in (False, True, False, False, True, True, False)]


ALIASES = {
    begin_again: [1, 2, 3, 1, 2],
    attribute_and_item: [1, 2, 3],
    closure_variables: [1, 2, 3],
    elements: [1, 2, 3],
    leaf_of_a_tuple: [3, 6, 9],
    parameter: [12, 13, 14],
    buffer: [1, 2, 3],
    buffer_of_an_own_module: [1, 2, 3],
    written: [11, 12, 13],
    best_so_far: [1, 202, 203, 204, 505, 606, 607],
}


@pytest.mark.parametrize("world", ALIASES, ids=lambda world: world.__name__)
def test_a_tensor_with_two_names(world):
    for compiled in (lambda function: function, torch.jit):
        function, calls = world()
        assert numbers(compiled(function), calls) == [[number] for number in ALIASES[world]]


def test_a_name_that_is_bound_at_each_call_is_traced_twice():
    # by itself, and beside a list that the function only appends to
    s, log = Slots(), []
    s.h = torch.zeros(1)
    log.append(s.h)

    @torch.jit
    def f(x):
        s.h = s.h + x
        log.append(s.h)
        return s.h

    assert numbers(f, [(ONE,)] * 6) == [[number] for number in range(1, 7)]
    assert len(f.traces) == 1 and [tensor.item() for tensor in log] == list(range(7))


# ---- names that appear where there were none


class Scaled(nn.Module):
    scale = 2.0

    def __init__(self):
        super().__init__()
        self.sub = nn.Identity()
        self.register_buffer("shift", torch.zeros(1))
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.sub(self.scale * x * self.weight.detach() + self.shift)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [("sub", nn.Flatten(0), 2), ("scale", 20.0, 20), ("shift", 3.0, 5), ("weight", ONE * 7, 14)],
)
def test_an_attribute_beside_a_member(name, value, wanted):
    module, x = Scaled(), torch.ones(1)
    compiled = torch.jit(lambda x: module(x))
    assert compiled(x).tolist() == [2]
    object.__setattr__(module, name, value)
    assert compiled(x).tolist() == module(x).tolist() == [wanted]
    del module.__dict__[name]
    assert compiled(x).tolist() == module(x).tolist() == [2]


def test_a_submodule_beside_a_submodule():
    class Ten(nn.Module):
        def forward(self, x):
            return 10 * x

    module, x = Scaled(), torch.ones(1)
    compiled = torch.jit(lambda x: module(x))
    assert compiled(x).tolist() == [2]
    object.__setattr__(module, "sub", Ten())
    assert compiled(x).tolist() == module(x).tolist() == [20]


def test_a_cached_property_that_is_set():
    class Cached:
        @functools.cached_property
        def factor(self):
            return 3.0

    cached = Cached()
    compiled = torch.jit(lambda x: x * cached.factor)
    assert compiled(ONE).tolist() == [3]
    cached.__dict__["factor"] = 5.0
    assert compiled(ONE).tolist() == [5]
    del cached.factor
    assert compiled(ONE).tolist() == [3]


# ---- settings


SETTINGS = [
    (torch.get_default_dtype, torch.set_default_dtype, torch.float64, torch.float32),
    (
        lambda: torch.get_autocast_dtype("cpu"),
        lambda dtype: torch.set_autocast_dtype("cpu", dtype),
        torch.float16,
        torch.bfloat16,
    ),
    (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, False, True),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, True, False),
    (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
        True,
        False,
    ),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, 1, 0),
    (torch.get_num_threads, torch.set_num_threads, 7, torch.get_num_threads()),
    (
        torch.get_num_interop_threads,
        torch.set_num_interop_threads,
        7,
        torch.get_num_interop_threads(),
    ),
    (torch.is_warn_always_enabled, torch.set_warn_always, True, False),
    (torch.initial_seed, torch.manual_seed, 3, 4),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "high", "highest"),
    (
        torch.backends.cuda.flash_sdp_enabled,
        torch.backends.cuda.enable_flash_sdp,
        False,
        True,
    ),
    *[
        (functools.partial(getattr, owner, name), functools.partial(setattr, owner, name), new, old)
        for owner, name, new, old in (
            (torch.backends.cudnn, "benchmark", True, False),
            (torch.backends.cudnn, "enabled", False, True),
            (torch.backends.mkldnn, "enabled", True, False),
            (torch.backends.opt_einsum, "strategy", "greedy", "auto"),
            (torch.backends.quantized, "engine", "fbgemm", "none"),
            (torch.backends.cuda.matmul, "allow_tf32", True, False),
        )
    ],
]


@pytest.mark.parametrize(("get", "put", "new", "old"), SETTINGS)
def test_a_setting_that_is_read_inside(get, put, new, old):
    precision = jax.config.jax_default_matmul_precision  # None, until someone sets it
    put(old)
    try:
        compiled = torch.jit(lambda x: x * len(repr(get())))
        for value in (old, new, old, new):
            put(value)
            assert get() == value
            assert compiled(ONE).item() == len(repr(value))
    finally:
        put(old)
        jax.config.update("jax_default_matmul_precision", precision)
    assert len(compiled.traces) <= 2


def test_a_setting_that_is_set_inside_is_set_by_each_call():
    def f(x):
        torch.set_num_threads(7)
        return x * 2

    compiled, threads = torch.jit(f), torch.get_num_threads()
    try:
        for _ in range(2):
            torch.set_num_threads(threads)
            compiled(ONE)
            assert torch.get_num_threads() == 7
    finally:
        torch.set_num_threads(threads)


def test_autocast_inside_takes_the_dtype_that_is_set():
    def f(x):
        with torch.autocast("cpu"):
            return x @ x

    compiled, x = torch.jit(f), torch.eye(2)
    assert compiled(x).dtype is torch.bfloat16
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert compiled(x).dtype is f(x).dtype is torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)


# ---- hooks from outside, and what they read


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


def test_a_rate_that_a_schedule_asks_for():
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


# ---- code and classes that change in place


def test_code_that_is_reloaded():
    def scale(x):
        return x * 2

    def other(x):
        return x * 3

    compiled = torch.jit(lambda x: scale(x))
    assert compiled(ONE).tolist() == [2]
    scale.__code__ = other.__code__
    assert compiled(ONE).tolist() == [3]
    assert "__code__" in compiled.explain()


def test_the_code_of_a_method_and_of_the_function_itself():
    class Layer(nn.Module):
        def forward(self, x):
            return x * 2

    layer = Layer()
    compiled = torch.jit(lambda x: layer(x))
    assert compiled(ONE).tolist() == [2]
    Layer.forward.__code__ = (lambda self, x: x * 3).__code__
    assert compiled(ONE).tolist() == [3]

    def double(x):
        return x * 2

    compiled = torch.jit(double)
    assert compiled(ONE).tolist() == [2]
    double.__code__ = (lambda x: x * 3).__code__
    assert compiled(ONE).tolist() == [3]


@pytest.mark.parametrize("base", [object, nn.Module])
def test_a_class_that_is_reloaded(base):
    class Old(base):
        def scale(self, x):
            return x * 2

    class New(base):
        def scale(self, x):
            return x * 3

    held = Old()
    compiled = torch.jit(lambda x: held.scale(x))
    assert compiled(ONE).tolist() == [2]
    held.__class__ = New
    assert compiled(ONE).tolist() == [3]


def test_a_function_that_is_registered_later():
    @functools.singledispatch
    def scale(kind, x):
        return x * 2

    compiled = torch.jit(lambda x: scale(1, x))
    assert compiled(ONE).tolist() == [2]
    scale.register(int, lambda kind, x: x * 3)
    assert compiled(ONE).tolist() == [3]


def test_functions_of_a_namespace():
    tools = types.SimpleNamespace(scale=lambda x: x * 2)
    compiled = torch.jit(lambda x: tools.scale(x))
    assert compiled(ONE).tolist() == [2]
    tools.scale.__code__ = (lambda x: x * 3).__code__
    assert compiled(ONE).tolist() == [3]


# ---- results with a history in objects of any class


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
class Frozen:
    """A dataclass that cannot be changed."""

    loss: object


def closure(loss):
    return lambda: loss


# what makes the result, and what takes the loss out of it
CONTAINERS = {
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
    "frozen dataclass": (Frozen, lambda output: output.loss),
    "method": (lambda loss: Output(loss).get, lambda output: output()),
    "closure": (closure, lambda output: output()),
    "cycle": (Cycle, lambda output: output.cycle.cycle.loss),
    "nested": (lambda loss: [Mapping(a=Output((loss,)))], lambda output: output[0]["a"].loss[0]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_result_with_a_history_in_a_container(name):
    make, take = CONTAINERS[name]
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
