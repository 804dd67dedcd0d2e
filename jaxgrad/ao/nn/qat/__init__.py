"""torch.ao.nn.qat: layers that round their weights in training to those of a quantized model.

>>> import jaxgrad as torch
>>> qconfig = torch.ao.quantization.get_default_qat_qconfig("fbgemm")
>>> layer = torch.ao.nn.qat.Linear(2, 1, bias=False, qconfig=qconfig)
>>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 0.503]]))
>>> layer(torch.tensor([[0.0, 1.0]])).item()
0.501960813999176
"""

import sys

from ....names.not_provided import names_of
from .embedding import Embedding, EmbeddingBag
from .layers import Conv1d, Conv2d, Conv3d, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]

modules = sys.modules[__name__]  # torch.ao.nn.qat.modules
__getattr__, __dir__ = names_of(__name__)
