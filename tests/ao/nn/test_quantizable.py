"""Layers of parts that can be quantized: numbers are those of PyTorch 2.13."""

import math

import numpy as np
import pytest
from helpers.quantized import filled, numbers

import jaxgrad as torch

nn, q = torch.nn, torch.ao.quantization
quantizable = torch.ao.nn.quantizable


class Part(nn.Module):
    """A layer between stubs; gives its first result."""

    def __init__(self, layer, count):
        super().__init__()
        self.quant, self.dequant, self.layer, self.count = (
            q.QuantStub(),
            q.DeQuantStub(),
            layer,
            count,
        )

    def forward(self, x):
        return self.dequant(self.layer(*[self.quant(x)] * self.count)[0])


def converted(layer, count, *shape):
    model = filled(Part(layer, count)).eval()
    model.qconfig = q.get_default_qconfig("x86")
    prepared = q.prepare(model)
    for factor in (1.0, 0.5):
        prepared(numbers(*shape) * factor)
    return q.convert(prepared)


def test_lstm():
    model = converted(nn.LSTM(3, 2), 1, 3, 2, 3)
    assert model.layer._get_name() == "QuantizedLSTM"
    np.testing.assert_allclose(
        model(numbers(3, 2, 3)).tolist(),
        [
            [[0.057043, -0.073555], [0.025519, 0.057043]],
            [[0.111083, 0.0], [0.004503, 0.001501]],
            [[0.048036, -0.060045], [0.015011, 0.058544]],
        ],
        atol=1e-5,
    )


def test_attention():
    with pytest.warns(UserWarning, match="must run observer"):  # of `mul_scalar`, as in PyTorch
        model = converted(nn.MultiheadAttention(4, 2), 3, 3, 2, 4)
    assert model.layer._get_name() == "QuantizedMultiheadAttention"
    np.testing.assert_allclose(
        model(numbers(3, 2, 4)).tolist(),
        [
            [[-0.490737, 0.441663, 2.600904, -0.736105], [-2.306463, 0.53981, 3.925894, -0.687031]],
            [[-1.766652, 0.490737, 3.631452, -0.883326], [-2.257389, 0.53981, 3.680525, -0.637958]],
            [[-1.815726, 0.53981, 3.140715, -0.736105], [-1.864799, 0.588884, 3.435157, -0.343516]],
        ],
        atol=1e-5,
    )


def observed(layer):
    layer = filled(layer).eval()
    layer.qconfig = q.get_default_qconfig("x86")
    return layer, getattr(quantizable, type(layer).__name__).from_float(layer)


@pytest.mark.parametrize("batch_first", [False, True])
def test_layers_of_parts_compute_what_lstm_computes(batch_first):
    options = {"num_layers": 2, "bidirectional": True, "batch_first": batch_first}
    layer, of_parts = observed(nn.LSTM(3, 2, **options))
    state = numbers(4, 2, 2), numbers(4, 2, 2) * 0.5
    x = numbers(2, 2, 3)
    for arguments in ((x,), (x, state)):
        (expected, (h, c)), (result, (rh, rc)) = layer(*arguments), of_parts(*arguments)
        for one, other in ((expected, result), (h, rh), (c, rc)):
            np.testing.assert_allclose(one.tolist(), other.tolist(), atol=1e-6)


def test_attention_of_parts_computes_what_attention_computes():
    layer, of_parts = observed(nn.MultiheadAttention(4, 2, kdim=3, vdim=3, batch_first=True))
    query, key = numbers(2, 3, 4), numbers(2, 5, 3)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    for mask in (None, torch.ones(3, 5).tril().log(), torch.ones(3, 5).tril() == 0):
        options = {"attn_mask": mask, "average_attn_weights": False}
        if mask is None or mask.dtype is torch.bool:
            options["key_padding_mask"] = padding
        for one, other in zip(
            layer(query, key, key, **options), of_parts(query, key, key, **options), strict=True
        ):
            np.testing.assert_allclose(one.tolist(), other.tolist(), atol=1e-6)


def test_a_cell():
    cell = filled(quantizable.LSTMCell(2, 2))
    x = numbers(1, 2)
    i, _, g, o = (cell.igates(x) + cell.hgates.bias).chunk(4, 1)
    c = i.sigmoid() * g.tanh()
    np.testing.assert_allclose(cell(x)[0].tolist(), (o.sigmoid() * c.tanh()).tolist(), atol=1e-6)
    assert math.isclose(cell(x)[1].sum().item(), c.sum().item(), rel_tol=1e-5)


def test_what_is_not_provided():
    with pytest.raises(NotImplementedError, match="add_bias_kv and add_zero_attn"):
        quantizable.MultiheadAttention(4, 2, add_bias_kv=True)
    with pytest.raises(NotImplementedError, match="call prepare"):
        torch.ao.nn.quantized.LSTM.from_float(nn.LSTM(2, 2))
