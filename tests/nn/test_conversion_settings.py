"""`torch.__future__`: what conversions of modules do with parameters."""

import pytest

import jaxgrad as torch

future = torch.__future__


@pytest.fixture
def settings():
    yield future
    future.set_overwrite_module_params_on_conversion(False)
    future.set_swap_module_params_on_conversion(False)


def a_layer():
    layer = torch.nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    return layer, layer.weight, layer.weight.grad


def test_new_parameters(settings):
    settings.set_overwrite_module_params_on_conversion(True)
    assert settings.get_overwrite_module_params_on_conversion()
    layer, weight, gradient = a_layer()
    layer.weight.requires_grad_(False)
    layer.double()
    assert layer.weight is not weight and type(layer.weight) is torch.nn.Parameter
    assert layer.weight.dtype is torch.float64 and weight.dtype is torch.float32
    assert not layer.weight.requires_grad and layer.bias.requires_grad
    assert layer.weight.grad.tolist() == [[1, 1]] and layer.weight.grad.dtype is torch.float64
    assert weight.grad is gradient and gradient.dtype is torch.float32


def test_exchanged_parameters(settings):
    settings.set_overwrite_module_params_on_conversion(True)
    settings.set_swap_module_params_on_conversion(True)
    assert settings.get_swap_module_params_on_conversion()
    layer, weight, _ = a_layer()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    layer.double()
    assert layer.weight is weight and weight.dtype is weight.grad.dtype is torch.float64
    assert optimizer.param_groups[0]["params"][0] is weight


def test_values_by_default():
    layer, weight, _ = a_layer()
    assert layer.double().weight is weight and weight.dtype is torch.float64
    assert not future.get_overwrite_module_params_on_conversion()
    assert not future.get_swap_module_params_on_conversion()
