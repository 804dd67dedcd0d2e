"""Kinds of tensors that PyTorch's compiler uses, by its private names for them."""

from __future__ import annotations

from ..core.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
