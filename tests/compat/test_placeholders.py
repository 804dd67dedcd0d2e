"""Every module and name of PyTorch can be imported, and what is not provided raises at its use."""

import abc
import copy
import dataclasses
import enum
import functools
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import typing

import pytest

import jaxgrad as torch
from jaxgrad.names import pytorch as pytorch_names
from jaxgrad.names.not_provided import NotProvidedModule, is_placeholder, listed, provided

T = typing.TypeVar("T")

# what imports take constants, and decorators, that are not provided from
VALUES = "torch.ao.quantization.backend_config.native import"
DECORATORS = "torch.ao.quantization.fx.pattern_utils import"

# the modules and names that other packages stop at when an import of them fails
ASKED = """
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.rpc.api import _require_initialized
from torch.distributed._tensor.experimental import local_map
from torch._C import _TensorMeta
from torch._C._nn import _parse_to
from torch.fx.node import Target
from torch.utils.flop_counter import FlopCounterMode
import torch.testing._internal.common_utils
import torch._numpy.linalg
"""


def ask(text: str) -> dict:
    """The names that an import binds, of jaxgrad's own modules."""
    names = {}
    exec(text.replace("torch", "jaxgrad", 1), names)
    del names["__builtins__"]
    return names


def answer(text: str):
    (value,) = ask(text).values()
    return value


def refused(call, *words):
    with pytest.raises(NotImplementedError) as caught:
        call()
    for word in ("is not provided by jaxgrad: ", *words):
        assert word in str(caught.value)


# ---- imports


def imports_of(modules) -> list[tuple[str, str]]:
    """The imports of modules and their names that fail, with the errors."""
    failures = []
    for module in modules:
        names = [*pytorch_names.names_in(module)]
        for text in (f"import {module}", *(f"from {module} import {name}" for name in names)):
            try:
                ask(text)
            except Exception as error:
                failures.append((text, repr(error)))
    return failures


def test_each_30th_module_and_its_names_can_be_imported():
    modules = sorted(pytorch_names.modules())
    assert len(modules) > 2270 and imports_of(modules[::30]) == []


@pytest.mark.slow
def test_each_module_and_its_names_can_be_imported():
    assert imports_of(pytorch_names.modules()) == []


HIDDEN = """
import cloudpickle, importlib, sys, types, jaxgrad
from jaxgrad.names.not_provided import own_name
from jaxgrad.names.pytorch import modules
functions = {}
for name in map(own_name, modules()):
    package, _, last = name.rpartition(".")
    function = getattr(sys.modules.get(package), last, None)
    if callable(function):
        functions[name] = function
    importlib.import_module(name)
for name, function in functions.items():
    package, _, last = name.rpartition(".")
    assert getattr(sys.modules[package], last) is function, name
    module = sys.modules[package]
    assert not isinstance(module, types.ModuleType) or cloudpickle.loads(
        cloudpickle.dumps(module)
    ) is module, package
print("jaxgrad.nn.utils.spectral_norm" in functions, len(functions) >= 8)
"""


def test_an_import_of_a_module_leaves_the_function_of_its_name():
    """PyTorch has a module and a function `nn.utils.spectral_norm`: the function is what it is."""
    child = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True)
    assert child.stdout.split() == ["True", "True"], child.stderr


PROGRAM = """
from jaxgrad.compat import install
install()
import torch, importlib.util
{imports}
from torch import _meta_registrations, AVG
from torch.fft import common_args
print(hasattr(torch, "AVG"), hasattr(torch.fft, "common_args"), AVG == AVG, common_args != AVG)
from torch.fft import common_args as again
print(again is common_args, importlib.util.find_spec("torch._prims"))
for text in ("from torch.fft import fft22", "import torch.fft.fft22", "import torch.nothing"):
    try:
        exec(text)
    except ModuleNotFoundError as error:
        print(error)
from torch.distributed.tensor._utils import DeviceMesh
print(DeviceMesh is torch.distributed.device_mesh.DeviceMesh)
"""


def test_imports_under_the_hook():
    """`from module import name` gives a placeholder, and `hasattr(module, name)` stays False."""
    code = PROGRAM.format(imports=ASKED)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines() == [
        "False False True True",
        "True None",
        "cannot import 'fft22' from 'torch.fft': not provided by jaxgrad; did you mean 'fft2'?",
        "cannot import 'fft22' from 'torch.fft': not provided by jaxgrad; did you mean 'fft2'?",
        "cannot import 'nothing' from 'torch': not provided by jaxgrad",
        "True",
    ]


