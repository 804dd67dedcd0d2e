"""torch.overrides: the stack of modes, and the names of functions that can be overridden."""

import inspect

import numpy as np
import pytest
from helpers.as_torch import as_torch

import jaxgrad as torch
import jaxgrad.nn.functional as F
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


class Boxed:
    """Holds a tensor, and computes with the tensors that others hold."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def opened(value):
            if isinstance(value, list | tuple):
                return type(value)(map(opened, value))
            return value.tensor if isinstance(value, Boxed) else value

        result = func(*map(opened, args), **(kwargs or {}))
        return tuple(map(Boxed, result)) if isinstance(result, tuple) else Boxed(result)


def test_objects_in_place_of_tensors():
    broadcast = torch.distributions.utils.broadcast_all
    for values in (
        (Boxed(torch.tensor([1.0, 2.0])), Boxed(torch.tensor(5.0))),
        (Boxed(torch.tensor([1.0, 2.0])), torch.tensor(5.0)),
        (torch.tensor([1.0, 2.0]), Boxed(torch.tensor(5.0))),
    ):
        assert [x.tensor.tolist() for x in broadcast(*values)] == [[1, 2], [5, 5]]
    with pytest.raises(ValueError, match="instances of Number"):
        broadcast(torch.ones(2), "a")
    row = Boxed(torch.tensor([1.0, 2.0]))
    assert torch.einsum("i,i", row, row).tensor == 5
    assert torch.einsum(row, [0], row, [0]).tensor == 5


NOTED = []


class Noted(torch.Tensor):
    """Notes the arguments that its handler gets."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        NOTED.append((len(args), kwargs))


@pytest.mark.parametrize(
    "call, count, kwargs",
    [  # as PyTorch passes them
        (lambda x: F.dropout(x, 0.3), 1, {"p": 0.3, "training": True, "inplace": False}),
        (lambda x: F.relu(input=x), 1, {"inplace": False}),
        (lambda x: F.layer_norm(x, (2,)), 2, {"weight": None, "bias": None, "eps": 1e-5}),
        (lambda x: F.softmax(x, 1), 1, {"dim": 1, "_stacklevel": 3, "dtype": None}),
        (lambda x: torch.tensordot(x, x), 2, {"dims": 2, "out": None}),
        (lambda x: torch.meshgrid(x, x), 2, {"indexing": None}),
        (lambda x: F.conv1d(x, x), 2, {}),
        (lambda x: torch.relu(x), 1, {}),
    ],
)
def test_handlers_get_defaults_of_functions_that_pytorch_has_in_python(call, count, kwargs):
    NOTED.clear()
    call(torch.ones(2).as_subclass(Noted))
    ((positional, named),) = NOTED
    assert (positional, named or {}) == (count, kwargs)


def test_what_modes_do_not_see():
    """As in PyTorch: `as_subclass` is no function that they override, nor is `from_numpy`."""

    class Mine(torch.Tensor):
        pass

    calls = []
    with Named("a", calls):
        x = torch.from_numpy(np.ones(2)).as_subclass(Mine)
    assert type(x) is Mine and not calls
    assert torch.from_numpy in overrides.get_ignored_functions()


@as_torch
def test_methods_that_compute_nothing_are_overridden(torch):
    called = []

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            called.append(func)
            return -1

    methods = "__len__ __dlpack_device__ dim_order is_shared share_memory_ storage storage_type"
    results = [getattr(torch.Tensor, name)(Like()) for name in methods.split()]
    names = "register_hook register_post_accumulate_grad_hook"
    results += [getattr(torch.Tensor, name)(Like(), print) for name in names.split()]
    return [result == -1 for result in results]
