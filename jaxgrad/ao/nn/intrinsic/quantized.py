"""torch.ao.nn.intrinsic.quantized: quantized layers with a relu."""

from ....names.not_provided import names_of
from ..quantized.convolution import ConvReLU1d, ConvReLU2d, ConvReLU3d
from ..quantized.linear import LinearReLU
from ..quantized.normalization import BNReLU2d, BNReLU3d

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]

__getattr__, __dir__ = names_of(__name__)
