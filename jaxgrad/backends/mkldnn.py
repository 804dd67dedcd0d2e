"""Intel's oneDNN, which XLA uses by itself, as torch.backends.mkldnn.

What programs set here has no effect: CPUs compute in float32.
"""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.settings import flags, make_flags

enabled, fp32_precision = False, "none"
conv, matmul, rnn = (
    flags(f"torch.backends.mkldnn.{part}", fp32_precision="none")
    for part in ("conv", "matmul", "rnn")
)


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.mkldnn.is_available()
    False
    """
    return False


__getattr__ = missing_in(__name__)
make_flags(__name__, "enabled", "fp32_precision")