def test_imports_of_jaxgrad_itself():
    assert is_placeholder(answer("from torch.linalg import common_notes"))
    assert not hasattr(torch.linalg, "common_notes")
    assert (
        answer("from torch.nn.functional import Tensor") is torch.Tensor
    )  # what is there elsewhere
    for text in ("from torch.linalg import nothing", "import torch.linalg.common_notes.nothing"):
        with pytest.raises(ImportError):
            ask(text)
    with pytest.raises(AttributeError):
        torch.linalg.common_notes  # noqa: B018


def test_names_that_are_attributes_are_there():
    """Also the aliases of types that the list of all names lacks."""
    for path, names in listed().items():
        if path.startswith("torch.distributed.checkpoint"):
            module = importlib.import_module(path.replace("torch", "jaxgrad", 1))
            assert all(hasattr(module, name) for name in names) and path != "torch"


def test_what_to_use_instead_is_told_of_names_that_are_not_there():
    rows = pytorch_names._instead()
    names = [path for path in rows if path not in pytorch_names.modules()]
    entries = {path: pytorch_names.entry_of(path) for path in names}
    there = [path for path, entry in entries.items() if entry and provided(entry) is not None]
    assert len(names) > 20 and there == []


def test_one_object_has_one_placeholder():
    kind = answer("from torch.ao.quantization import Granularity")
    inner = "torch.ao.quantization.observer"
    assert kind is torch.ao.quantization.Granularity is answer(f"from {inner} import Granularity")
    assert kind is importlib.import_module(inner.replace("torch", "jaxgrad", 1)).Granularity
    assert answer(f"from {VALUES} default_dynamic_int8_dtype_config") != answer(
        f"from {VALUES} default_dynamic_float16_dtype_config"
    )


def test_modules_of_placeholders_can_be_looked_at():
    """Tools walk `sys.modules` and ask for attributes that a module may not have."""
    module = importlib.import_module("jaxgrad._numpy")
    assert isinstance(module, NotProvidedModule) and "linalg" in dir(module)
    assert not any(hasattr(module, name) for name in ("__file__", "__wrapped__", "nothing"))
    assert [*pkgutil.iter_modules(module.__path__)] == [] and "not provided" in repr(module)
    names = {}
    exec("from jaxgrad._numpy import *", names)
    assert is_placeholder(names["arange"]) and "_util" not in names
    answer(f"from {VALUES} default_dynamic_int8_dtype_config"), answer(f"from {VALUES} DTypeConfig")
    for value in [*sys.modules.values()]:
        assert not getattr(value, "__warningregistry__", None) or not is_placeholder(value)
    assert inspect.getmodule(ask) is sys.modules[__name__]
    assert not importlib.import_module("jaxgrad.distributed.rpc").is_available()


# ---- classes


def test_a_class_can_be_a_base_and_an_argument():
    tracer = answer("from torch.ao.quantization import Granularity")

    class Plain(tracer):
        pass

    class Layer(tracer, torch.nn.Module):
        pass

    class Box(tracer, typing.Generic[T]):
        pass

    class Abstract(tracer, abc.ABC):
        pass

    class Registered(abc.ABC):
        @abc.abstractmethod
        def method(self):
            """Of an interface."""

    class Named(tracer, torch.nn.Module, option=3):
        pass

    for cls in (tracer, Plain, Layer, Box, Box[int], Abstract, Named):
        refused(cls, "torch.ao.quantization.Granularity", "quantize arrays")
    assert issubclass(Layer, tracer) and not isinstance(Layer, torch.nn.Module)
    assert not isinstance(3, tracer) and not issubclass(int, tracer)
    assert Registered.register(tracer) is tracer and issubclass(Plain, Registered)
    assert not hasattr(Plain, "nothing") and tracer.of.path.endswith("Granularity.of")
    refused(tracer.of), refused(lambda: list(tracer))
    layer = answer("from torch.ao.nn.quantized.reference import LSTM")
    assert issubclass(layer, torch.nn.Module) and not isinstance(torch.nn.Identity(), layer)
    refused(lambda: layer(2, 2))


def test_a_class_can_be_an_annotation_and_be_dispatched_on():
    tracer = answer("from torch.ao.quantization import Granularity")

    @functools.singledispatch
    def size(value: "tracer | None", other: tracer[int] | None = None) -> typing.Optional[tracer]:  # noqa: UP045
        return 0

    size.register(tracer)(lambda value: 1)
    assert size(3) == 0 and size(torch.ones(1)) == 0
    hints = typing.get_type_hints(size.dispatch(object), localns={"tracer": tracer})
    assert hints["value"] == (tracer | None) == hints["return"] == hints["other"]

    @dataclasses.dataclass
    class Options:
        used: tracer | None = None

    assert Options().used is None and copy.deepcopy(tracer) is tracer


