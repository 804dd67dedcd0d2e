"""cuDNN, which XLA uses by itself, as torch.backends.cudnn.

XLA chooses the algorithms. What programs set here has no effect; the precision of convolutions is
that of `torch.set_float32_matmul_precision`.
"""

from __future__ import annotations

import sys

from ..core.device import has
from ..names.missing import missing_in
from ..tape.settings import flags as _settings
from ..tape.settings import flags_for_block, make_flags, put_unless_frozen

_FLAGS = "enabled", "benchmark", "deterministic", "allow_tf32", "benchmark_limit", "fp32_precision"
enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10
fp32_precision = "none"
conv = _settings("torch.backends.cudnn.conv", fp32_precision="tf32")
rnn = _settings("torch.backends.cudnn.rnn", fp32_precision="tf32")


def is_available() -> bool:
    """Return whether JAX has found a GPU.

    >>> jaxgrad.backends.cudnn.is_available() == jaxgrad.cuda.is_available()
    True
    """
    return has("cuda")


def version() -> None:
    """Return None: XLA does not tell which cuDNN it uses.

    >>> print(jaxgrad.backends.cudnn.version())
    None
    """


def is_acceptable(tensor) -> bool:
    """Return whether a tensor is on a GPU, of a dtype that cuDNN computes in, while it is enabled.

    >>> jaxgrad.backends.cudnn.is_acceptable(jaxgrad.ones(1, device="cpu"))
    False
    """
    is_enabled = sys.modules[__name__].enabled  # a setting of the process
    return is_enabled and tensor.is_cuda and tensor.dtype.is_floating_point


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
):
    """Set all settings in the block, those that are not given to these defaults.

    >>> with jaxgrad.backends.cudnn.flags(benchmark_limit=3):
    ...     jaxgrad.backends.cudnn.benchmark_limit
    3
    >>> jaxgrad.backends.cudnn.benchmark_limit
    10
    """
    values = enabled, benchmark, deterministic, allow_tf32, benchmark_limit, fp32_precision
    return flags_for_block(__name__, dict(zip(_FLAGS, values, strict=True)))


__getattr__ = missing_in(__name__)
make_flags(__name__, *_FLAGS, write=put_unless_frozen)
