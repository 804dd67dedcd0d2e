"""torch.ao: of PyTorch's tools for smaller models, the observers of `torch.ao.quantization`."""

from ..names.not_provided import names_of
from . import quantization

__all__ = ["quantization"]

__getattr__, __dir__ = names_of(__name__)
