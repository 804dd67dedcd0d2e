"""Layers with a module that rounds their weight: `weight_fake_quant`, of the `qconfig`."""

from __future__ import annotations

from .... import nn
from ....names.not_provided import names_of
from ..intrinsic import fused
from ..quantized.quantize import convolution_arguments


class _RoundsWeight:
    """What these layers have beside those of `nn` that they derive from."""

    _FLOAT_MODULE: type
    _FLOAT_LAYER: type
    _has_relu = False

    def __init__(self, *arguments, qconfig=None, **options):
        super().__init__(*arguments, **options)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.weight_fake_quant = qconfig, qconfig.weight()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer with the parameters of one of `nn` that has a `qconfig`."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got "
                f"{type(mod).__name__}"
            )
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        source = mod[0] if cls._has_relu else mod
        layer = cls(**cls._arguments_of(source), qconfig=mod.qconfig)
        layer.weight, layer.bias = source.weight, source.bias
        return layer.train(mod.training)

    def to_float(self):
        """The layer of `nn` with the parameters."""
        layer = self._FLOAT_LAYER(**self._arguments_of(self)).train(self.training)
        layer.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            layer.bias = nn.Parameter(self.bias.detach())
        return self._FLOAT_MODULE(layer, nn.ReLU()) if self._has_relu else layer

    def _end(self, result):
        return result.relu() if self._has_relu else result


class Linear(_RoundsWeight, nn.Linear):
    """`nn.Linear` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Linear

    @staticmethod
    def _arguments_of(source):
        return {
            **{name: getattr(source, name) for name in ("in_features", "out_features")},
            "bias": source.bias is not None,
        }

    def forward(self, input):
        return self._end(
            nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)
        )


class _Convolution(_RoundsWeight):
    _arguments_of = staticmethod(convolution_arguments)

    def forward(self, input):
        return self._end(self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias))


class Conv1d(_Convolution, nn.Conv1d):
    """`nn.Conv1d` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Conv1d


class Conv2d(_Convolution, nn.Conv2d):
    """`nn.Conv2d` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Conv2d


class Conv3d(_Convolution, nn.Conv3d):
    """`nn.Conv3d` with a rounded weight."""

    _FLOAT_MODULE = _FLOAT_LAYER = nn.Conv3d


class LinearReLU(Linear):
    """`Linear` and a relu."""

    _FLOAT_MODULE, _has_relu = fused.LinearReLU, True


class ConvReLU1d(Conv1d):
    """`Conv1d` and a relu."""

    _FLOAT_MODULE, _has_relu = fused.ConvReLU1d, True


class ConvReLU2d(Conv2d):
    """`Conv2d` and a relu."""

    _FLOAT_MODULE, _has_relu = fused.ConvReLU2d, True


class ConvReLU3d(Conv3d):
    """`Conv3d` and a relu."""

    _FLOAT_MODULE, _has_relu = fused.ConvReLU3d, True


__getattr__, __dir__ = names_of(__name__)
