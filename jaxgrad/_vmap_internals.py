"""The first `vmap` of PyTorch, which is that of `torch.func` here."""

from __future__ import annotations

from .func import vmap as vmap
from .names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)

_vmap = vmap
