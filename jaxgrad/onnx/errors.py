"""Errors of an export to ONNX, as torch.onnx.errors."""

from __future__ import annotations

from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)
__all__ = ["OnnxExporterError", "OnnxExporterWarning", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """An export to ONNX that failed.

    >>> issubclass(jaxgrad.onnx.OnnxExporterError, RuntimeError)
    True
    """


class OnnxExporterWarning(UserWarning):
    """A warning of an export to ONNX.

    >>> issubclass(jaxgrad.onnx.errors.OnnxExporterWarning, UserWarning)
    True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """An operator that cannot be converted to ONNX.

    >>> issubclass(jaxgrad.onnx.errors.UnsupportedOperatorError, jaxgrad.onnx.OnnxExporterError)
    True
    """
