"""Decorators of functions for an export to ONNX, as torch.onnx.symbolic_helper."""

from __future__ import annotations

from ..names.not_provided import names_of

__getattr__, __dir__ = names_of(__name__)


def parse_args(*arg_descriptors: str):
    """Return a decorator that leaves a function as it is."""
    return lambda function: function


quantized_args = parse_args
