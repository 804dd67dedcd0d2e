"""`torch.compile`, and functions that cannot be traced."""

import copy
import functools
import itertools
import pickle
import random
import threading
import warnings

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn


def magnitude(x, weight):
    total = (x * weight).sum()
    if total > 0:
        return total
    return -total


def test_an_if_on_data_runs_uncompiled_with_one_warning():
    compiled = torch.compile(magnitude)
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    line = rf"test_compile\.py:{magnitude.__code__.co_firstlineno + 2}"
    with pytest.warns(UserWarning, match=rf"magnitude runs uncompiled.*{line}") as told:
        for value, slope in [(3.0, 3.0), (-3.0, 3.0), (0.5, 0.5)]:
            weight.grad = None
            compiled(torch.full((2,), value), weight).backward()
            assert weight.grad.tolist() == [slope, slope]
    assert len(told) == 1 and compiled.count == 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[x > 1], [2.0, 3.0]),
        (lambda x: x.nonzero().flatten(), [0, 1, 2]),
        (lambda x: torch.ones(int(x.sum())), [1.0] * 6),
        (lambda x: torch.tensor(x.tolist()[::-1]), [3.0, 2.0, 1.0]),
        (lambda x: torch.from_numpy(np.cumsum(x.numpy())), [1.0, 3.0, 6.0]),
    ],
)
def test_what_needs_numbers_runs_uncompiled(function, expected):
    compiled = torch.jit(function, fallback=True)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert compiled(torch.tensor([1.0, 2.0, 3.0])).tolist() == expected


def test_state_changes_once_where_a_trace_comes_to_nothing():
    weight, calls = torch.ones(2), []

    @torch.compile
    def step(x):
        weight.mul_(2)
        calls.append(len(calls))
        return x[x > 1]

    with pytest.warns(UserWarning, match="runs uncompiled"):
        for number in range(1, 4):
            step(torch.tensor([1.0, 2.0]))
            assert weight.tolist() == [2.0**number] * 2 and calls == list(range(number))


def test_errors_of_the_function_are_its_own():
    @torch.compile
    def look(x):
        return {}[x.shape]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError):
            look(torch.ones(2))


def test_other_arguments_are_compiled_still():
    @torch.compile
    def scaled(x, where=False):
        return x[x > 1] if where else x * 2

    with pytest.warns(UserWarning, match="runs uncompiled"):
        scaled(torch.ones(2), where=True)
    for _ in range(3):
        assert scaled(torch.ones(2)).tolist() == [2, 2]
    assert scaled.count == 2


# ---- what runs uncompiled does what it does without torch.compile


def test_arguments_that_the_function_changes_are_the_callers():
    @torch.compile
    def appended(x, doubled):
        doubled.append(x * 2)
        return x

    doubled = []
    for _ in range(2):
        appended(torch.ones(1), doubled)
    assert [tensor.item() for tensor in doubled] == [2, 2] and len(appended.traces) >= 1


def test_an_argument_that_cannot_be_hashed():
    doubled = torch.compile(lambda a: torch.from_numpy(a * 2))
    with pytest.warns(UserWarning, match="neither a tensor nor hashable") as told:
        for number in range(3):
            assert doubled(np.array([number])).tolist() == [2 * number]
    assert len(told) == 1
    with pytest.raises(TypeError, match="neither a tensor nor hashable"):
        torch.compile(fullgraph=True)(doubled.function)(np.ones(1))


@pytest.mark.unverified
def test_random_numbers_of_python_and_numpy_are_drawn_at_each_call():
    def dropped(x):
        return x * 2 if random.random() < 0.5 else x

    def looked(x):
        return random.random() + np.random.rand() + float(x.sum())

    for function, x in ((dropped, torch.ones(1)), (looked, torch.ones(2))):
        results = []
        for version in (function, torch.compile(function)):
            random.seed(0)
            np.random.seed(0)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                results.append([float(version(x)) for _ in range(6)])
        assert results[0] == results[1]
        assert len(told) == (function is looked)  # it looks at numbers of an argument


@pytest.mark.unverified
@pytest.mark.parametrize(
    "make", [lambda: iter([1.0, 2.0, 3.0]), lambda: (n + 1.0 for n in range(3))]
)
def test_iterators_are_not_used_up(make):
    numbers = make()

    @torch.compile
    def scaled(x):
        return x * next(numbers)

    assert [scaled(torch.ones(1)).item() for _ in range(3)] == [1, 2, 3]


def test_what_would_be_traced_at_each_call_runs_uncompiled_in_the_end():
    class Epoch:
        number = 0

    @functools.partial(torch.compile, recompile_limit=3)
    def scaled(x):
        return x * Epoch.number if Epoch.number % 2 else x

    with pytest.warns(UserWarning, match="scaled runs uncompiled from now on.*number was") as told:
        for Epoch.number in range(8):
            expected = Epoch.number if Epoch.number % 2 else 1
            assert scaled(torch.ones(1)).item() == expected
    assert len(told) == 1 and scaled.count == 4


