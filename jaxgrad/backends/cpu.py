"""What the processor can do, as torch.backends.cpu."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..names.missing import missing_in

__all__ = ["get_cpu_capability"]

_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"}


def processor() -> dict[str, str]:
    """What Linux tells of the first processor, by its names; nothing on other systems."""
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
        pairs = (line.partition(":") for line in first.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}
    return {}


def get_cpu_capability() -> str:
    """Return PyTorch's name for the widest vectors of the processor, "AVX512" or "AVX2"; "DEFAULT"
    where it has neither, or the system does not tell.

    >>> jaxgrad.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    features = set(processor().get("flags", "").split())
    if features >= _AVX512:
        return "AVX512"
    return "AVX2" if features >= {"avx2", "fma"} else "DEFAULT"


__getattr__ = missing_in(__name__)
