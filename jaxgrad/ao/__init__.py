"""Quantization and sparsity, which jaxgrad does not provide, as torch.ao."""

from __future__ import annotations

from ..core.not_provided import names_of

__getattr__ = names_of(__name__, "jax and its packages quantize arrays, for example qwix")