def test_each_training_mode_is_compiled_or_not_by_itself():
    class Net(nn.Module):
        def forward(self, x):
            return x * 2 if self.training and x.sum() > 0 else x

    net = Net()
    compiled = torch.compile(net)
    with pytest.warns(UserWarning, match="Net runs uncompiled"):
        assert compiled(torch.ones(1)).item() == 2
    net.eval()
    assert compiled(torch.ones(1)).item() == 1 and len(compiled.traces) == 1
    net.train()
    assert compiled(torch.ones(1)).item() == 2 and compiled.count == 2


def test_compiled_functions_inside_of_one_that_is_not():
    inner = torch.compile(lambda x: x * 2)

    @torch.compile
    def outer(x):
        return inner(x)[x > 0]

    with pytest.warns(UserWarning, match="outer runs uncompiled"):
        for _ in range(2):
            assert outer(torch.tensor([1.0, -1.0])).tolist() == [2]
    assert (inner.count, outer.count) == (1, 1)


@pytest.mark.slow
def test_a_training_step_with_an_if_on_its_loss():
    def losses(compiled):
        w = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=0.1)
        w.register_hook(lambda grad: grad * 0.5)

        @compiled
        def step(x):
            optimizer.zero_grad()
            loss = ((w * x) ** 2).sum()
            loss.backward()
            if loss > 4:
                w.grad.mul_(2)
            optimizer.step()
            return loss.detach()

        loss_values = [step(torch.tensor([1.0, 0.5])).item() for _ in range(4)]
        return loss_values, w.tolist(), optimizer.state[w]["step"].item(), len(w._backward_hooks)

    expected = losses(lambda function: function)
    with pytest.warns(UserWarning, match="step runs uncompiled"):
        assert losses(torch.compile) == expected
    assert expected[2] == 4


def test_threads_compile_and_fall_back_side_by_side():
    chosen, flags = torch.compile(lambda x: x[x > 0] if len(x) > 3 else x * 2), []

    def work(size):
        flags.extend(chosen(torch.ones(size)).tolist() == [1 + (size < 4)] * size for _ in range(9))

    threads = [threading.Thread(target=work, args=(size,)) for size in (2, 3, 4, 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(flags) == 36 and all(flags)


# ---- options


@pytest.mark.parametrize("make", [torch.compile, torch.jit])
def test_fullgraph_raises(make):
    compiled = (
        torch.compile(magnitude, fullgraph=True) if make is torch.compile else make(magnitude)
    )
    with pytest.raises(RuntimeError, match="needs the numbers"):
        compiled(torch.ones(2), torch.ones(2))


def test_modules_keep_their_attributes_and_names():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    compiled = torch.compile(net, mode="reduce-overhead", dynamic=False)
    x = torch.ones(4, 2)
    names = [f"_orig_mod.{name}" for name in net.state_dict()]
    assert list(compiled.state_dict()) == names and compiled._orig_mod is net
    compiled.eval()
    assert not net.training and not net[1].training
    np.testing.assert_allclose(compiled(x).detach(), net(x).detach(), rtol=1e-6)
    compiled(x).sum().backward()
    assert all(p.grad is not None for p in compiled.parameters())
    torch.optim.SGD(compiled.parameters(), lr=0.1).step()
    np.testing.assert_allclose(compiled(x).detach(), net(x).detach(), rtol=1e-6)
    with pytest.raises(AttributeError, match="nothing"):
        _ = compiled.nothing


def test_what_is_set_on_a_compiled_module_is_the_modules():
    net = nn.Sequential(nn.Linear(2, 2))
    compiled = torch.compile(net)
    compiled.tag = compiled.extra = 3
    compiled.scale = nn.Parameter(torch.ones(1))
    assert net.tag == 3 and net.scale is compiled.scale and len(compiled) == 1 and compiled
    assert "_orig_mod.scale" in compiled.state_dict() and {"tag", "_orig_mod"} <= {*dir(compiled)}
    del compiled.extra
    assert not hasattr(net, "extra")
    net.eval()
    assert not compiled.training
    compiled.training = True  # of this module alone, as in PyTorch
    assert net.training and not net[0].training
    assert bool(torch.compile(nn.ReLU()))


def test_compiled_modules_and_functions_are_copied_and_pickled():
    net = nn.Linear(2, 1)
    compiled = torch.compile(net, name="net")
    x = torch.ones(3, 2)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other._orig_mod is not net and list(other.state_dict()) == list(
            compiled.state_dict()
        )
        with torch.no_grad():
            other.weight.fill_(3.0)
            other.bias.zero_()
        assert other(x).flatten().tolist() == [6, 6, 6] and other.count == 1
    assert copy.copy(compiled)._orig_mod is net

    named = torch.compile(magnitude, name="size", recompile_limit=3)
    again = pickle.loads(pickle.dumps(named))
    assert (again.__name__, again.most_in_a_row) == ("size", 3) and again.fallback is not None
    assert copy.deepcopy(named) is named and pickle.loads(pickle.dumps(DOUBLED)) is DOUBLED


@torch.compile
def DOUBLED(x):
    return x * 2


def test_a_copy_of_a_module_compiles_its_own_methods():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(1))
            self.forward = torch.compile(self.scaled)

        def scaled(self, x):
            return x * self.w

    net = Net()
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.w.fill_(5.0)
    assert (net(torch.ones(1)).item(), other(torch.ones(1)).item()) == (1, 5)


def test_modules_compiled_in_place():
    net, seen = nn.Sequential(nn.Linear(2, 2)), []
    names, expected = list(net.state_dict()), net(torch.ones(1, 2)).tolist()
    assert net.compile() is None and list(net.state_dict()) == names and type(net) is nn.Sequential
    net.register_forward_hook(lambda *_: seen.append(1))
    compiled = net._compiled_call_impl
    for _ in range(3):
        np.testing.assert_allclose(net(torch.ones(1, 2)).detach(), expected, rtol=1e-6)
    assert seen == [1, 1, 1] and compiled.count == 1 and compiled.__name__ == "Sequential"
    for other in (copy.deepcopy(net), copy.copy(net)):
        assert other._compiled_call_impl is None
    net.compile(fullgraph=True)
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].bias.fill_(2.0)
    assert nn.Sequential(net)(torch.ones(1, 2)).tolist() == [[2, 2]]


