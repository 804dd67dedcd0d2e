"""Hooks of all modules run in PyTorch's order, and compiled functions see them."""

import contextlib
import gc
import importlib
import pickle
import weakref

import pytest
from helpers.as_torch import as_torch

import jaxgrad
from jaxgrad import nn


def hooks_of_all(torch):
    return importlib.import_module(f"{torch.__name__}.nn.modules.module")


def two_layers(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 0.5)
    return model


@as_torch("""
    ['pre Sequential', 'own pre Sequential', 'pre Linear', 'own pre Linear', 'forward Linear',
     'own forward Linear', 'pre Tanh', 'own pre Tanh', 'forward Tanh', 'own forward Tanh',
     'forward Sequential', 'own forward Sequential', 'backward pre Sequential',
     'own backward pre Sequential', 'backward pre Tanh', 'own backward pre Tanh', 'backward Tanh',
     'own backward Tanh', 'backward pre Linear', 'own backward pre Linear', 'backward Linear',
     'own backward Linear', 'backward Sequential', 'own backward Sequential']
    True
""")
def test_calls_of_all_kinds_of_hooks_are_in_order(torch):
    """Those of all modules come before a module's own, of every kind."""
    calls, every = [], hooks_of_all(torch)

    def note(kind):
        return lambda module, *arguments: calls.append(f"{kind} {type(module).__name__}")

    model = two_layers(torch)
    x = torch.ones(1, 2, requires_grad=True)
    with contextlib.ExitStack() as stack:
        for module in (model, *model):
            stack.enter_context(module.register_forward_pre_hook(note("own pre")))
            stack.enter_context(module.register_forward_hook(note("own forward")))
            stack.enter_context(module.register_full_backward_hook(note("own backward")))
            stack.enter_context(module.register_full_backward_pre_hook(note("own backward pre")))
        stack.enter_context(every.register_module_forward_hook(note("forward")))
        stack.enter_context(every.register_module_forward_pre_hook(note("pre")))
        stack.enter_context(every.register_module_full_backward_pre_hook(note("backward pre")))
        stack.enter_context(every.register_module_full_backward_hook(note("backward")))
        model(x).sum().backward()
    before = len(calls)
    model(x).sum().backward()
    return calls, len(calls) == before


@as_torch("""
    tensor([[9.0, 9.0]], dtype=float64)
    tensor([[0.0, 0.0]], dtype=float64)
    tensor([[0.0, 0.0], [0.0, 0.0]], dtype=float64)
""")
def test_hooks_of_all_modules_change_what_flows(torch):
    every, model = hooks_of_all(torch), two_layers(torch).double()
    x = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    with contextlib.ExitStack() as stack:
        for handle in (
            every.register_module_forward_pre_hook(lambda m, args: args[0] * 2),
            every.register_module_forward_hook(lambda m, args, output: output * 3),
            every.register_module_full_backward_pre_hook(lambda m, go: (go[0] * 5,)),
            every.register_module_full_backward_hook(lambda m, gi, go: (gi[0] * 7,)),
        ):
            stack.enter_context(handle)
        y = model(x)
        y.sum().backward()
    return y.detach(), x.grad, model[0].weight.grad


def test_a_hook_of_all_modules_takes_keywords_and_is_always_called():
    """PyTorch calls it after an error without the keywords, and warns of the error of that call."""
    torch = jaxgrad
    calls, every = [], hooks_of_all(torch)

    class Broken(torch.nn.Module):
        def forward(self, x, *, fails):
            if fails:
                raise ValueError("broken")
            return x

    def hook(module, args, kwargs, output):
        calls.append((kwargs, output is None))

    with every.register_module_forward_hook(hook, with_kwargs=True, always_call=True):
        Broken()(torch.ones(1), fails=False)
        with contextlib.suppress(ValueError):
            Broken()(torch.ones(1), fails=True)
    assert calls == [({"fails": False}, False), ({"fails": True}, True)]


