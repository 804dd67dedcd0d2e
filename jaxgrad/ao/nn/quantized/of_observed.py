"""Quantized layers of several parts, which `convert` makes of those of `ao.nn.quantizable`."""

from __future__ import annotations

import copy

from .... import nn
from ....names.not_provided import names_of
from ...quantization.insertion import convert_layers, remove_qconfig_of
from ...quantization.stubs import DeQuantStub, QuantStub
from .. import qat, quantizable
from .functional_modules import FloatFunctional, QFunctional
from .linear import Linear
from .quantize import DeQuantize, Quantize

_PARTS = {
    nn.Linear: Linear,
    qat.Linear: Linear,
    FloatFunctional: QFunctional,
    QuantStub: Quantize,
    DeQuantStub: DeQuantize,
}


def _converted(cls, other):
    """The layer with quantized parts."""
    if not isinstance(other, cls._FLOAT_MODULE):
        raise AssertionError(
            f"quantized.{cls.__name__}.from_observed works for quantizable.{cls.__name__}, not "
            f"{type(other).__name__}"
        )
    layer = copy.deepcopy(other)
    convert_layers(layer, _PARTS)
    remove_qconfig_of(layer)
    layer.__class__ = cls
    return layer


class LSTM(quantizable.LSTM):
    """`nn.LSTM` on quantized tensors."""

    _FLOAT_MODULE = quantizable.LSTM

    def _get_name(self):
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *arguments, **options):
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module: call prepare, run "
            "the model on typical inputs, and call convert"
        )

    from_observed = classmethod(_converted)


class MultiheadAttention(quantizable.MultiheadAttention):
    """`nn.MultiheadAttention` on quantized tensors."""

    _FLOAT_MODULE = quantizable.MultiheadAttention

    def _get_name(self):
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, *arguments, **options):
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module: call prepare, run "
            "the model on typical inputs, and call convert"
        )

    from_observed = classmethod(_converted)


__getattr__, __dir__ = names_of(__name__)
