"""torch.ao.nn.qat: layers that round their weights in training to those of a quantized model."""

from ....names.not_provided import names_of
from .embedding import Embedding, EmbeddingBag
from .layers import Conv1d, Conv2d, Conv3d, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]

__getattr__, __dir__ = names_of(__name__)
