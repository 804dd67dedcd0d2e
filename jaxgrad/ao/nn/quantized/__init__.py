"""torch.ao.nn.quantized: layers with weights of 8 bits, on quantized tensors.

They multiply integers exactly, and compute the numbers of PyTorch's engine FBGEMM.
"""

from ....names.not_provided import names_of
from .activation import ELU, Dropout, Hardswish, LeakyReLU, ReLU6, Sigmoid, Softmax
from .convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm
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
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]

__getattr__, __dir__ = names_of(__name__)
