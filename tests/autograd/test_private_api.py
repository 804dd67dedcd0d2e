"""Names of PyTorch's native module and of its private Python API that other code asks for."""

import subprocess
import sys

import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad


@pytest.mark.row("A39")
@as_torch("""
    [True, True, False, False]
    True
    True
""")
def test_is_checkpoint_valid(torch):
    valid, flags = torch.autograd._is_checkpoint_valid, []
    x = leaf(torch, 3.0)
    y = x * x
    y.register_hook(lambda _: flags.append(valid()))
    flags.append(valid())
    y.backward(retain_graph=True)
    torch.autograd.grad(y, x, retain_graph=True)
    y.backward(inputs=[x], retain_graph=True)
    engine = torch.autograd.Variable._execution_engine
    return flags, valid(), engine.is_checkpoint_valid()


@pytest.mark.row("A39")
@as_torch("""
    True
    False
""")
def test_is_checkpoint_valid_inside_of_another_pass(torch):
    valid, flags = torch.autograd._is_checkpoint_valid, []

    def nested(_):
        with torch.enable_grad():
            z = leaf(torch, 2.0)
            w = z * z
        w.register_hook(lambda _: flags.append(valid()))
        w.backward()

    x = leaf(torch, 3.0)
    y = x * x
    y.register_hook(nested)
    y.backward(retain_graph=True)
    torch.autograd.grad(y, x)
    return flags


NATIVES = (
    *("SavedTensor", "DeviceType", "ProfilerActivity", "kineto_available", "_get_sequence_nr"),
    *("_push_saved_tensors_default_hooks", "_pop_saved_tensors_default_hooks"),
)


@pytest.mark.row("A43")
@as_torch("""
    True
    True
    True
    True
    True
    True
    True
""")
def test_names_of_the_native_module(torch):
    return [hasattr(torch.autograd, name) for name in NATIVES]


@pytest.mark.row("A43")
@as_torch("""
    [tensor(2.0), tensor(10.0), tensor(2.0), tensor(1.0)]
    [2, 10, 2]
    'RuntimeError'
""")
def test_hooks_that_are_pushed(torch):
    autograd, x, seen = torch.autograd, leaf(torch, 3.0), []

    def scaled(by):
        return lambda tensor: seen.append(by) or tensor * by, lambda tensor: tensor

    autograd._push_saved_tensors_default_hooks(*scaled(2))
    first = x.exp()
    autograd._push_saved_tensors_default_hooks(*scaled(10))
    second = x.exp()
    autograd._pop_saved_tensors_default_hooks()
    third = x.exp()
    autograd._pop_saved_tensors_default_hooks()
    fourth = x.exp()
    ratios = [torch.autograd.grad(y, x)[0] / y.detach() for y in (first, second, third, fourth)]
    return ratios, seen, error(autograd._pop_saved_tensors_default_hooks)["error"]


@pytest.mark.row("A43")
@as_torch("""
    0
    True
    True
""")
def test_get_sequence_nr(torch):
    number = torch.autograd._get_sequence_nr
    first = number()
    again = number()
    y = leaf(torch, 2.0) * 2
    return again - first, y.grad_fn._sequence_nr() >= first, number() > y.grad_fn._sequence_nr()


GETTERS = ("is_multithreading_enabled", "is_view_replay_enabled")


@pytest.mark.row("A44")
@as_torch("""
    [False, True, False]
    [True, True]
""")
def test_is_view_replay_enabled(torch):
    enabled, force = torch.autograd.is_view_replay_enabled, torch.autograd.grad_mode
    flags = [enabled()]
    with force._force_original_view_tracking(True):
        flags.append(enabled())
    flags.append(enabled())
    documented = [bool(getattr(torch.autograd, name).__doc__) for name in GETTERS]
    return flags, documented


@pytest.mark.row("A45")
@as_torch("""
    RuntimeError("cls isn't a typeinfo object")
""")
def test_register_py_tensor_class_for_device(torch):
    words = "cls isn't a typeinfo object"
    return error(torch.autograd._register_py_tensor_class_for_device, "cpu", 3, words=words)


@pytest.mark.row("A45")
def test_a_class_is_accepted_and_changes_nothing():
    assert jaxgrad.autograd._register_py_tensor_class_for_device("cpu", jaxgrad.Tensor) is None
    assert type(jaxgrad.ones(1)) is jaxgrad.Tensor


@pytest.mark.row("A46")
def test_an_installation_without_rules_says_so():
    """There is no native part to initialise; only the rules can be missing."""
    program = (
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'jaxgrad.rules' else find(name)\n"
        "import jaxgrad\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("ImportError: this checkout of jaxgrad is not")
