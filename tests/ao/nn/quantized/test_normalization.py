"""Normalization of quantized tensors: integers are those of PyTorch 2.13."""

import pytest

import jaxgrad as torch
from jaxgrad import nn

nnq = torch.ao.nn.quantized


@pytest.mark.parametrize("dimensions", (1, 2, 3))
def test_instance_normalization(dimensions):
    x = torch.tensor([[[0.0, 1.0, 2.0, 5.0], [3.0, 3.0, 4.0, -2.0]]])
    x = torch.quantize_per_tensor(x, 0.05, 64, torch.quint8)
    x = x.reshape(1, 2, *[1] * (dimensions - 1), 4)
    weight, bias = nn.Parameter(torch.tensor([2.0, 0.5])), nn.Parameter(torch.tensor([0.0, 1.0]))
    layer = getattr(nnq, f"InstanceNorm{dimensions}d")(2, weight, bias, 0.1, 40)
    assert layer(x).int_repr().flatten().tolist() == [19, 29, 40, 72, 52, 52, 54, 41]
    assert list(layer.state_dict()) == ["weight", "bias", "scale", "zero_point"]
    assert str(layer).startswith(f"QuantizedInstanceNorm{dimensions}d(2, eps=1e-05")


@pytest.mark.parametrize("affine", (True, False))
def test_instance_normalization_of_a_converted_model(affine):
    model = nn.Sequential(
        torch.ao.quantization.QuantStub(),
        nn.InstanceNorm1d(2, affine=affine),
        torch.ao.quantization.DeQuantStub(),
    ).eval()
    model.qconfig = torch.ao.quantization.default_qconfig
    torch.ao.quantization.prepare(model, inplace=True)
    x = torch.tensor([[[0.0, 1.0, 2.0, 5.0], [3.0, 3.0, 4.0, -2.0]]])
    expected = model(x)
    torch.ao.quantization.convert(model, inplace=True)
    assert type(model[1]) is nnq.InstanceNorm1d
    assert (model(x) - expected).abs().max() < 0.05  # two steps of 3.3 / 127


def test_a_slope_for_each_channel():
    x = torch.quantize_per_tensor(torch.tensor([[1.0, -1.0], [-2.0, 2.0]]), 0.5, 64, torch.quint8)
    layer = nnq.PReLU(0.25, 100, 2)
    layer.set_weight(torch.quantize_per_tensor(torch.tensor([0.25, 0.5]), 0.25, 0, torch.quint8))
    assert layer(x).dequantize().tolist() == [[1.0, -0.5], [-0.5, 2.0]]
    assert not layer.state_dict() and str(layer) == "QuantizedPReLU()"


def test_a_slope_whose_observer_has_another_dtype():
    layer = nn.PReLU(init=0.5)
    layer.qconfig = torch.ao.quantization.default_qconfig
    layer.activation_post_process = layer.qconfig.activation()
    layer.activation_post_process(torch.tensor([0.0, 127.0]))
    with pytest.warns(UserWarning, match="PReLU's weight observer should have dtype quint8"):
        quantized = nnq.PReLU.from_float(layer)
    x = torch.quantize_per_tensor(torch.tensor([3.0, 8.0]), 1.0, 10, torch.quint8)
    assert quantized(x).dequantize().tolist() == [3, 8]
