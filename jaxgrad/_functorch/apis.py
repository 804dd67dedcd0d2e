"""PyTorch's private module of the transforms."""

from __future__ import annotations

from ..func import grad as grad
from ..func import grad_and_value as grad_and_value
from ..func import vmap as vmap
from ..func.vmap import chunk_vmap as chunk_vmap
from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
