"""Layers with batch normalization that train for quantization: numbers are PyTorch's."""

import numpy as np
import pytest
from helpers.quantized import filled, numbers

import jaxgrad as torch

nn, q = torch.nn, torch.ao.quantization
qat = torch.ao.nn.intrinsic.qat


def network():
    layers = q.QuantStub(), nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU()
    return filled(nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 2), q.DeQuantStub())).train()


def trained(backend):
    """A network after two steps of training, and the losses."""
    model = network()
    model.qconfig = q.get_default_qat_qconfig(backend)
    model = q.prepare_qat(q.fuse_modules_qat(model, ["1", "2", "3"]))
    optimizer, losses = torch.optim.SGD(model.parameters(), 0.02), []
    for factor in (0.93, 0.61):
        optimizer.zero_grad()
        loss = model(numbers(4, 2, 4, 4) * factor + 0.011).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@pytest.mark.parametrize(
    ("backend", "losses", "mean", "expected"),
    [
        (
            "x86",
            [34.402676, 3.650257],
            [-0.044316, -0.065953, 0.061185],
            [[0.45961, 0.827299], [0.689416, 1.149026]],
        ),
        (
            "qnnpack",
            [34.376343, 3.715593],
            [-0.044013, -0.066113, 0.061058],
            [[0.433794, 0.821926], [0.684938, 1.164395]],
        ),
    ],
)
def test_training_with_batch_normalization(backend, losses, mean, expected):
    model, computed = trained(backend)
    assert type(model[1]) is qat.ConvBnReLU2d
    np.testing.assert_allclose(computed, losses, rtol=1e-4)
    np.testing.assert_allclose(model[1].bn.running_mean.tolist(), mean, atol=1e-5)
    converted = q.convert(model.eval())
    assert [layer._get_name() for layer in converted][1:4] == [
        "QuantizedConvReLU2d",
        "Identity",
        "Identity",
    ]
    np.testing.assert_allclose(converted(numbers(2, 2, 4, 4) * 0.9).tolist(), expected, atol=1e-5)


def test_frozen_statistics():
    model, _ = trained("x86")
    layer = model.apply(qat.freeze_bn_stats)[1]
    before = layer.bn.running_mean.tolist()
    model.train()(numbers(4, 2, 4, 4))
    assert layer.freeze_bn and not layer.bn.training and layer.training
    assert layer.bn.running_mean.tolist() == before
    model.apply(qat.update_bn_stats)(numbers(4, 2, 4, 4))
    assert layer.bn.running_mean.tolist() != before


def test_linear_layer_with_batch_normalization():
    layer = filled(qat.LinearBn1d(3, 2, qconfig=q.get_default_qat_qconfig("x86")))
    x = numbers(4, 3)
    np.testing.assert_allclose(
        layer(x).tolist(),
        [
            [-2.611165, 0.723793],
            [-0.322633, 2.136945],
            [-0.028475, 0.791086],
            [-1.037727, -0.251824],
        ],
        atol=1e-5,
    )
    layer.eval()
    np.testing.assert_allclose(
        layer(x).tolist(),
        [[-2.177513, 1.381218], [0.132648, 1.775829], [0.425501, 1.385945], [-0.588859, 1.088354]],
        atol=1e-5,
    )
    # without rounding the layer of `nn` computes the same
    layer.apply(q.disable_fake_quant)
    np.testing.assert_allclose(layer(x).tolist(), layer.to_float()(x).tolist(), atol=1e-5)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("Conv1d BatchNorm1d", "ConvBn1d"),
        ("Conv3d BatchNorm3d ReLU", "ConvBnReLU3d"),
        ("Linear BatchNorm1d", "LinearBn1d"),
        ("BatchNorm2d ReLU", "BNReLU2d"),
    ],
)
def test_what_is_fused_in_training(kinds, expected):
    arguments = {"Conv1d": (1, 2, 1), "Conv3d": (1, 2, 1), "Linear": (2, 2), "ReLU": ()}
    names = kinds.split()
    layers = [getattr(nn, name)(*arguments.get(name, (2,))) for name in names]
    places = [str(place) for place in range(len(layers))]
    fused = q.fuse_modules_qat(nn.Sequential(*layers).train(), places)
    assert type(fused[0]).__name__ == expected
    assert [type(layer) for layer in fused[1:]] == [nn.Identity] * (len(layers) - 1)


def test_batch_normalization_that_does_not_fit():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(3)).train()
    with pytest.raises(AssertionError, match="3 channels must match the 2 outputs of Conv2d"):
        q.fuse_modules_qat(model, ["0", "1"])
    model = nn.Sequential(nn.ConvTranspose2d(1, 2, 1), nn.BatchNorm2d(2)).train()
    with pytest.raises(Exception, match="BatchNorm not yet supported in QAT"):
        q.fuse_modules_qat(model, ["0", "1"])