def test_an_alias_of_types_is_no_argument_of_isinstance():
    target = answer("from torch.ao.ns.fx.mappings import NSNodeTargetType")
    assert target | None == typing.Optional[target]  # noqa: UP045
    refused(lambda: isinstance(3, target), "NSNodeTargetType")
    parameter = answer("from torch.fx.node import _R")
    assert isinstance(parameter, typing.TypeVar)


def test_exceptions_are_exceptions():
    error = answer("from torch._dynamo.exc import Unsupported")
    assert issubclass(error, RuntimeError)
    with pytest.raises(error):
        raise error("told")


# ---- functions and constants


def test_a_function_hides_the_module_of_its_name():
    """As PyTorch's `torch.export.unflatten`."""
    with pytest.raises(NotImplementedError, match=r"torch\.export\.unflatten is not provided"):
        torch.export.unflatten(None)
    importlib.import_module("jaxgrad.export.unflatten")
    with pytest.raises(NotImplementedError, match=r"torch\.export\.unflatten is not provided"):
        torch.export.unflatten(None)


def test_a_function_raises_at_a_call_and_says_who_imported_it():
    function = answer("from torch.ao.quantization.utils import check_node")
    text = repr(function)
    assert (
        function
        and "torch.ao.quantization.utils.check_node" in text
        and copy.copy(function) is function
    )
    refused(lambda: function(3, 4), "utils.check_node", "(<string>, line 1, asks for it)")
    refused(lambda: [function(len)])
    for member in ("register", "impl"):
        refused(getattr(function, member))
    assert not hasattr(function, "__wrapped__")


def test_a_function_decorates_what_raises_at_a_call():
    decorate = answer(f"from {DECORATORS} _register_fusion_pattern")

    @decorate
    def function(x):
        """Told."""

    class Holder:
        @decorate
        @staticmethod
        def plain():
            pass

        @decorate(is_backward_compatible=True)
        def method(self):
            pass

        @decorate(is_backward_compatible=[1, "a", len])
        class Inner:
            size = 3

    assert function.__doc__ == "Told." and list(inspect.signature(function).parameters) == ["x"]
    for call in (lambda: function(3), Holder.plain, Holder().method, Holder.Inner):
        refused(call, "_register_fusion_pattern")
    assert Holder.Inner.size == 3 and Holder.Inner.__name__ == "Inner"


def test_only_decorators_are_called_without_an_error():
    function = answer(f"from {DECORATORS} _register_fusion_pattern")
    space = {"function": function, "x": torch.ones(1), "local": lambda: function(is_x=True)}
    refusals = ("function(3)", "function(len)", "r = function(x)", "r = function([x])", "local()")
    for text in (*refusals, "r = function(3); r.value", "r = function(3)\nif r + 1: pass"):
        refused(lambda text=text: exec(text, space))


VALUE_USES = {
    "arithmetic": lambda x: x + 1,
    "reflected": lambda x: 2 * x,
    "sign": lambda x: -x,
    "call": lambda x: x(),
    "truth": bool,
    "length": len,
    "items": list,
    "index": lambda x: x[0],
    "number": float,
    "whole": int,
    "order": lambda x: x < 3,
    "inside": lambda x: 3 in x,
    "block": lambda x: x.__enter__(),
    "range": range,
    "of a tensor": lambda x: torch.ones(1) * x,
}


@pytest.mark.parametrize("use", VALUE_USES)
def test_a_constant_equals_itself_and_enters_no_computation(use):
    value = answer(f"from {VALUES} default_dynamic_int8_dtype_config")
    other = answer(f"from {VALUES} default_dynamic_float16_dtype_config")
    assert value == value and value != other and value != "add" and {value: 1}[value] == 1
    assert copy.deepcopy([value]) == [value] and "default_dynamic_int8_dtype_config" in repr(value)
    with pytest.raises(
        (NotImplementedError, TypeError) if use == "of a tensor" else NotImplementedError
    ):
        VALUE_USES[use](value)
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(value)


class Kind(enum.Enum):
    ONE = 1


def test_a_final_class_cannot_be_decorated():
    function = answer(f"from {DECORATORS} _register_fusion_pattern")
    with pytest.raises(NotImplementedError):
        exec("Kind = function(Kind)", {"function": function, "Kind": Kind})


def test_options_of_the_compiler_are_those_of_its_module():
    code = """
import jaxgrad._dynamo.config
import jaxgrad._inductor.config as inductor
from jaxgrad._dynamo import config

jaxgrad._dynamo.config.suppress_errors = True
assert config is jaxgrad._dynamo.config and config.suppress_errors and not config.verbose
inductor.max_autotune = True
assert jaxgrad._inductor.config.max_autotune and not inductor.triton.cudagraphs
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
