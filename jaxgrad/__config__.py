"""The versions and settings of this build, as torch.__config__."""

from __future__ import annotations

from .names.missing import missing_in
from .utils import collect_env


def show() -> str:
    """Return the versions and the devices, a line each."""
    return collect_env.get_pretty_env_info()


def parallel_info() -> str:
    """Return the number of CPUs, on which XLA runs threads."""
    return collect_env.parallel_info()


def _cxx_flags() -> str:
    return ""  # nothing here is compiled from C++


__getattr__ = missing_in(__name__)
