"""The classes that replace those of layers in `convert`, `prepare_qat`, `quantize_dynamic`."""

from __future__ import annotations

from ... import nn
from ...names.not_provided import names_of
from ..nn import intrinsic, qat, quantized
from ..nn.intrinsic import qat as intrinsic_qat
from ..nn.quantized import convolution, dynamic, linear, normalization
from ..nn.quantized.dynamic.linear import LinearReLU as DynamicLinearReLU
from .stubs import DeQuantStub, QuantStub

_LINEAR_OF_ATTENTION = nn.modules.linear.NonDynamicallyQuantizableLinear

_OF_SAME_NAMES = (
    *("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    *("Linear", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "Dropout", "ELU"),
    *("Hardswish", "LeakyReLU", "ReLU6", "PReLU"),
    *("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"),
)
_WITH_RELU = {
    "LinearReLU": linear.LinearReLU,
    "ConvReLU1d": convolution.ConvReLU1d,
    "ConvReLU2d": convolution.ConvReLU2d,
    "ConvReLU3d": convolution.ConvReLU3d,
}
_FUSED = (intrinsic, intrinsic_qat)
_NORMALIZED = {
    "ConvBn1d": quantized.Conv1d,
    "ConvBn2d": quantized.Conv2d,
    "ConvBn3d": quantized.Conv3d,
    "ConvBnReLU1d": convolution.ConvReLU1d,
    "ConvBnReLU2d": convolution.ConvReLU2d,
    "ConvBnReLU3d": convolution.ConvReLU3d,
    "LinearBn1d": quantized.Linear,
}
_IN_TRAINING = ("Linear", "Conv2d", "Conv3d")
_TABLES = ("Embedding", "EmbeddingBag")

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    **{getattr(nn, name): getattr(quantized, name) for name in _OF_SAME_NAMES},
    **{getattr(nn, name): getattr(quantized, name) for name in _TABLES},
    _LINEAR_OF_ATTENTION: quantized.Linear,
    quantized.FloatFunctional: quantized.QFunctional,
    **{getattr(module, name): kind for name, kind in _WITH_RELU.items() for module in _FUSED},
    **{getattr(intrinsic_qat, name): kind for name, kind in _NORMALIZED.items()},
    **{
        getattr(qat, name): getattr(quantized, name) for name in ("Conv1d", *_IN_TRAINING, *_TABLES)
    },
    intrinsic.BNReLU2d: normalization.BNReLU2d,
    intrinsic.BNReLU3d: normalization.BNReLU3d,
}
DEFAULT_QAT_MODULE_MAPPINGS = {
    **{getattr(nn, name): getattr(qat, name) for name in _IN_TRAINING},
    _LINEAR_OF_ATTENTION: qat.Linear,
    **{
        getattr(intrinsic, name): getattr(intrinsic_qat, name)
        for name in (*_WITH_RELU, *_NORMALIZED)
        if name != "ConvReLU1d"
    },
}
# of traced models; in others, weights of one dimension do not round in training, as in PyTorch
TRACED_QAT_MODULE_MAPPINGS = {
    **DEFAULT_QAT_MODULE_MAPPINGS,
    nn.Conv1d: qat.Conv1d,
    intrinsic.ConvReLU1d: intrinsic_qat.ConvReLU1d,
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS = {
    **{getattr(nn, name): getattr(dynamic, name) for name in dynamic.__all__},
    **{getattr(nn, name): getattr(quantized, name) for name in _TABLES},
    _LINEAR_OF_ATTENTION: dynamic.Linear,
    intrinsic.LinearReLU: DynamicLinearReLU,
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
