"""The classes that replace those of layers in `convert`, `prepare_qat`, `quantize_dynamic`."""

from __future__ import annotations

from ... import nn
from ...names.not_provided import names_of
from ..nn import intrinsic, qat, quantized
from ..nn.qat import layers as qat_layers
from ..nn.quantized import convolution, dynamic, linear
from ..nn.quantized.dynamic.linear import LinearReLU as DynamicLinearReLU
from . import fake_quantize
from .stubs import DeQuantStub, QuantStub

_LINEAR_OF_ATTENTION = nn.modules.linear.NonDynamicallyQuantizableLinear

_OF_SAME_NAMES = (
    *("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    *("Linear", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "Dropout", "ELU"),
    *("Hardswish", "LeakyReLU", "ReLU6"),
)
_WITH_RELU = {
    "LinearReLU": linear.LinearReLU,
    "ConvReLU1d": convolution.ConvReLU1d,
    "ConvReLU2d": convolution.ConvReLU2d,
    "ConvReLU3d": convolution.ConvReLU3d,
}
_FUSED = (intrinsic, qat_layers)
_IN_TRAINING = ("Linear", "Conv2d", "Conv3d")

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    **{getattr(nn, name): getattr(quantized, name) for name in _OF_SAME_NAMES},
    _LINEAR_OF_ATTENTION: quantized.Linear,
    quantized.FloatFunctional: quantized.QFunctional,
    **{getattr(module, name): kind for name, kind in _WITH_RELU.items() for module in _FUSED},
    **{getattr(qat, name): getattr(quantized, name) for name in ("Conv1d", *_IN_TRAINING)},
}
DEFAULT_QAT_MODULE_MAPPINGS = {
    **{getattr(nn, name): getattr(qat, name) for name in _IN_TRAINING},
    _LINEAR_OF_ATTENTION: qat.Linear,
    **{getattr(intrinsic, name): getattr(qat_layers, name) for name in _WITH_RELU},
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    **{getattr(nn, name): getattr(dynamic, name) for name in dynamic.__all__},
    _LINEAR_OF_ATTENTION: dynamic.Linear,
    intrinsic.LinearReLU: DynamicLinearReLU,
}
# layers whose results have the same range always, which training rounds to
FIXED = {
    nn.Hardsigmoid: fake_quantize.default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: fake_quantize.default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: fake_quantize.default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: fake_quantize.default_fixed_qparams_range_neg1to1_fake_quant,
}


def get_default_static_quant_module_mappings() -> dict:
    """The layers of a model that is quantized after training, by those of `nn`."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings() -> dict:
    """The layers that round in training, by those of `nn`."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings() -> dict:
    """The layers that quantize their input at each call, by those of `nn`."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_default_qconfig_propagation_list() -> set:
    """The layers that get observers."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        nn.Sequential,
    }


__getattr__, __dir__ = names_of(__name__)
