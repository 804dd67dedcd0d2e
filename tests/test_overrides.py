"""torch.overrides: the stack of modes, and the names of functions that can be overridden."""

import inspect

import pytest

import jaxgrad as torch
from jaxgrad import overrides


class Named(overrides.TorchFunctionMode):
    """Notes its name and the functions that it gets."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((self.name, func.__name__))
        return func(*args, **(kwargs or {}))


def test_stack_of_modes():
    calls, x = [], torch.ones(2)
    assert overrides._get_current_function_mode() is None
    with Named("a", calls) as outer, Named("b", calls) as inner:
        assert overrides._get_current_function_mode() is inner
        assert overrides._get_current_function_mode_stack() == [outer, inner]
        assert torch._C._len_torch_function_stack() == 2
        with overrides._pop_mode_temporarily() as popped:
            torch.neg(x)
        x[0] = 2
        assert popped is inner
    assert calls == [("a", "neg"), ("b", "__setitem__"), ("a", "__setitem__")]
    assert torch._C._len_torch_function_stack() == 0


def test_what_is_disabled():
    assert torch._C._is_torch_function_enabled()
    with torch._C.DisableTorchFunctionSubclass():
        assert not torch._C._is_torch_function_enabled()
        assert torch._C._is_torch_function_all_disabled()
        with overrides.BaseTorchFunctionMode():
            assert not torch._C._is_torch_function_all_disabled()
    assert not torch._C._is_torch_function_all_disabled()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.add, "torch.add"),
        (torch.Tensor.add, "torch.Tensor.add"),
        (torch.Tensor.add_, "torch.Tensor.add_"),
        (torch.Tensor.__getitem__, "torch.Tensor.__getitem__"),
        (torch.Tensor.__add__, "torch.Tensor.__add__"),
        (torch.Tensor.grad.__get__, "torch.Tensor.grad.__get__"),
        (torch.linalg.inv, "torch.linalg.inv"),
        (torch.fft.fft, "torch.fft.fft"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (print, None),
    ],
)
def test_names(function, name):
    assert overrides.resolve_name(function) == name
    is_method = bool(name) and name.startswith("torch.Tensor.")
    assert overrides.is_tensor_method_or_property(function) == is_method


def test_collections_of_functions():
    functions = overrides.get_overridable_functions()
    assert torch.Tensor.__add__ in functions[torch.Tensor] and torch.add in functions[torch]
    ignored = overrides.get_ignored_functions()
    assert torch.zeros in ignored and torch.is_tensor in ignored and torch.add not in ignored
    dummies = overrides.get_testing_overrides()
    assert dummies[torch.add](1, 2) == -1 and len(dummies) > 500
    assert list(inspect.signature(dummies[torch.add]).parameters)[:2] == ["input", "other"]


class NameOfFunction:
    """Gives the name of the function that is called with it."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        return function.__name__


def test_functions_that_ask_their_arguments():
    init, tensor = torch.nn.init, NameOfFunction()
    assert torch.result_type(tensor, 1) == "result_type"
    assert init.uniform_(tensor) == "uniform_" and init.normal_(tensor) == "normal_"
    assert init.constant_(tensor, 1) == "constant_"
    assert init.kaiming_uniform_(tensor) == "kaiming_uniform_"
