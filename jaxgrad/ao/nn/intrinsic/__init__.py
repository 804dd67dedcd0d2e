"""torch.ao.nn.intrinsic: layers that `fuse_modules` makes of two or three.

>>> import jaxgrad as torch
>>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()).eval()
>>> torch.ao.quantization.fuse_modules(model, [["0", "1"]])
Sequential(
  (0): LinearReLU(
    (0): Linear(in_features=2, out_features=1, bias=True)
    (1): ReLU()
  )
  (1): Identity()
)
"""

from ....names.not_provided import names_of
from .fused import (
    BNReLU2d,
    BNReLU3d,
    ConvBn1d,
    ConvBn2d,
    ConvBn3d,
    ConvBnReLU1d,
    ConvBnReLU2d,
    ConvBnReLU3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    LinearBn1d,
    LinearReLU,
)

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
]

__getattr__, __dir__ = names_of(__name__)
