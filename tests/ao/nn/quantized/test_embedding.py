"""Embeddings with tables of 8 and 4 bits: numbers are those of PyTorch 2.13."""

import io

import numpy as np
import pytest
from helpers.quantized import filled, numbers

import jaxgrad as torch

nn, q = torch.nn, torch.ao.quantization
QCONFIGS = {
    "quint8": q.float_qparams_weight_only_qconfig,
    "quint4x2": q.float_qparams_weight_only_qconfig_4bit,
}
INDICES, OFFSETS = torch.tensor([1, 2, 4, 0, 3]), torch.tensor([0, 2, 2])


def quantized(layer, dtype):
    layer = filled(layer)
    layer.qconfig = QCONFIGS[dtype]
    return q.convert(q.prepare(nn.Sequential(layer)))[0]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (
            "quint8",
            [
                [-0.30098, -0.696863, -1.1, 0.55],
                [0.0, 0.0, 0.0, 0.0],
                [-0.4, 1.05, 0.446863, -0.14902],
            ],
        ),
        (
            "quint4x2",
            [
                [-0.330109, -0.653503, -1.10025, 0.549988],
                [0.0, 0.0, 0.0, 0.0],
                [-0.399963, 1.050232, 0.403442, -0.119995],
            ],
        ),
    ],
)
def test_bags(dtype, expected):
    layer = quantized(nn.EmbeddingBag(5, 4, mode="sum"), dtype)
    assert layer.weight().dtype is getattr(torch, dtype)
    np.testing.assert_allclose(layer(INDICES, OFFSETS).tolist(), expected, atol=1e-5)


def test_weights_of_samples():
    layer = quantized(nn.EmbeddingBag(5, 4, mode="sum"), "quint8")
    weights = torch.tensor([0.5, 1.0, 2.0, -1.0, 0.0])
    np.testing.assert_allclose(
        layer(INDICES, OFFSETS, weights).tolist(),
        [
            [-0.42598, -0.721863, -1.025, 0.725],
            [0.0, 0.0, 0.0, 0.0],
            [0.8, -1.45, -1.646863, -1.85098],
        ],
        atol=1e-5,
    )


def test_means_of_bags():
    # PyTorch sums, whatever the mode: here the mean of the layer that was quantized
    layer = quantized(nn.EmbeddingBag(5, 4, mode="mean"), "quint8")
    sums = quantized(nn.EmbeddingBag(5, 4, mode="sum"), "quint8")(INDICES, OFFSETS)
    counts = torch.tensor([[2.0], [1.0], [3.0]])
    np.testing.assert_allclose(layer(INDICES, OFFSETS)[::2], (sums / counts)[::2], atol=1e-6)


def test_embedding():
    layer = quantized(nn.Embedding(5, 4), "quint8")
    np.testing.assert_allclose(
        layer(torch.tensor([[1, 4]])).tolist(),
        [[[0.25, 0.05, -0.15, -0.35], [-0.1, -0.3, -0.5, -0.7]]],
        atol=1e-5,
    )


def test_files():
    layer, file = quantized(nn.Embedding(5, 4), "quint8"), io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = torch.ao.nn.quantized.Embedding(5, 4)
    other.load_state_dict(torch.load(file))
    assert other(INDICES).equal(layer(INDICES))
    with pytest.raises(NotImplementedError, match="does not write tensors of quint4x2"):
        torch.save(quantized(nn.Embedding(5, 4), "quint4x2").state_dict(), io.BytesIO())


def test_dynamic():
    model = nn.Sequential(filled(nn.Embedding(5, 4)))
    for spec in ({nn.Embedding: QCONFIGS["quint8"]}, {nn.Embedding}):
        result = q.quantize_dynamic(model, spec, dtype=torch.quint8)
        assert result[0]._get_name() == "QuantizedEmbedding"


def test_observer_that_does_not_fit():
    model = nn.Sequential(nn.Embedding(5, 4))
    model.qconfig = q.default_qconfig
    with pytest.raises(AssertionError, match="only supported with float_qparams_weight_only"):
        q.convert(q.prepare(model))


def test_tensors_of_four_bits():
    scales, starts = torch.tensor([0.25, 0.125]), torch.tensor([1.0, 2.5])
    x = torch.quantize_per_channel(numbers(2, 3), scales, starts, 0, torch.quint4x2)
    assert x.qscheme() is torch.per_channel_affine_float_qparams
    np.testing.assert_allclose(
        x.dequantize().tolist(), [[-0.25, 0.75, 0.75], [0.4375, 0.1875, 0.0625]], atol=1e-6
    )
    assert x.int_repr().tolist() == [64, 100, 52]
    with pytest.raises(NotImplementedError, match="must have a floating point dtype"):
        torch.quantize_per_channel(numbers(2, 3), scales, starts.long(), 0, torch.quint4x2)


def test_training():
    layer = filled(nn.Embedding(5, 4))
    layer.qconfig = q.default_embedding_qat_qconfig
    layer = torch.ao.nn.qat.Embedding.from_float(layer)
    result = layer(torch.tensor([1, 4]))
    result.pow(2).sum().backward()
    np.testing.assert_allclose(
        result.tolist(), [[0.25, 0.05, -0.15, -0.35], [-0.1, -0.3, -0.5, -0.7]], atol=1e-5
    )
    np.testing.assert_allclose(
        layer.weight.grad[[0, 1]].tolist(),
        [[0.0, 0.0, 0.0, 0.0], [0.5, 0.1, -0.3, -0.7]],
        atol=1e-5,
    )
    assert type(layer.to_float()) is nn.Embedding
