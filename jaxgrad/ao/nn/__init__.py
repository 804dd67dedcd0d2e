"""torch.ao.nn: layers of quantized models, and of models that train for that."""

from ...names.not_provided import names_of
from . import intrinsic, qat, quantized
from .intrinsic import qat as _  # noqa: F401 - torch.ao.nn.intrinsic.qat
from .quantized import dynamic  # noqa: F401 - torch.ao.nn.quantized.dynamic

__all__ = ["intrinsic", "qat", "quantized"]

__getattr__, __dir__ = names_of(__name__)
