"""Export to ONNX, as torch.onnx.

It needs `pip install 'jaxgrad[onnx]'`, which the first export imports.
"""

from __future__ import annotations

from ..names.not_provided import names_of
from . import errors as errors
from . import symbolic_helper as symbolic_helper
from ._exporter import TrainingMode as TrainingMode
from ._exporter import export as export
from ._program import ONNXProgram as ONNXProgram
from .errors import OnnxExporterError as OnnxExporterError

__getattr__, __dir__ = names_of(__name__)


def is_in_onnx_export() -> bool:
    """Return False: a model is exported as it runs.

    >>> jaxgrad.onnx.is_in_onnx_export()
    False
    """
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn, opset_version: int, **options):
    """Do nothing: jax2onnx converts the primitives that an operator consists of."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int):
    """Do nothing, as `register_custom_op_symbolic`."""
