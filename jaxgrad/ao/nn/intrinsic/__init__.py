"""torch.ao.nn.intrinsic: layers that `fuse_modules` makes of two or three."""

from ....names.not_provided import names_of
from .fused import (
    BNReLU2d,
    BNReLU3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    LinearReLU,
)

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearReLU",
]

__getattr__, __dir__ = names_of(__name__)
