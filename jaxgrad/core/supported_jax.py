"""The versions of JAX that jaxgrad is tested with, and the warning of others.

pyproject.toml has the same range. The upper bound is the next minor version of JAX: 0.11 and 0.12
each changed something that jaxgrad needs (core/jax_internals.py), so a new one is tested first.
"""

from __future__ import annotations

import re
import warnings

import jax

FIRST, FIRST_UNTESTED = "0.10.2", "0.13"


def place_of(version: str) -> tuple:
    """A version as a tuple that is compared: its numbers, and whether it is a release. What comes
    before a release, as 0.13.0rc1 and 0.13.0.dev20261101, has its numbers.

    >>> place_of = jaxgrad.core.supported_jax.place_of
    >>> place_of("0.12.0.1") > place_of("0.12.0") > place_of("0.12.0rc1")
    True
    """
    numbers, rest = re.match(r"(\d+(?:\.\d+)*)(.*)", version).groups()
    is_release = re.match(r"[._-]?(a|b|rc|dev)", rest) is None
    return tuple(map(int, numbers.split("."))), is_release


def is_supported(version: str) -> bool:
    """Whether jaxgrad is tested with a version of JAX."""
    # what comes before a release has most of what is new in it
    is_new = place_of(version)[0] >= place_of(FIRST_UNTESTED)[0]
    return place_of(version) >= place_of(FIRST) and not is_new


def warn_of_others(version: str = jax.__version__):
    """Warn if the version of JAX is not one that jaxgrad is tested with."""
    if not is_supported(version):
        warnings.warn(
            f"jaxgrad is not tested with JAX {version} and may fail: install "
            f"'jax>={FIRST},<{FIRST_UNTESTED}'",
            stacklevel=3,
        )
