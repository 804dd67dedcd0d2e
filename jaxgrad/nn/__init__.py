"""Neural networks, as torch.nn: `Module`, `Parameter`, layers, losses, `functional`, `init`,
`utils`.

A layer is imported at its first use.
"""

from __future__ import annotations

import importlib

from . import functional as functional

_MODULES = ("init", "module", "parameter", "utils")

# Public names by the module that defines them.
_NAMES = {
    "module": "Module",
    "parameter": "Buffer Parameter",
    "containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "layers": (
        "AlphaDropout Bilinear Dropout Dropout1d Dropout2d Dropout3d Embedding Flatten Identity "
        "Linear Unflatten"
    ),
    "activation_layers": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid "
        "LogSoftmax Mish PReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus "
        "Softshrink Softsign Tanh Tanhshrink Threshold"
    ),
    "loss_layers": (
        "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss "
        "GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss "
        "NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss"
    ),
    "convolution_layers": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AvgPool1d AvgPool2d AvgPool3d Conv1d Conv2d Conv3d "
        "ConvTranspose1d ConvTranspose2d ConvTranspose3d MaxPool1d MaxPool2d MaxPool3d"
    ),
    "attention_layers": "MultiheadAttention TransformerEncoder TransformerEncoderLayer",
    "normalization_layers": (
        "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LayerNorm RMSNorm"
    ),
}
_LAZY = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_MODULES, *_LAZY})
