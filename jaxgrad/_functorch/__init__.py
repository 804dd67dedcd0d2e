"""PyTorch's private modules of transforms, and those of the package functorch."""

from __future__ import annotations

from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
