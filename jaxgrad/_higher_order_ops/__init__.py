"""Control flow by PyTorch's private names for it."""

from __future__ import annotations

from ..names.not_provided import names_of
from .associative_scan import associative_scan as associative_scan

__getattr__, __dir__ = names_of(__name__)
