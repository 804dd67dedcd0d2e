"""Neural networks: for now the functions of `torch.nn.functional`."""

from . import functional as functional
