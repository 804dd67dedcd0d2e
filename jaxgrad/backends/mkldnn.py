"""Intel's oneDNN, which XLA uses by itself, as torch.backends.mkldnn.

What programs set here has no effect: CPUs compute in float32.
"""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.settings import flags as _settings
from ..tape.settings import flags_for_block, make_flags, put_unless_frozen

_FLAGS = "enabled", "deterministic", "allow_tf32", "fp32_precision"
enabled, deterministic, allow_tf32, fp32_precision = False, False, True, "none"
conv, matmul, rnn = (
    _settings(f"torch.backends.mkldnn.{part}", fp32_precision="none")
    for part in ("conv", "matmul", "rnn")
)


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.mkldnn.is_available()
    False
    """
    return False


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
):
    """Set all settings in the block, those that are not given to these defaults.

    >>> with jaxgrad.backends.mkldnn.flags(enabled=True):
    ...     jaxgrad.backends.mkldnn.enabled
    True
    """
    values = enabled, deterministic, allow_tf32, fp32_precision
    return flags_for_block(__name__, dict(zip(_FLAGS, values, strict=True)))


__getattr__ = missing_in(__name__)
make_flags(__name__, *_FLAGS, write=put_unless_frozen)