@as_torch
def test_hooks_of_registration(torch):
    calls, every = [], hooks_of_all(torch)

    def note(kind):
        return lambda module, name, member: calls.append((kind, name, member is None))

    with contextlib.ExitStack() as stack:
        for kind in ("parameter", "buffer", "module"):
            register = getattr(every, f"register_module_{kind}_registration_hook")
            stack.enter_context(register(note(kind)))
        owner = torch.nn.Module()
        owner.weight = torch.nn.Parameter(torch.ones(1))
        owner.weight = None
        owner.register_parameter("bias", None)
        owner.register_parameter("bias", torch.nn.Parameter(torch.ones(1)))
        owner.register_buffer("mean", None)
        owner.mean = torch.ones(1)
        owner.register_buffer("count", torch.ones(1), persistent=False)
        owner.inner = torch.nn.ReLU()
        owner.inner = None
        owner.add_module("outer", None)
        owner.add_module("outer", torch.nn.Tanh())
        torch.nn.BatchNorm1d(1)
    return calls


@as_torch("""
    tensor([[2.0, 2.0]], requires_grad=True)
    {'mean': tensor([1.0])}
    'Tanh'
""")
def test_hooks_of_registration_replace_members(torch):
    every = hooks_of_all(torch)
    with every.register_module_parameter_registration_hook(
        lambda module, name, value: torch.nn.Parameter(value.detach() * 0 + 2)
    ):
        layer = torch.nn.Module()
        layer.weight = torch.nn.Parameter(torch.ones(1, 2))
    with every.register_module_buffer_registration_hook(lambda module, name, value: value + 1):
        norm = torch.nn.Module()
        norm.register_buffer("mean", torch.zeros(1))
    with every.register_module_module_registration_hook(lambda *arguments: torch.nn.Tanh()):
        model = torch.nn.Sequential(torch.nn.ReLU())
    return layer.weight, dict(norm.named_buffers()), type(model[0]).__name__


def test_compiled_functions_see_hooks_of_all_modules():
    layer, every = jaxgrad.nn.ReLU(), hooks_of_all(jaxgrad)
    compiled = jaxgrad.jit(lambda x: layer(x) + 1)
    x = jaxgrad.ones(2)
    assert compiled(x).tolist() == [2, 2]
    with every.register_module_forward_hook(lambda module, args, output: output * 3):
        assert compiled(x).tolist() == [4, 4]
    assert compiled(x).tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore:Using .*non-full backward hook:FutureWarning")
def test_backward_hooks_of_all_modules_are_of_one_kind(monkeypatch):
    every = hooks_of_all(jaxgrad)
    monkeypatch.setattr(jaxgrad.nn.module_hooks.of_all, "is_full", None)
    layer, seen = jaxgrad.nn.Linear(2, 1), []
    with every.register_module_backward_hook(lambda m, gi, go: seen.append(go[0].tolist())):
        assert every._global_is_full_backward_hook is False
        layer(jaxgrad.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError, match="Please use only one of them"):
            every.register_module_full_backward_hook(print)
    assert seen == [[[1.0]]]
    with pytest.raises(TypeError, match="a hook is a function"):
        every.register_module_forward_hook(3)


class Doubled(jaxgrad.nn.Module):
    def forward(self, x, y):
        return x * 2, y * 2, x + y, x.detach()


@pytest.mark.parametrize("kind", ["hook", "pre_hook"])
def test_backward_hooks_leave_alone_what_requires_no_grad(kind):
    module, x = Doubled(), jaxgrad.ones(2, requires_grad=True)
    getattr(module, f"register_full_backward_{kind}")(lambda *arguments: None)
    results = module(x, jaxgrad.ones(2))
    assert [result.requires_grad for result in results] == [True, False, True, False]
    sum(result.sum() for result in results).backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert not any(result.requires_grad for result in module(jaxgrad.ones(2), jaxgrad.ones(2)))


def test_backward_hooks_get_zeros_for_an_input_that_requires_no_grad():
    module, gradients = Doubled(), []
    module.register_full_backward_hook(lambda module, inputs, outputs: gradients.append(inputs))
    module(jaxgrad.ones(2, requires_grad=True), jaxgrad.tensor([1, 2]))[0].sum().backward()
    ((first, second),) = gradients  # as PyTorch gives them
    assert first.tolist() == [2.0, 2.0]
    assert second.tolist() == [0, 0] and second.dtype == jaxgrad.int64


NOTED = []


