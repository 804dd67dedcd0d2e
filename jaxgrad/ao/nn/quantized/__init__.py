"""torch.ao.nn.quantized: layers with weights of 8 bits, on quantized tensors.

They multiply integers exactly, and compute the numbers of PyTorch's engine FBGEMM.
"""

import importlib
import sys

from ....names.not_provided import names_of
from ....nn.pooling import MaxPool2d
from . import functional as functional
from .activation import ELU, Dropout, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from .convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .embedding import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import (
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
)
from .quantize import DeQuantize, Quantize

__all__ = [
    "ELU",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeQuantize",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LSTM",
    "LeakyReLU",
    "Linear",
    "MaxPool2d",
    "MultiheadAttention",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]

modules = sys.modules[__name__]  # torch.ao.nn.quantized.modules
_not_provided, __dir__ = names_of(__name__)


def __getattr__(name):
    if name in ("LSTM", "MultiheadAttention"):  # made of layers of this package
        return getattr(importlib.import_module(f"{__name__}.of_observed"), name)
    return _not_provided(name)
