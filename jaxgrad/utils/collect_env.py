"""The facts about the machine for a bug report, as torch.utils.collect_env."""

from __future__ import annotations

import os
import platform
import sys

import jax
import jaxlib
import numpy

from ..names.missing import missing_in
from ..version import __version__


def get_pretty_env_info() -> str:
    """Return the versions and the devices, a line each.

    >>> print(jaxgrad.utils.collect_env.get_pretty_env_info())  # doctest: +ELLIPSIS
    jaxgrad: ...
    """
    report = {
        "jaxgrad": f"{sys.modules['jaxgrad'].__version__}, which follows PyTorch {__version__}",
        "jax": f"{jax.__version__}, jaxlib {jaxlib.__version__}",
        "devices": ", ".join(f"{device} ({device.device_kind})" for device in jax.devices()),
        "Python": sys.version.replace("\n", " "),
        "NumPy": numpy.__version__,
        "system": platform.platform(),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }
    return "\n".join(f"{name}: {text}" for name, text in report.items())


def parallel_info() -> str:
    """Return the number of CPUs, on which XLA runs its threads."""
    return f"XLA runs threads on {os.cpu_count()} CPUs"


def main():
    """Print `get_pretty_env_info()`."""
    print(get_pretty_env_info())


__getattr__ = missing_in(__name__)