def note_call(*arguments, **options):
    NOTED.append(len(arguments))


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_are_pickled_with_their_module(kind):
    module = jaxgrad.nn.Linear(2, 2)
    getattr(module, f"register_{kind}_hook")(note_call)
    restored = pickle.loads(pickle.dumps(module))
    NOTED.clear()
    restored(jaxgrad.ones(1, 2, requires_grad=True)).sum().backward()
    assert len(NOTED) == 1
    getattr(restored, f"register_{kind}_hook")(note_call).remove()
    restored(jaxgrad.ones(1, 2, requires_grad=True)).sum().backward()
    assert len(NOTED) == 2


def test_backward_hooks_warn_of_an_output_that_they_do_not_see():
    class InDict(jaxgrad.nn.Module):
        def forward(self, x):
            return {"x": x * 2}

    module = InDict()
    module.register_full_backward_hook(lambda *arguments: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
        module(jaxgrad.ones(2, requires_grad=True))


def test_a_module_with_a_hook_that_gets_it_is_freed_at_once():
    module = jaxgrad.nn.Linear(1, 1)
    module._register_load_state_dict_pre_hook(print, True)
    reference = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert reference() is None
    finally:
        gc.enable()


def test_modules_without_the_dict_of_hooks_are_pickled():
    module = jaxgrad.nn.Linear(1, 1)
    del module._state_dict_pre_hooks
    again = pickle.loads(pickle.dumps(module))
    assert list(again.state_dict()) == ["weight", "bias"]


def test_programs_find_their_hooks_among_those_of_a_module():
    """Removers of weight normalization and pruning look for instances of a class."""
    layer = nn.utils.spectral_norm(nn.Linear(2, 2))
    kinds = [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    assert kinds == ["SpectralNorm"]

    def hook(module, args, output):
        return output

    layer.register_forward_hook(hook)
    assert list(layer._forward_hooks.values()) == [hook]
    layer._forward_hooks[-1] = lambda module, args, output: output * 0
    assert layer(jaxgrad.ones(1, 2)).tolist() == [[0, 0]]


def test_pruning_hooks_among_those_of_a_module():
    prune = nn.utils.prune
    layer = prune.l1_unstructured(nn.Linear(2, 2), "weight", 1)
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.L1Unstructured) and hook._tensor_name == "weight"
    prune.random_unstructured(layer, "weight", 1)
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2


def test_programs_set_the_hooks_of_all_modules():
    names = nn.modules.module
    x = jaxgrad.tensor([1.0, -2.0])
    layer = nn.Identity()
    step = jaxgrad.compile(lambda x: layer(x))
    assert step(x).tolist() == [1, -2]
    names.register_module_forward_pre_hook(lambda module, args: args[0] * 3)
    names.register_module_forward_hook(lambda module, args, output: output + 1)
    assert nn.Identity()(x).tolist() == step(x).tolist() == [4, -5]
    names._global_forward_hooks = names._global_forward_pre_hooks = {}
    assert nn.Identity()(x).tolist() == step(x).tolist() == [1, -2]
    assert not names._global_forward_hooks and not names._has_any_global_hook()
    names._global_forward_hooks = {3: lambda module, args, output: output * 5}
    assert nn.Identity()(x).tolist() == step(x).tolist() == [5, -10]
    names._global_forward_hooks.clear()
    assert nn.Identity()(x).tolist() == step(x).tolist() == [1, -2]


def test_programs_set_the_kind_of_the_backward_hooks_of_all_modules():
    names = nn.modules.module
    x, layer = jaxgrad.ones(1, requires_grad=True) * 1, nn.ReLU()
    names.register_module_full_backward_hook(lambda module, gi, go: (gi[0] * 3,))
    names._global_backward_hooks, names._global_is_full_backward_hook = {}, None
    with names.register_module_backward_hook(lambda module, gi, go: (gi[0] * 7,)):
        (result,) = jaxgrad.autograd.grad(layer(x), x)
    assert result.item() == 7 and isinstance(names._global_backward_hooks, dict)
    names._global_is_full_backward_hook = None


def test_a_handle_names_the_hooks_that_it_is_among():
    layer = nn.Sigmoid()
    handle = layer.register_forward_pre_hook(lambda *_: handle.remove())
    assert handle.id in handle.hooks_dict_ref() and len(handle.hooks_dict_ref()) == 1
    layer(jaxgrad.ones(1))
    assert len(handle.hooks_dict_ref()) == 0
