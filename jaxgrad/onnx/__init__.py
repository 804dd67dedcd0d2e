"""Export to ONNX, which jaxgrad does not provide, as torch.onnx.

Programs that only prepare an export run: what they register has no effect.
"""

from __future__ import annotations

from ..names.not_provided import names_of
from . import symbolic_helper as symbolic_helper

__getattr__, __dir__ = names_of(__name__)


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported.

    >>> jaxgrad.onnx.is_in_onnx_export()
    False
    """
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn, opset_version: int, **options):
    """Do nothing: nothing is exported."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int):
    """Do nothing: nothing is exported."""
