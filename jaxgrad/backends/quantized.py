"""The libraries for quantized tensors, as torch.backends.quantized: there are none."""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.settings import make_flags

engine, supported_engines = "none", ["none"]

__getattr__ = missing_in(__name__)
make_flags(__name__, "engine", "supported_engines")
