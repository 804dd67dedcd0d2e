"""Rows of backward that stand in no other file: layouts, overrides, names of PyTorch's module."""

import subprocess
import sys
import threading

import pytest
from as_torch import as_torch, error, leaf

import jaxgrad


def test_a_gradient_needs_no_synchronisation_A33():
    """There are no streams: whoever reads a gradient, in whatever thread, waits for it."""
    x = leaf(jaxgrad, *[1.0] * 300)
    matrix = x.outer(x)
    (matrix @ matrix @ matrix).sum().backward()
    found = []
    reader = threading.Thread(target=lambda: found.append(x.grad.numpy()[:2].tolist()))
    reader.start()
    reader.join()
    assert found[0] == pytest.approx([6 * 300.0**3] * 2)


@as_torch
def test_layout_of_gradients_A34(torch):
    whole = torch.arange(24.0).reshape(2, 3, 4)
    leaves = {
        "contiguous": whole.clone(),
        "permuted": whole.permute(2, 0, 1),
        "transposed": torch.arange(6.0).reshape(2, 3).t(),
        "sliced": whole[:, ::2],
        "expanded": torch.ones(3, 1).expand(3, 4),
        "empty": torch.zeros(0, 3).t(),
    }
    found = {}
    for name, source in leaves.items():
        x = source.detach().requires_grad_()
        (x * 2).sum().backward()
        first = x.grad.stride()
        (x * 2).sum().backward()
        found[name] = list(first), list(x.grad.stride()), x.grad
    return found


@as_torch
def test_layout_of_a_gradient_that_is_set_is_kept_A34(torch):
    x = torch.ones(2, 3).t().detach().requires_grad_()
    x.grad = torch.zeros(3, 2)
    (x * 2).sum().backward()
    return list(x.grad.stride()), x.grad


# ---- objects that stand for tensors


class Wrapper:
    """Has a tensor, and says what it was asked."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen = function.__name__, [kind.__name__ for kind in types], sorted(kwargs)
        for value in (*args, *args[0], *args[-1], *(kwargs.get("inputs") or ())):
            if isinstance(value, Wrapper):
                value.asked.append(seen)
        return function(*map(plain, args), **{name: plain(v) for name, v in kwargs.items()})


class Derived(Wrapper):
    pass


class Silent(Wrapper):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return NotImplemented


def plain(value):
    if isinstance(value, Wrapper):
        return value.tensor
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


@as_torch
def test_backward_of_what_stands_for_a_tensor_A35(torch):
    x = leaf(torch, 3.0)
    output, input_ = Wrapper(x * x), Wrapper(x)
    torch.autograd.backward(output)
    torch.autograd.backward([x * x, Derived(x * 2)])
    torch.autograd.backward(x * x, inputs=[input_])
    return x.grad, output.asked, input_.asked


@as_torch
def test_the_method_of_what_stands_for_a_tensor_A35(torch):
    class Kept(Wrapper):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function is torch.Tensor.backward, sorted(kwargs), len(args)

    return torch.Tensor.backward(Kept(None), retain_graph=True)


@as_torch
def test_who_is_asked_and_in_which_order_A35_B21(torch):
    x = leaf(torch, 3.0)
    wrappers = [Wrapper(x * x), Derived(x), Silent(x * 2)]
    first = torch.autograd.grad([wrappers[0], x * 5], [x, wrappers[1]], retain_graph=True)
    second = torch.autograd.grad([wrappers[2], wrappers[0]], x)
    unknown = "on types that implement __torch_function__"
    return (
        (first, second, [wrapper.asked for wrapper in wrappers]),
        error(torch.autograd.grad, Silent(x * x), x, words=unknown),
        error(torch.autograd.backward, Silent(x * x), words=unknown),
    )


# ---- names that code of PyTorch asks for


@as_torch
def test_is_checkpoint_valid_A39(torch):
    valid, found = torch.autograd._is_checkpoint_valid, []
    x = leaf(torch, 3.0)
    y = x * x
    y.register_hook(lambda _: found.append(valid()))
    found.append(valid())
    y.backward(retain_graph=True)
    torch.autograd.grad(y, x, retain_graph=True)
    y.backward(inputs=[x], retain_graph=True)
    engine = torch.autograd.Variable._execution_engine
    return found, valid(), engine.is_checkpoint_valid()


@as_torch
def test_is_checkpoint_valid_inside_of_another_pass_A39(torch):
    valid, found = torch.autograd._is_checkpoint_valid, []

    def nested(_):
        with torch.enable_grad():
            z = leaf(torch, 2.0)
            w = z * z
        w.register_hook(lambda _: found.append(valid()))
        w.backward()

    x = leaf(torch, 3.0)
    y = x * x
    y.register_hook(nested)
    y.backward(retain_graph=True)
    torch.autograd.grad(y, x)
    return found


NATIVES = (
    *("SavedTensor", "DeviceType", "ProfilerActivity", "kineto_available", "_get_sequence_nr"),
    *("_push_saved_tensors_default_hooks", "_pop_saved_tensors_default_hooks"),
)


@as_torch
def test_names_of_the_native_module_A43(torch):
    return [hasattr(torch.autograd, name) for name in NATIVES]


@as_torch
def test_hooks_that_are_pushed_A43(torch):
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


@as_torch
def test_get_sequence_nr_A43(torch):
    number = torch.autograd._get_sequence_nr
    first = number()
    again = number()
    y = leaf(torch, 2.0) * 2
    return again - first, y.grad_fn._sequence_nr() >= first, number() > y.grad_fn._sequence_nr()


GETTERS = ("is_multithreading_enabled", "is_view_replay_enabled")


@as_torch
def test_is_view_replay_enabled_A44(torch):
    enabled, force = torch.autograd.is_view_replay_enabled, torch.autograd.grad_mode
    found = [enabled()]
    with force._force_original_view_tracking(True):
        found.append(enabled())
    found.append(enabled())
    documented = [bool(getattr(torch.autograd, name).__doc__) for name in GETTERS]
    return found, documented


@as_torch
def test_register_py_tensor_class_for_device_A45(torch):
    words = "cls isn't a typeinfo object"
    return error(torch.autograd._register_py_tensor_class_for_device, "cpu", 3, words=words)


def test_a_class_is_accepted_and_changes_nothing_A45():
    assert jaxgrad.autograd._register_py_tensor_class_for_device("cpu", jaxgrad.Tensor) is None
    assert type(jaxgrad.ones(1)) is jaxgrad.Tensor


def test_an_installation_without_rules_says_so_A46():
    """There is no native part to be initialised; what can be missing are the rules."""
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
