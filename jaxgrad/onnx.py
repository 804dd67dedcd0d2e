"""Export to ONNX, which jaxgrad does not provide, as torch.onnx."""

from __future__ import annotations

from .core.not_provided import names_of

__getattr__, __dir__ = names_of(
    __name__, "export the compiled program by jax.export, or by the package jax2onnx"
)


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported.

    >>> jaxgrad.onnx.is_in_onnx_export()
    False
    """
    return False
