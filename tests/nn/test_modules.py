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
def test_an_import_of_the_modules_of_a_package_leaves_its_names(name):
    package = importlib.import_module(f"{torch.__name__}.ao.nn.{name}")
    modules = importlib.import_module(f"{torch.__name__}.ao.nn.{name}.modules")
    assert modules is package.modules and modules.__all__ == package.__all__
    assert all(getattr(modules, some) is getattr(package, some) for some in package.__all__)
