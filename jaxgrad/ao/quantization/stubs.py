"""Marks of where a quantized part of a model begins and ends."""

from __future__ import annotations

from ...names.not_provided import names_of
from ...nn.module import Module


class _Stub(Module):
    """Returns its input. qconfig: the observers of the stub."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """Returns its input; `convert` puts `ao.nn.quantized.Quantize` in its place.

    qconfig: the observers of the stub.
    """


class DeQuantStub(_Stub):
    """Returns its input; `convert` puts `ao.nn.quantized.DeQuantize` in its place.

    qconfig: the observers of the stub.
    """


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`."""

    def __init__(self, module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))


__getattr__, __dir__ = names_of(__name__)
