"""torch.nn.modules, and the modules of that name in the packages of layers for quantization."""

import importlib
import inspect

import pytest

import jaxgrad as torch


def test_all_names_the_layers():
    """As PyTorch's tests walk through them: `getattr(namespace, name)` of each is a class."""
    for namespace, some in (
        (torch.nn.modules, {"Linear", "Module", "LazyConv2d", "Softmax2d"}),
        (torch.nn.qat.modules, {"Conv2d", "Linear"}),
        (torch.nn.quantizable.modules, {"LSTM"}),
        (torch.nn.quantized.modules, {"Linear", "DeQuantize"}),
    ):
        assert some <= set(namespace.__all__)
        assert all(inspect.isclass(getattr(namespace, name)) for name in namespace.__all__)
    assert torch.nn.quantized.MaxPool2d is torch.nn.MaxPool2d


@pytest.mark.parametrize("name", ["qat", "quantizable", "quantized"])
def test_modules_of_a_package_that_is_one_file_can_be_imported(name):
    package = importlib.import_module(f"{torch.__name__}.ao.nn.{name}")
    modules = importlib.import_module(f"{torch.__name__}.ao.nn.{name}.modules")
    assert modules is package.modules and hasattr(modules, "__all__")
