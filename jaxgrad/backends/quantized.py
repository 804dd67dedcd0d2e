"""The libraries for quantized tensors, as torch.backends.quantized.

Products are computed alike under all names, as FBGEMM does; the names are those that
`ao.quantization.get_default_qconfig` knows.
"""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.settings import make_flags

engine, supported_engines = "x86", ["qnnpack", "onednn", "x86", "fbgemm"]

__getattr__ = missing_in(__name__)
make_flags(__name__, "engine", "supported_engines")
