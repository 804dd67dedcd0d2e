"""AdamW under PyTorch's name of its module."""

from __future__ import annotations

from .adam import AdamW as AdamW
from .functional_form import with_functional_form

__getattr__ = with_functional_form(__name__)
