"""torch.nn.modules, and the modules of that name in the packages of layers for quantization."""

import inspect

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
