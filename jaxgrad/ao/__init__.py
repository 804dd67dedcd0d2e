"""torch.ao: PyTorch's tools for smaller models, `torch.ao.quantization` and its layers."""

from ..names.not_provided import names_of
from . import nn, quantization

__all__ = ["nn", "quantization"]

__getattr__, __dir__ = names_of(__name__)
