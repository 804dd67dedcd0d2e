"""Quantized models compared with PyTorch's: eager, in training, traced, embeddings, recurrent.

make oracle ARGUMENTS=quantization     (`--seed N` draws the numbers of an earlier run)

A number may differ by two steps of its scale: a tie that one library rounds the other way is found
again in the layers behind it.
"""

import importlib

import numpy as np
import pytest
import torch
from oracle.seed import SEED

import jaxgrad


class Case:
    """A library with the same random numbers as the other."""

    def __init__(self, library, number):
        self.torch, self.nn = library, library.nn
        self.q = library.ao.quantization
        self.fx = importlib.import_module(f"{library.__name__}.ao.quantization.quantize_fx")
        self.random = np.random.default_rng((SEED, number))

    def numbers(self, *shape):
        values = self.random.standard_normal(shape).astype(np.float32)
        return self.torch.tensor(values)

    def filled(self, module):
        with self.torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(self.numbers(*parameter.shape) * 0.4)
        return module

    def engine(self):
        return str(self.random.choice(["x86", "fbgemm", "qnnpack", "onednn"]))


def network(case):
    nn = case.nn
    layers = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
    return case.filled(nn.Sequential(*layers, nn.Conv2d(4, 2, 3), nn.ReLU()))


def static(case):
    q = case.q
    model = case.nn.Sequential(q.QuantStub(), *network(case), q.DeQuantStub()).eval()
    model = q.fuse_modules(model, [["1", "2", "3"], ["5", "6"]])
    model.qconfig = q.get_default_qconfig(case.engine())
    prepared = q.prepare(model)
    for _ in range(3):
        prepared(case.numbers(2, 2, 8, 8))
    return q.convert(prepared)(case.numbers(2, 2, 8, 8))


def training(case):
    q = case.q
    model = case.nn.Sequential(q.QuantStub(), *network(case), q.DeQuantStub()).train()
    model.qconfig = q.get_default_qat_qconfig(case.engine())
    model = q.prepare_qat(q.fuse_modules_qat(model, [["1", "2", "3"], ["5", "6"]]))
    for _ in range(2):
        model(case.numbers(4, 2, 8, 8))
    x = case.numbers(2, 2, 8, 8)
    return q.convert(model.eval())(x)


def traced(case):
    engine = case.engine()
    mapping = case.q.get_default_qconfig_mapping(engine)
    prepared = case.fx.prepare_fx(network(case).eval(), mapping, (case.numbers(1, 2, 8, 8),))
    for _ in range(3):
        prepared(case.numbers(2, 2, 8, 8))
    return case.fx.convert_fx(prepared)(case.numbers(2, 2, 8, 8))


def traced_training(case):
    mapping = case.q.get_default_qat_qconfig_mapping(case.engine())
    model = case.fx.prepare_qat_fx(network(case).train(), mapping, (case.numbers(1, 2, 8, 8),))
    for _ in range(2):
        model(case.numbers(4, 2, 8, 8))
    return case.fx.convert_fx(model.eval())(case.numbers(2, 2, 8, 8))


def bags(case):
    layer = case.filled(case.nn.EmbeddingBag(20, 6, mode="sum"))
    end = str(case.random.choice(["", "_4bit"]))
    layer.qconfig = getattr(case.q, f"float_qparams_weight_only_qconfig{end}")
    layer = case.q.convert(case.q.prepare(case.nn.Sequential(layer)))[0]
    indices = case.torch.tensor(case.random.integers(0, 20, 9))
    return layer(indices, case.torch.tensor([0, 2, 2, 7]), case.numbers(9))


def recurrent(case):
    class Model(case.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = case.q.QuantStub(), case.q.DeQuantStub()
            self.layer = case.nn.LSTM(3, 4, bidirectional=True)

        def forward(self, x):
            return self.dequant(self.layer(self.quant(x))[0])

    model = case.filled(Model()).eval()
    model.qconfig = case.q.get_default_qconfig("x86")
    prepared = case.q.prepare(model)
    for _ in range(2):
        prepared(case.numbers(4, 2, 3))
    return case.q.convert(prepared)(case.numbers(4, 2, 3))


def attention(case):
    layer = case.filled(case.nn.MultiheadAttention(8, 2)).eval()
    layer.qconfig = case.q.get_default_qconfig("x86")
    layer = case.torch.ao.nn.quantizable.MultiheadAttention.from_float(layer)
    x = case.numbers(4, 2, 8)
    return layer(x, x, x)[0]


def dynamic(case):
    layers = case.nn.Linear(6, 8), case.nn.ReLU(), case.nn.Linear(8, 3)
    model = case.filled(case.nn.Sequential(*layers))
    return case.q.quantize_dynamic(model)(case.numbers(5, 6))


KINDS = [static, training, traced, traced_training, bags, recurrent, attention, dynamic]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_quantized_model(kind, number):
    expected, actual = (
        kind(Case(library, number)).detach().numpy() for library in (torch, jaxgrad)
    )
    steps = np.unique(expected.round(6))
    step = np.diff(steps).min() if len(steps) > 1 else 0.0
    np.testing.assert_allclose(actual, expected, atol=2 * step + 1e-5)
    assert np.mean(np.abs(actual - expected) > 1e-5 + step / 2) < 0.2
