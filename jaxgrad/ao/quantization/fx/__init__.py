"""torch.ao.quantization.fx: how the graph of a traced model is quantized."""

from ....names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
