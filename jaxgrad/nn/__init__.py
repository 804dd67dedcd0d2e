"""Neural networks, as torch.nn: `Module`, `Parameter`, layers, losses, `functional`, `init`,
`utils`.

A layer is imported at its first use.
"""

from __future__ import annotations

import importlib

from ..names.missing import MissingName, offered
from . import functional as functional

_MODULES = (
    "attention",
    "common_types",
    "grad",
    "init",
    "module",
    "modules",
    "parallel",
    "parameter",
)
_MODULES += ("utils",)

# Public names by the module that defines them.
_NAMES = {
    "module": "Module",
    "parameter": "Buffer Parameter UninitializedBuffer UninitializedParameter",
    "lazy": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
        "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear"
    ),
    "containers": "Container ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "linear": "Bilinear Identity Linear",
    "shape": "Flatten Unflatten",
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid "
        "LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin "
        "Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
    ),
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss "
        "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss "
        "MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss "
        "NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss"
    ),
    "adaptive_softmax": "AdaptiveLogSoftmaxWithLoss",
    "distance": "CosineSimilarity PairwiseDistance",
    "convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d "
        "LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d "
        "MaxUnpool3d"
    ),
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "embedding": "Embedding EmbeddingBag",
    "multi_head_attention": "MultiheadAttention",
    "transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
        "TransformerEncoderLayer"
    ),
    "folding": "Fold Unfold",
    "recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
        "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
        "ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "resampling": (
        "ChannelShuffle PixelShuffle PixelUnshuffle Upsample UpsamplingBilinear2d "
        "UpsamplingNearest2d"
    ),
    "normalization": (
        "BatchNorm1d BatchNorm2d BatchNorm3d CrossMapLRN2d GroupNorm InstanceNorm1d "
        "InstanceNorm2d InstanceNorm3d LayerNorm LocalResponseNorm RMSNorm SyncBatchNorm"
    ),
    "parallel": "DataParallel",
}
_LAZY = {name: module for module, names in _NAMES.items() for name in names.split()}

_OF_QUANTIZATION = ("intrinsic", "qat", "quantizable", "quantized")


def __getattr__(name):
    if name == "__all__":
        return offered(__name__, "functional", "init", "modules", "parameter", "utils")
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _OF_QUANTIZATION:
        return importlib.import_module(f"jaxgrad.ao.nn.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise MissingName(__name__, name)


def __dir__():
    return sorted({*globals(), *_MODULES, *_LAZY})
