"""Layers with a module that rounds their weight: `weight_fake_quant`, of the `qconfig`."""

from __future__ import annotations

from .... import nn
from ....names.not_provided import names_of
from ..quantized.quantize import convolution_arguments
from ._float_layers import check_float_layer


class _RoundsWeight:
    """What these layers have beside those of `nn` that they derive from."""

    _FLOAT_MODULE: type
    _FLOAT_LAYER: type

    def __init__(self, *arguments, qconfig=None, **options):
        super().__init__(*arguments, **options)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.weight_fake_quant = qconfig, qconfig.weight()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the parameters of one of `nn` that has a `qconfig`."""
        check_float_layer(cls, mod)
        source = mod[0] if isinstance(mod, nn.Sequential) else mod
        layer = cls(**cls._arguments_of(source), qconfig=mod.qconfig)
        layer.weight, layer.bias = source.weight, source.bias
        return layer.train(mod.training)

    def to_float(self):
        """The layer of `nn` with the parameters."""
        return self._layer_of(self.weight, self.bias).train(self.training)

    def _layer_of(self, weight, bias):
        """The layer of `nn` with these parameters; without relu or batch normalization."""
        layer = self._FLOAT_LAYER(**{**self._arguments_of(self), "bias": bias is not None})
        layer.weight = nn.Parameter(weight.detach())
        if bias is not None:
            layer.bias = nn.Parameter(bias.detach())
        return layer

    def forward(self, input):
        return self._product(input, self.weight_fake_quant(self.weight), self.bias)


class Linear(_RoundsWeight, nn.Linear):
    """`nn.Linear` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Linear

    @staticmethod
    def _arguments_of(source):
        return {
            **{name: getattr(source, name) for name in ("in_features", "out_features")},
            "bias": source.bias is not None,
        }

    @staticmethod
    def _product(input, weight, bias):
        return nn.functional.linear(input, weight, bias)


class _Convolution(_RoundsWeight):
    _arguments_of = staticmethod(convolution_arguments)

    def _product(self, input, weight, bias):
        return self._conv_forward(input, weight, bias)


class Conv1d(_Convolution, nn.Conv1d):
    """`nn.Conv1d` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Conv1d


class Conv2d(_Convolution, nn.Conv2d):
    """`nn.Conv2d` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Conv2d


class Conv3d(_Convolution, nn.Conv3d):
    """`nn.Conv3d` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Conv3d


__getattr__, __dir__ = names_of(__name__)
