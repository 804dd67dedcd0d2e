"""torch.ao: of PyTorch's tools for smaller models, the observers of `torch.ao.quantization`."""

from __future__ import annotations

import importlib

from ..names.missing import MissingName


def __getattr__(name):
    if name == "quantization":
        return importlib.import_module("jaxgrad.ao.quantization")
    raise MissingName(__name__, name)