def test_a_compiled_module_inside_of_a_compiled_step():
    net = nn.Linear(2, 1)
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)

    @torch.compile(fullgraph=True)
    def step(x):
        optimizer.zero_grad()
        loss = (compiled(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = [step(torch.ones(1, 2)).item() for _ in range(3)]
    for before, after in itertools.pairwise(losses):
        assert after == pytest.approx(before * (1 - 0.2 * 3) ** 2, rel=1e-4)
    compiled.eval()
    step(torch.ones(1, 2))
    assert not net.training and step.count == 2


@pytest.mark.unverified
def test_lazy_modules_are_compiled_after_the_first_call():
    lazy = nn.LazyLinear(3)
    compiled, called = torch.compile(lazy), torch.compile(lambda x: other(x))
    other = nn.LazyLinear(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (compiled, called):
            assert [tuple(function(torch.ones(2, 4)).shape) for _ in range(3)] == [(2, 3)] * 3
            assert len(function.traces) == 1


def test_what_can_be_compiled():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

        def method(self, x):
            return x + self.factor

    scaled = Scaled(3)
    for function in (
        scaled,
        functools.partial(torch.mul, torch.tensor(3.0)),
        lambda x: x * 3,
        torch.compile(scaled),
        torch.jit(scaled),
    ):
        assert torch.compile(function)(torch.ones(1)).item() == 3
    assert torch.compile(scaled.method)(torch.ones(1)).item() == 4
    twice = torch.compile(torch.compile(nn.Linear(1, 1)))
    assert list(twice.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert torch.compile(Scaled) is Scaled and Scaled(4)(torch.ones(1)).item() == 4
    assert Scaled.__call__.count == 1 and Scaled.__call__.__name__ == "Scaled"


def test_decorators():
    @torch.compile(fullgraph=True)
    def double(x):
        return x * 2

    assert double(torch.ones(2)).tolist() == [2, 2]
    assert torch.compile(magnitude, disable=True) is magnitude
    assert torch.compile(disable=True)(magnitude) is magnitude


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"model": 3}, AssertionError, "A callable function is expected, but <class .int.>"),
        ({"options": "max"}, TypeError, "options is a dict, not str"),
        ({"mode": "fast"}, RuntimeError, "Unrecognized mode=fast, should be one of: default"),
        ({"mode": "default", "options": {}}, RuntimeError, "[Ee]ither mode or options"),
        ({"backend": "nothing"}, RuntimeError, "Invalid backend: 'nothing'"),
        ({"backend": print}, TypeError, "XLA compiles here"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        torch.compile(**{"model": magnitude, **arguments})


# ---- torch.compiler


@pytest.mark.unverified
def test_is_compiling():
    is_compiling = torch.compiler.is_compiling
    assert not is_compiling() and torch.jit(is_compiling)() is True
    assert torch.func.vmap(lambda x: x * is_compiling())(torch.ones(2)).tolist() == [0, 0]
    mapped = torch.jit(lambda x: torch.func.vmap(lambda x: x * is_compiling())(x))
    assert mapped(torch.ones(2)).tolist() == [1, 1]


def test_disabled_functions_run_at_each_call():
    seen = []

    @torch.compiler.disable(reason="it keeps numbers")
    def note(x):
        seen.append(float(x.sum()))

    @torch.compiler.disable
    def doubled(x):
        return x * 2

    def step(x):
        note(x)
        return x * 2

    compiled = torch.compile(step)
    with pytest.warns(UserWarning, match=r"step runs uncompiled.*test_compile.py.*keeps numbers"):
        for number in range(3):
            compiled(torch.ones(1) * number)
    assert seen == [0, 1, 2]
    whole = torch.compile(lambda x: doubled(x), fullgraph=True)
    assert whole(torch.ones(1)).item() == 2 and whole.count == 1
    assert torch.compiler.disable(compiled).__wrapped__ is step
    module = torch.compiler.disable(nn.Linear(1, 1))
    assert list(module.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert module(torch.ones(1)).shape == (1,)


@pytest.mark.unverified
def test_stances():
    chosen = torch.compile(lambda x: x * (3 if torch.compiler.is_compiling() else 2))
    set_stance, x, other = torch.compiler.set_stance, torch.ones(1), torch.ones(2)
    with set_stance("force_eager"):
        assert chosen(x).item() == 2 and chosen.count == 0
        assert torch.func.vmap(lambda x: x * 2)(other).tolist() == [2, 2]
    assert chosen(x).item() == 3
    with set_stance("eager_on_recompile"):
        assert chosen(x).item() == 3 and chosen(other).tolist() == [2, 2] and chosen.count == 1
    with set_stance("fail_on_recompile"):
        assert chosen(x).item() == 3
        with pytest.raises(RuntimeError, match=r"Detected recompile.*float32\[1\], and is"):
            chosen(other)
    with set_stance("eager_then_compile"):
        assert chosen(other).tolist() == [3, 3]

    @set_stance("force_eager")
    def eagerly():
        return chosen(x).item()

    assert (eagerly(), chosen(x).item()) == (2, 3)
    set_stance("force_eager")
    assert chosen(x).item() == 2
    set_stance("default")
    assert chosen(x).item() == 3
    with pytest.raises(RuntimeError, match=r"invalid torch\.compile stance 'fast'"):
        set_stance("fast")


def test_other_names_of_torch_compiler():
    compiler = torch.compiler
    assert compiler.list_backends() == [compiler.get_default_backend()] == ["openxla"]
    compiler.set_default_backend("inductor")
    with pytest.raises(RuntimeError, match="Invalid backend: 'nothing'"):
        compiler.set_default_backend("nothing")
    for mark in (compiler.allow_in_graph, compiler.assume_constant_result):
        assert mark(magnitude) is magnitude
    assert compiler.nested_compile_region(magnitude) is magnitude
    assert compiler.substitute_in_graph(len)(magnitude) is magnitude
    assert compiler.wrap_numpy(np.cumsum)(torch.ones(3)).tolist() == [1, 2, 3]
    assert compiler.keep_tensor_guards_unsafe(["one", "two"]) == [True, True]
    assert compiler.save_cache_artifacts() is compiler.load_cache_artifacts(b"") is None
    assert not compiler.is_exporting() and not compiler.set_enable_guard_collectives(True)
    compiler.cudagraph_mark_step_begin()
    compiler.config.force_disable_caches = True
    with pytest.raises(NotImplementedError, match="load_compiled_function is not provided"):
        compiler.load_compiled_function(None)


def test_a_compiled_module_is_called_with_other_tensors_that_all_live_on():
    compiled, x = torch.compile(nn.Linear(2, 1)), torch.tensor([[1.0, 2.0]])
    weights = [torch.full((1, 2), float(number), requires_grad=True) for number in range(3)]
    bias = torch.zeros(1)
    for number, weight in enumerate(weights):
        tensors = {"_orig_mod.weight": weight, "_orig_mod.bias": bias}
        output = torch.func.functional_call(compiled, tensors, x)
        output.sum().backward()
        assert output.tolist() == [[3.0 * number]]
        assert weight.grad.tolist() == [[1.0, 2.0]]


def test_members_that_code_replaces_in_their_dicts():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", torch.ones(1))
            self.inner = nn.Identity()

        def forward(self, x):
            return self.inner(x) + self.shift

    module, x = Shifted(), torch.tensor([-3.0])
    compiled, replaced = torch.compile(module), [module.shift, module.inner]
    assert compiled(x).tolist() == [-2.0]
    module._buffers["shift"] = torch.full((1,), 5.0)
    assert compiled(x).tolist() == [2.0]
    module._modules["inner"] = nn.ReLU()
    assert compiled(x).tolist() == [5.0]
    module._buffers["shift"], module._modules["inner"] = replaced
    assert compiled(x).tolist() == [-2.0]
